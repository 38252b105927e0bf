"""Numbers of the logistic regression in classes, in the order of features.NAMES.

Written by `python benchmarks/spikes.py --fit`; not to be edited by hand.
"""

# fitted: benchmarks/spikes.py --fit, logistic regression on candidates of annotated and simulated curves; docs/spikes.md has the scores.
MEAN = [
    2.52416,  # sigmas
    -1.63985,  # height
    1.18376,  # spread
    0.483551,  # upper
    0.900749,  # lower
    1.05352,  # crowd
    1.59149,  # rank
    1.17349,  # duration
    0.435653,  # rise
    0.0426045,  # depth
    0.97709,  # back
    0.0293148,  # early
    0.166515,  # descent
]
# fitted: the standard deviations beside these means
SCALE = [
    1.22846,  # sigmas
    1.65333,  # height
    1.41983,  # spread
    1.28624,  # upper
    1.2853,  # lower
    0.796214,  # crowd
    1.18348,  # rank
    1.30186,  # duration
    0.681241,  # rise
    0.201964,  # depth
    0.149617,  # back
    0.174286,  # early
    0.2585,  # descent
]
# fitted: the weights of the standardized features
WEIGHT = [
    1.31679,  # sigmas
    0.88031,  # height
    2.02106,  # spread
    0.590668,  # upper
    1.11375,  # lower
    -0.360177,  # crowd
    -0.532065,  # rank
    0.493925,  # duration
    -0.273872,  # rise
    0.562452,  # depth
    0.210414,  # back
    -0.24788,  # early
    -0.110849,  # descent
]
INTERCEPT = -2.04664  # fitted: together with the weights
THRESHOLD = 0.35  # of the odds; measured: docs/thresholds.md
