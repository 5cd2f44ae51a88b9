"""What is optimised."""

from . import control, functions, networks

__all__ = ["control", "functions", "networks"]
