"""Issues, rotates and serves certificates. Independent of pods and of `webhook`."""
