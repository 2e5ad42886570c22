"""The MPI launchers that a command line starts, and whether they are Open MPI's.

`commands` finds them in a container's command, `launches` reads their hosts, `openmpi` their
options, and `roles` knows the pods of operators. The words of a script come from
`webhook.decide.shell`; what is done about a launcher is the business of the mutations. The table of
launchers is `FAMILIES`. Start with `commands`.
"""
