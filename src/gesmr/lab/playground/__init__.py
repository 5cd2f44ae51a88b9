"""`gesmr playground`: a local page that shows evolution on a landscape, one method beside another."""

from .server import Playground

__all__ = ["Playground"]
