"""Sandboxes for programs that a policy wrote. What runs inside of one is never trusted: it can say
what a program printed or returned, but not whether that is right.
"""
