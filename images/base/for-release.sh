#!/bin/sh
# Make what a release is built on, in a folder: a base for each architecture (make.sh), and builder.tar, Debian with
# Python and venv. The packages are those of Debian bookworm at a given time, so anybody can get the same ones later.
#
#   images/base/for-release.sh 20261101T000000Z FOLDER
#
# It needs root, mmdebstrap, and on other systems than Debian the package debian-archive-keyring. SOURCES is a
# list of sources, as for make.sh, instead of the archive of that time.
set -eu
time=$1 folder=$2

mkdir -p "$folder"
if [ ! "${SOURCES:-}" ]; then
    SOURCES=$(realpath "$folder")/sources.list
    archive='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg check-valid-until=no] http://snapshot.debian.org/archive'
    cat >"$SOURCES" <<EOF
deb $archive/debian/$time bookworm main
deb $archive/debian-security/$time bookworm-security main
EOF
fi
export SOURCES
for architecture in amd64 arm64; do
    "$(dirname "$0")/make.sh" "$architecture" "$folder/base-$architecture.tar"
done
mmdebstrap --quiet --mode=root --variant=apt --include=ca-certificates,python3,python3-venv bookworm \
    "$folder/builder.tar" "$SOURCES"
