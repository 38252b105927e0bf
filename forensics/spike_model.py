"""Numbers of the logistic regression in spike_class, in the order of spike_features.NAMES.

Written by `python benchmarks/spikes.py --fit`; not to be edited by hand.
"""

MEAN = [
    2.56904,  # sigmas
    -1.70081,  # height
    1.14925,  # spread
    0.454051,  # upper
    0.849541,  # lower
    1.06173,  # crowd
    1.61641,  # rank
    1.19666,  # duration
    0.450399,  # rise
    0.0470135,  # depth
    0.977071,  # back
    0.0292971,  # early
    0.175213,  # descent
]
SCALE = [
    1.2327,  # sigmas
    1.66446,  # height
    1.40288,  # spread
    1.26912,  # upper
    1.28143,  # lower
    0.787288,  # crowd
    1.17367,  # rank
    1.31201,  # duration
    0.695897,  # rise
    0.211668,  # depth
    0.149676,  # back
    0.175598,  # early
    0.27508,  # descent
]
WEIGHT = [
    1.33427,  # sigmas
    1.05765,  # height
    2.01625,  # spread
    0.739821,  # upper
    1.02946,  # lower
    -0.465494,  # crowd
    -0.488541,  # rank
    0.466534,  # duration
    -0.331085,  # rise
    0.669615,  # depth
    0.170783,  # back
    -0.238189,  # early
    -0.12641,  # descent
]
INTERCEPT = -2.31277
THRESHOLD = 0.4
