"""Shows what is stored: tables, figures, claims, the report."""
