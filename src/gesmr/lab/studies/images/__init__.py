"""Networks that classify images."""
