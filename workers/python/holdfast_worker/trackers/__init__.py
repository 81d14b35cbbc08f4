"""Trackers: a process for each, which writes what the engine derives from a run's journal."""
