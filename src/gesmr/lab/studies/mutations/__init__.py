"""Mutations of one point at nine rates."""
