"""The dry run: read documents, and report what the webhook would do with their pods, and why."""
