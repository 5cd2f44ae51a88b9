"""What the study of test functions shows: results, tables, agreement with the paper, claims, figures."""
