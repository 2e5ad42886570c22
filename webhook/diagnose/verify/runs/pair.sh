# rdma-webhook verify run: an end of a pair of nodes that measure their HCAs with perftest.
#
# sh -c THIS rdma-verify server|client ADDRESS COUNT SECONDS LIMIT TESTS [HCA...]
#
# The server starts a program for each HCA and test at once, each on its own port. When all of them
# listen or have ended, and at least one listens, the pod becomes ready. Their output is printed as
# they end. The client runs the same programs one after another, so that none shares the link.
#
# ADDRESS  the server's; COUNT: the server's number of HCAs, 0 if the arguments name them
# LIMIT    seconds after which the client ends a program without a result
# TESTS    names of programs, separated by spaces
# HCA      RDMA devices; by default, those that this container may open and NCCL_IB_HCA selects
#
# Each command is printed before its output, so that a failure is assigned to its device. No other
# line may have the name of a program as a word: it would be read as a command.
exec 2>&1
role=$1 address=$2 count=$3 seconds=$4 limit=$5 tests=$6
shift 6
folder=@ROOT@/tmp/rdma-verify first_port=18515

note() { echo "rdma-verify: $*"; }

selected() { # DEVICE: whether NCCL_IB_HCA, as NCCL reads it, selects it
  names=${NCCL_IB_HCA-} listed=no excluded=no exact=no
  case $names in ^*) names=${names#^} excluded=yes ;; esac
  case $names in =*) names=${names#=} exact=yes ;; esac
  [ -n "$names" ] || return 0
  for name in $(echo "$names" | tr , ' '); do
    name=${name%%:*}
    case $exact$1 in yes"$name" | no"$name"*) listed=yes ;; esac
  done
  [ "$listed" != "$excluded" ]
}

devices() { # the RDMA devices that this container may open, mlx5_2 before mlx5_10
  for node in @ROOT@/dev/infiniband/uverbs*; do
    file=@ROOT@/sys/class/infiniband_verbs/${node##*/}/ibdev
    if [ -e "$node" ] && [ -r "$file" ]; then cat "$file"; fi
  done | sort -V | while read -r device; do
    if selected "$device"; then echo "$device"; fi
  done
}

command_of() { # TEST HCA PORT: set `words`, the command of both ends
  words="$1 -d $2 -p $3 -F"
  case $1 in
  *_bw) words="$words -q 4 -s 1048576 -D $seconds --report_gbits" ;;
  *) words="$words -s 8" ;;
  esac
  words="$words${NCCL_IB_GID_INDEX:+ -x $NCCL_IB_GID_INDEX}${NCCL_IB_SL:+ -S $NCCL_IB_SL}"
  words="$words${NCCL_IB_TC:+ --tclass=$NCCL_IB_TC}"
  case $address in *:*) words="$words --ipv6-addr" ;; esac
}

ended() { # CODE TEST HCA: note how a program failed; unquoted, the note would read as a command
  # On a timeout, coreutils return 124 and busybox 143.
  case $1 in
  0) ;;
  124 | 143) note "'$2' on $3 printed no result within $limit s" ;;
  *) note "'$2' on $3 ended with exit code $1" ;;
  esac
}

listens() { # PORT
  grep -qi ":$(printf %04x "$1") 0*:0000 0A" @ROOT@/proc/net/tcp @ROOT@/proc/net/tcp6 2>/dev/null
}

start() { # PLACE TEST HCA: run a server in the background
  command_of "$2" "$3" "$((first_port + $1))"
  {
    echo "+ $words"
    $words
    ended "$?" "$2" "$3"
    mv "$folder/$1.running" "$folder/$1.ended"
  } >"$folder/$1.running" 2>&1 &
}

serve() { # HCAs...
  mkdir -p "$folder" || exit 1
  place=0
  for hca; do
    for test in $tests; do
      start "$place" "$test" "$hca"
      place=$((place + 1))
    done
  done
  number=0
  while [ "$number" -lt "$place" ]; do
    until [ -e "$folder/$number.ended" ] || listens "$((first_port + number))"; do sleep 1; done
    if [ ! -e "$folder/$number.ended" ]; then : >"$folder/listens"; fi
    number=$((number + 1))
  done
  if [ -e "$folder/listens" ]; then : >"$folder/ready"; fi
  printed=0
  while [ "$printed" -lt "$place" ]; do
    for file in "$folder"/*.ended; do
      [ -e "$file" ] || continue
      cat "$file"
      mv "$file" "$file.printed"
      printed=$((printed + 1))
    done
    if [ "$printed" -lt "$place" ]; then sleep 1; fi
  done
}

measure() { # HCAs...
  [ "$count" -gt 0 ] || count=$#
  place=0
  for hca; do
    [ "$count" -gt 0 ] || break
    count=$((count - 1))
    for test in $tests; do
      command_of "$test" "$hca" "$((first_port + place))"
      echo "+ $words $address"
      timeout "$limit" $words "$address"
      ended "$?" "$test" "$hca"
      place=$((place + 1))
    done
  done
}

for test in $tests; do
  command -v "$test" >/dev/null || {
    note "this image has no '$test'"
    exit 127
  }
done
if [ "$#" -eq 0 ]; then
  set -- $(devices)
  note "devices $*"
fi
if [ "$#" -eq 0 ]; then
  note "this container has no RDMA device"
  exit 1
fi
case $role in
server) serve "$@" ;;
client) measure "$@" ;;
esac
