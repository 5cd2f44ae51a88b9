"""What is optimised."""

from . import datasets, functions, images, networks

__all__ = ["datasets", "functions", "images", "networks"]
