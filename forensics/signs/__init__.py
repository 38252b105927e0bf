"""Named measurements that detectors and causes reason from: kinds of hangs and of out of memory, jumps, what came before a NaN, deaths."""
