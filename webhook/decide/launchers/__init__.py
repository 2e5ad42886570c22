"""The MPI launchers that a command line starts, and whether they are Open MPI's."""
