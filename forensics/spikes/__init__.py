"""Loss spikes and slow turns of a series: found, measured, classed; numpy in, plain records out."""
