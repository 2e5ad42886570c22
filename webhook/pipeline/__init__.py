"""The steps from a pod to a decision: examine it, run the mutations, conclude."""
