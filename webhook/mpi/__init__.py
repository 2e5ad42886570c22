"""What a command line starts: launchers of MPI ranks, and whether they are Open MPI's."""
