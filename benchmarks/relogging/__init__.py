"""A run folder written again as others would have logged it: `original` reads, `changes` alters, `writers` and `copies` write."""
