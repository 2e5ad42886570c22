"""From an examined pod to a decision."""
