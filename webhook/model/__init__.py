"""The parts of a decision: the users' annotations, facts, the draft and outcomes."""
