"""What is optimised."""

from . import control, datasets, functions, gym, images, networks

__all__ = ["control", "datasets", "functions", "gym", "images", "networks"]
