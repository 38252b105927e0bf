"""Trains the samples for real and writes down what a training script would have left behind.

``data`` what is learned, ``models`` what learns, ``training`` the loop, ``clock`` the emulated wall time, ``files``,
``tensorboard``, ``console`` and ``wandb_offline`` the loggers, ``expect`` the truth beside each run, ``recipes/`` one
function a sample. Needs torch; PyYAML for config files, and wandb for the one sample that it writes.
"""
