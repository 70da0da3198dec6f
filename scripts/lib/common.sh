# Shared by the scripts: where the repository is, stages with their times, and what is installed.
# To be sourced by bash. It changes nothing by itself.

# The top of the repository, wherever a script was called from.
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)

# say TEXT…: a line for a person.
say() { printf '%s\n' "$*" >&2; }

# die TEXT…: the same, and the end.
die() {
    say "error: $*"
    exit 1
}

# seconds_since START: whole seconds since a value of $SECONDS.
seconds_since() { echo $((SECONDS - $1)); }

stage_names=()
stage_times=()
stage_results=()

# stage NAME COMMAND…: runs a command, notes how long it took, and ends the script if it fails.
stage() {
    local name=$1 start=$SECONDS status=0
    shift
    say ""
    say "== $name"
    # Not in an if: that would switch off -e within functions.
    set +e
    ( set -e; "$@" )
    status=$?
    set -e
    stage_names+=("$name")
    stage_times+=("$(seconds_since "$start")")
    if [ "$status" -eq 0 ]; then stage_results+=(ok); else stage_results+=(FAILED); fi
    if [ "$status" -ne 0 ]; then
        print_stages
        exit "$status"
    fi
}

# print_stages: a table of what ran.
print_stages() {
    local index
    say ""
    for index in "${!stage_names[@]}"; do
        printf '%7ss  %-6s  %s\n' "${stage_times[$index]}" "${stage_results[$index]}" \
            "${stage_names[$index]}" >&2
    done
}

# is_installed PACKAGE: whether Debian's package is installed, with its files.
is_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# as_root COMMAND…: runs it as root, through sudo if need be.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "this needs root, or sudo: $*"
    fi
}

# need_swift: finds the toolchain, or says where to get one.
need_swift() {
    command -v swift >/dev/null && return
    if [ -x /opt/swift/usr/bin/swift ]; then
        PATH=/opt/swift/usr/bin:$PATH
        return
    fi
    die "no swift in PATH: Operon needs Swift 6.3 (https://www.swift.org/install/linux/)"
}

# prometheus_program NAME DIR: prints the path of prometheus or promtool, of the machine's own package
# or of one that is unpacked in DIR. Debian's package would start a server: its programs are enough.
prometheus_program() {
    if command -v "$1"; then return; fi
    if [ ! -d "$2/prometheus" ]; then
        # The lists may be old or not there at all.
        (cd "$2" && apt-get download -q prometheus >&2) ||
            { as_root apt-get update -q >&2 && (cd "$2" && apt-get download -q prometheus >&2); }
        dpkg-deb -x "$2"/prometheus_*.deb "$2/prometheus"
    fi
    echo "$2/prometheus/usr/bin/$1"
}

# build_name: the commit and its date, for OPERON_BUILD; with a plus if files differ from it.
build_name() {
    local changes=
    [ -z "$(git status --porcelain --untracked-files=no)" ] || changes=+
    echo "$(git rev-parse --short=12 HEAD)$changes, $(TZ=UTC git log -1 --format=%cd --date=format-local:%F)"
}

# build_packaged ARGUMENT…: a release build that needs no Swift on the machine it is installed on, in
# .build-package. BoringSSL has the paths of its sources in the texts of its errors: they are relative.
build_packaged() {
    swift build -c release --scratch-path .build-package --static-swift-stdlib \
        -Xcc "-ffile-prefix-map=$repository/=" "$@"
}

# make_debian DIR [PACKAGE,… [RELEASE]]: puts the Debian of this machine, or another release of it, into
# an empty folder, with nothing but what it needs and these packages.
make_debian() {
    local root=$1 own release mirror
    own=$(. /etc/os-release && echo "$VERSION_CODENAME")
    release=${3:-$own}
    # apt's own placeholders.
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' |
        sed -n "s| $own\$||p" | sed -n '/debian\/$/p' | head -n 1)
    [ -n "$mirror" ] || die "apt knows no mirror of $own"
    say "debootstrap $release"
    debootstrap --variant=minbase ${2:+"--include=$2"} "$release" "$root" "$mirror" \
        >"$root.log" 2>&1 || die "debootstrap failed; see $root.log"
    rm -f "$root.log"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
}
