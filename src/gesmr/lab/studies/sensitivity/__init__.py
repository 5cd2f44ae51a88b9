"""GESMR's hyperparameters."""
