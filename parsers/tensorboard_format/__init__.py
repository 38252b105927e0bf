"""What event files need beyond one file: records, checksums, events one at a time or many at once, histograms, plugins."""
