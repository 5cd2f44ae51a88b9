"""What a user calls: minimise a function, or ask and tell."""
