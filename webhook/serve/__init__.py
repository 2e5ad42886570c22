"""The application behind the listeners: `/mutate`, `/preview`, health, metrics and the log."""
