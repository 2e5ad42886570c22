"""What the listeners serve: `/mutate`, `/preview`, health, metrics and the log."""
