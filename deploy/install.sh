#!/bin/sh
# Installs the programs operon and operon-worker from an archive of a release, after checking it.
#
#   sh install.sh [--prefix DIR] [ARCHIVE]
#
#   ARCHIVE       operon-VERSION-linux-ARCHITECTURE.tar.gz; by default the one beside this script
#   --prefix DIR  where bin and share are; by default /usr/local as root, else ~/.local
#
# The file SHA256SUMS of the release must be beside the archive. It downloads nothing and starts
# nothing. On Debian, the package of the release also has units for systemd.
set -eu

fail() {
    echo "error: $*" >&2
    exit 1
}

prefix=
archive=
while [ $# -gt 0 ]; do
    case $1 in
    --prefix)
        [ $# -ge 2 ] || fail "--prefix takes a folder"
        prefix=$2
        shift
        ;;
    -h | --help)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0"
        exit 0
        ;;
    -*) fail "unknown option $1 (see --help)" ;;
    *)
        [ -z "$archive" ] || fail "more than one archive"
        archive=$1
        ;;
    esac
    shift
done

if [ -z "$archive" ]; then
    for file in "$(dirname "$0")"/operon-*-linux-"$(uname -m)".tar.gz; do
        [ -z "$archive" ] || fail "more than one archive beside $0: name one"
        archive=$file
    done
fi
[ -f "$archive" ] || fail "there is no archive $archive"
if [ -z "$prefix" ]; then
    if [ "$(id -u)" -eq 0 ]; then prefix=/usr/local; else prefix=${HOME:?}/.local; fi
fi

folder=$(dirname "$archive")
file=$(basename "$archive")
[ -f "$folder/SHA256SUMS" ] || fail "$folder has no SHA256SUMS: the archive cannot be checked"
# An archive that the list does not name would be checked by nothing.
line=$(grep -- "[ *]$file\$" "$folder/SHA256SUMS") || fail "SHA256SUMS does not name $file"
(cd "$folder" && printf '%s\n' "$line" | sha256sum --check --quiet -) ||
    fail "$file is not what the release has: get it again"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xzf "$archive" -C "$work" --strip-components=1 --no-same-owner
for program in operon operon-worker; do
    missing=$(ldd "$work/bin/$program" 2>&1 | sed -n 's/^[[:space:]]*\([^ ]*\) => not found$/\1/p' |
        tr '\n' ' ')
    [ -z "$missing" ] || fail "$program needs libraries that are missing: $missing
On Debian: apt install librabbitmq4 libsqlite3-0 libssl3 libyaml-0-2"
    # Of another architecture, or for a newer system.
    "$work/bin/$program" --version >/dev/null || fail "$program does not run on this machine"
done
mkdir -p "$prefix/bin" "$prefix/share"
cp -R "$work/share/." "$prefix/share/"
for program in operon operon-worker; do
    # A program that runs keeps its old file.
    install -m 755 "$work/bin/$program" "$prefix/bin/.$program.new"
    mv "$prefix/bin/.$program.new" "$prefix/bin/$program"
done
echo "installed $("$prefix/bin/operon" --version) in $prefix"
case ":$PATH:" in
*":$prefix/bin:"*) ;;
*) echo "$prefix/bin is not in PATH" ;;
esac
