"""Graders that ship with Holdfast and run in the reward processes, like a user's function."""
