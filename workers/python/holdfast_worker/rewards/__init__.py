"""Reward functions in Python: run by a pool of processes, or tried alone with `try_function`."""
