"""The nodes of each fabric: what they offer, what is free, and what is wrong with them."""
