"""What a decision is made of: pods, drafts, fabrics, facts. Pure: no I/O, no clock, no log."""
