"""Shell scripts as text: find their commands without running anything."""
