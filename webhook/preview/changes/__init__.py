"""What a new configuration would change: the decisions on the same pods under two of them."""
