#!/bin/sh
# Run a command in the cgroup with the memory limit.
echo $$ >/sys/fs/cgroup/limited/cgroup.procs
exec "$@"
