"""What is optimised."""

from . import control, datasets, functions, images, networks

__all__ = ["control", "datasets", "functions", "images", "networks"]
