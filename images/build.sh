#!/bin/sh
# Build the image of a commit with buildah, write it to dist/ as an OCI archive, and print that file and its digest. The same commit,
# bases and version of buildah give the same digest, on any day and machine.
#
#   BASE, BUILDER      see the Dockerfile: names of images, or root file systems (*.tar), as base/make.sh writes;
#                      {architecture} in BASE becomes amd64 or arm64
#   PLATFORM           linux/arm64, for example (default: this machine's)
#   REVISION, VERSION  the commit (default: HEAD) and its version (default: its `__version__`)
#   BUILDAH            the command, perhaps with options (default: buildah)
#   BUILD_OPTIONS      more options of `buildah build`, such as --volume for pip's settings
set -eu
cd "$(dirname "$0")/.."
case $(uname -m) in x86_64) machine=amd64 ;; aarch64) machine=arm64 ;; *) machine=$(uname -m) ;; esac
platform=${PLATFORM:-linux/$machine}
architecture=${platform#linux/}
revision=$(git rev-parse --verify "${REVISION:-HEAD}^{commit}")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct "$revision")}
buildah=${BUILDAH:-buildah}
export BUILDAH_ISOLATION="${BUILDAH_ISOLATION:-chroot}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Only what is committed, with the same modes under any umask.
mkdir "$work/commit"
git -c tar.umask=0022 archive "$revision" | tar --extract --preserve-permissions --directory="$work/commit"
version=${VERSION:-$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$work/commit/webhook/__init__.py")}

# image NAME|FILE PLATFORM: print the name of an image, which is made if it is the tar of a root file system.
image() {
    case $1 in *.tar) ;; *) echo "$1" && return ;; esac
    name=localhost/rdma-webhook/root:$(sha256sum "$1" | cut -c 1-12)
    container=$($buildah from --platform "$2" scratch)
    $buildah add --quiet "$container" "$1" / >"$work/log"
    $buildah commit --quiet --rm --timestamp 0 "$container" "$name" >"$work/log"
    echo "$name"
}

base=$(echo "${BASE:-python:3.13-slim-bookworm}" | sed "s/{architecture}/$architecture/g")
base=$(image "$base" "$platform")
builder=$(image "${BUILDER:-${BASE:-python:3.13-slim-bookworm}}" "linux/$machine")
name=localhost/rdma-webhook:$version-$architecture
# shellcheck disable=SC2086 # options are words
$buildah build --platform "$platform" --build-arg BUILDPLATFORM="linux/$machine" --timestamp "$SOURCE_DATE_EPOCH" \
    --identity-label=false --build-arg BASE="$base" --build-arg BUILDER="$builder" --build-arg VERSION="$version" \
    --build-arg REVISION="$revision" --tag "$name" ${BUILD_OPTIONS:-} "$work/commit" >&2
mkdir -p dist
archive=dist/rdma-webhook-$version-$architecture.oci.tar
rm -f "$archive"
$buildah push --quiet --digestfile "$work/digest" "$name" "oci:$work/layout:$version" >&2
tar --create --file="$archive" --directory="$work/layout" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
    --numeric-owner --mode=go-w --format=gnu blobs index.json oci-layout
echo "$archive $(cat "$work/digest")"
