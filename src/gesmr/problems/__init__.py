"""What is optimised."""

from . import functions

__all__ = ["functions"]
