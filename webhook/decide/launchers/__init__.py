"""The MPI launchers that a command line starts, and whether they are Open MPI's.

`commands` finds them in a container's command, `launches` reads their hosts, `openmpi` their
options, and `roles` recognizes the pods of operators. The words of a script come from
`webhook.decide.shell`; the mutations decide what to do about a launcher. The table of launchers is
`MPI_BY_LAUNCHER`. Start with `commands`.
"""
