"""Certificates: issuing and serving them. Knows nothing of pods or of `webhook`."""
