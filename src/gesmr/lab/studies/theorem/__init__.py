"""Theorem 1 and small mutation rates."""
