"""The admission protocol: reviews in, answers out, and who would be called at all."""
