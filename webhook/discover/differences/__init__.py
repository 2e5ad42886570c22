"""What is wrong with the nodes of a fabric or differs between them, and what to do."""
