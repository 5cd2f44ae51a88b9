"""GESMR against CMA-ES."""
