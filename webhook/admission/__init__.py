"""The admission protocol: read reviews, write answers, and tell for which pods we are called."""
