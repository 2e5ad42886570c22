"""The laws that every case must obey; each is a function that reports how a case broke it."""
