"""Live guards, run over the recorded log: which would have caught it, how early, at what price in false alarms."""
