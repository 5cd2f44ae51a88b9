"""Change of value against mutation rate."""
