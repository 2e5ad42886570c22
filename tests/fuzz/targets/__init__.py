"""The targets: each module makes cases, runs the real code on them, and names their laws."""
