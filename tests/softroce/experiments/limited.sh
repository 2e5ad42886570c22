#!/bin/sh
# Run a command in the cgroup with the memory limit. The shell stays, as in a container, and says
# how the command ended.
echo $$ >/sys/fs/cgroup/limited/cgroup.procs
"$@"
