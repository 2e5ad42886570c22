# shellcheck shell=sh
# Start a program in the background, its output appended to a file, and wait for a line.
#
# `sh -c THIS sh LOG COMMAND...`, as a process of the cluster. Whoever reads "started" finds the
# program as the only child of this shell; afterwards it is a child of pid 1, which reaps it.
log=$1
shift
"$@" >>"$log" 2>&1 </dev/null &
echo started
read -r _
