"""What a decision is made of: the words users type, facts, draft, outcomes."""
