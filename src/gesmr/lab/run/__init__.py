"""Computes what a study asks for, and keeps it."""
