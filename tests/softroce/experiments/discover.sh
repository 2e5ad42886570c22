#!/bin/sh
# What a machine with rxe0 shows: to the script of `discover script`, and to `discover --run`.
# shellcheck source=common.sh
. ./common.sh
soft_roce || exit 1
sh ./collect.sh >collected.txt
mkdir -p /run/libraries
mount -t 9p -o trans=virtio,version=9p2000.L,ro libraries /run/libraries || exit 1
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/program:/run/libraries \
    python3 -m webhook discover --run -o json >run.json 2>run.txt
echo $? >run.status
