"""How many groups GESMR should have."""
