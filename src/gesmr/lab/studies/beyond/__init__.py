"""Beyond the paper: recombination, against the paper's methods and against other algorithms."""
