#!/bin/sh
# Write a base image's root file system: Python 3.11 from Debian packages, with their libraries, and
# without a shell, a package manager and pip. No script of a package runs, so any architecture will do.
#
#   images/base/make.sh arm64 base-arm64.tar
#
# It needs Debian's apt, dpkg and tar, but not root. SOURCES is a list of Debian bookworm's sources, in the
# format of sources.list(5), for a machine that has others.
set -eu
architecture=$1 output=$2

# The interpreter; the libraries of the modules that the webhook and its dependencies import, of libc
# and of the wheels; and base-files, whose os-release lets scanners know the release.
packages='base-files libbz2-1.0 libc6 libexpat1 libffi8 libgcc-s1 liblzma5 libpython3.11-minimal
    libpython3.11-stdlib libssl3 libuuid1 python3-minimal python3.11-minimal zlib1g'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

# apt with its own folders: the machine's architecture, sources and lists stay as they are.
mkdir -p "$work/lists/partial" "$work/packages/partial"
cat >"$work/apt.conf" <<EOF
APT::Architecture "$architecture";
APT::Architectures "$architecture";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
Dir::Cache "$work";
Dir::State "$work";
Dir::State::status "/dev/null";
EOF
if [ "${SOURCES:-}" ]; then
    printf 'Dir::Etc::%s;\n' "SourceList \"$SOURCES\"" 'SourceParts "/dev/null"' >>"$work/apt.conf"
fi
export APT_CONFIG="$work/apt.conf"
apt-get -qq update
# shellcheck disable=SC2086 # words
(cd "$work/packages" && apt-get -qq download $packages)

# Debian's merged /usr.
mkdir -p "$root/usr/lib" "$root/usr/lib64" "$root/usr/bin" "$root/usr/sbin"
for folder in bin lib lib64 sbin; do
    ln -s "usr/$folder" "$root/$folder"
done
# Scanners read the packages' names and versions here (as in distroless images).
mkdir -p "$root/var/lib/dpkg/status.d"
for package in "$work"/packages/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar --extract --preserve-permissions --keep-directory-symlink --directory="$root"
    dpkg-deb --field "$package" >"$root/var/lib/dpkg/status.d/$(dpkg-deb --field "$package" Package)"
done

# What scripts of the packages would have written.
printf '%s\n' 'root:x:0:0:root:/root:/nonexistent' 'nonroot:x:65532:65532::/:/nonexistent' >"$root/etc/passwd"
printf '%s\n' 'root:x:0:' 'nonroot:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"

# Documentation, except for licenses; libc's converters of encodings (8 MB), since Python has its own; and
# what only a build, a test or a person at a terminal needs of Python.
find "$root/usr/share/doc" ! -type d ! -name copyright -delete
rm -r "$root/usr/share/lintian" "$root/usr/share/man" "$root"/usr/lib/*-linux-gnu*/gconv
(cd "$root/usr/lib/python3.11" && rm -rf ensurepip idlelib lib2to3 pydoc_data test tkinter turtledemo)

# The same files give the same archive.
tar --create --file="$output" --directory="$root" --sort=name --mtime="@${SOURCE_DATE_EPOCH:-0}" \
    --owner=0 --group=0 --numeric-owner --format=gnu .
