"""The Python side of Holdfast: one agent per host, one process per rank, and the roles' workers."""

__version__ = "0.1.0"
