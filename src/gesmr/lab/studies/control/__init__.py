"""The control tasks."""
