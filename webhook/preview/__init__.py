"""The dry run: documents in, what would become of their pods and why out."""
