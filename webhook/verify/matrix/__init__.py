"""How a run over a fabric's nodes is shown: a matrix of its nodes, and what to look at first."""
