"""The signatures of other frameworks' reward functions, each recognised and called as it is."""
