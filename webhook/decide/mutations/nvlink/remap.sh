# rdma-webhook: show CUDA only the GPUs of this container, then run the command.
fail() { echo "rdma-remap: $*" >&2; exit 1; }

# ordinals COUNT SOURCE NAMES: ranks of the GPUs named (bus ids, UUIDs or indexes)
ordinals() {
  count=$1 source=$2 names=$3 rank= hits= list=
  IFS=,
  set -- $names
  [ "$#" -eq "$count" ] ||
    fail "$source names $# GPU(s) ($names), but the container requests $count"
  IFS='
'
  for gpu in $gpus; do
    bus=${gpu%%,*} rest=${gpu#*,}
    uuid=${rest%%,*} rest=${rest#*,}
    index=${rest%%,*}
    case ,$names, in
    *,"$bus",* | *,"$uuid",* | *,"$index",*) list=$list,${#rank} hits=x$hits ;;
    esac
    rank=x$rank
  done
  [ "${#hits}" -eq "$count" ] ||
    fail "$source names $names, but this matches ${#hits} GPU(s) of this node, not $count"
  echo "${list#,}"
}

own() {
  count=$1 nodes= mounted= shown= listed= all= names= source= confirmed=
  LC_ALL=C
  export LC_ALL
  for entry in @ROOT@/dev/nvidia[0-9]*; do
    case ${entry##*/nvidia} in *[!0-9]*) continue ;; esac
    nodes=x$nodes
  done
  for entry in @ROOT@/var/run/nvidia-container-devices/*; do
    [ -e "$entry" ] && mounted=$mounted,${entry##*/}
  done
  for entry in @ROOT@/proc/driver/nvidia/gpus/*; do
    [ -e "$entry" ] || continue
    info=`cat "$entry/information"` || fail "cannot read $entry/information"
    case $info in *Excluded:*Yes*) continue ;; esac
    entry=${entry##*/} shown=x$shown
    case ${#entry} in 12) entry=0000$entry ;; 13) entry=000$entry ;; esac
    listed=$listed,$entry
  done
  set -f

  command -v nvidia-smi >/dev/null || fail "no nvidia-smi in this container"
  gpus=`nvidia-smi --query-gpu=pci.bus_id,uuid,index,mig.mode.current --format=csv,noheader` ||
    fail "nvidia-smi failed: $gpus"
  gpus=`printf '%s\n' "$gpus" | tr -d ' \r' | tr ABCDEF abcdef | sort`
  IFS='
'
  set -- $gpus
  total=$#
  for gpu in "$@"; do
    case $gpu in
    ????????:??:??.?,GPU-*,[0-9]*,enabled) fail "a GPU of this node is in MIG mode: $gpu" ;;
    ????????:??:??.?,GPU-*,[0-9]*,*) all=$all,${gpu%%,*} ;;
    *) fail "nvidia-smi printed a line that describes no GPU: $gpu" ;;
    esac
  done
  [ "$count" -le "$total" ] ||
    fail "the container requests $count GPU(s), but nvidia-smi lists $total"

  if [ "${#shown}" -gt 0 ] && [ "${#shown}" -lt "${#nodes}" ] && [ "${#shown}" -lt "$total" ]; then
    confirmed=`ordinals "$count" /proc/driver/nvidia/gpus "${listed#,}"` || exit 1
  elif [ "$count" -eq "$total" ]; then
    confirmed=`ordinals "$count" nvidia-smi "${all#,}"` || exit 1
  fi
  case ${NVIDIA_VISIBLE_DEVICES-} in
  '' | void | all | none | /*) names=${mounted#,} source=/var/run/nvidia-container-devices ;;
  *) names=$NVIDIA_VISIBLE_DEVICES source=NVIDIA_VISIBLE_DEVICES ;;
  esac
  if [ -n "$names" ]; then
    named=`ordinals "$count" "$source" "$names"` || exit 1
    if [ -z "$confirmed" ]; then
      case ,$names in *,[0-9]*)
        fail "$source contains indexes ($names), which no other source confirms" ;;
      esac
      confirmed=$named
    fi
    [ "$named" = "$confirmed" ] ||
      fail "$source names $names, but /proc/driver/nvidia/gpus shows other GPUs"
  fi
  [ -n "$confirmed" ] ||
    fail "cannot determine which $count of the $total GPU(s) of this node belong to this container"
  echo "$confirmed"
}

[ -z "${CUDA_VISIBLE_DEVICES+set}" ] || fail "CUDA_VISIBLE_DEVICES is already set"
CUDA_VISIBLE_DEVICES=`own "$1"` || exit 1
CUDA_DEVICE_ORDER=PCI_BUS_ID
export CUDA_DEVICE_ORDER CUDA_VISIBLE_DEVICES
echo "rdma-remap: CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES" >&2
shift
exec "$@"
