#!/bin/bash
# A private RabbitMQ for tests: a program with a directory of its own, on free ports of the
# loopback interface, started and stopped by process id. No system service is touched.
#
# Source this file, or run it: scripts/lib/broker.sh start DIR [PORT] | stop DIR | kill9 DIR |
# wipe DIR | restart DIR | url DIR [USER] | ctl DIR ARGUMENT… | eval DIR EXPRESSION
#
#   broker_start DIR [PORT]   starts a broker and returns when it takes logins
#   broker_url DIR [USER]     prints amqp://guest:guest@127.0.0.1:PORT; there are also the users
#                             coordinator and worker, with the rights that each needs and no more
#   broker_kill9 DIR          the broker dies at once
#   broker_wipe DIR           the broker dies at once, and its disk with it
#   broker_restart DIR        starts it again on the same ports with what its disk kept
#   broker_stop DIR           ends the broker and its port mapper
#   broker_ctl DIR …          rabbitmqctl against it
#   broker_eval DIR …         the value of an Erlang expression in it

# Where deploy/rabbitmq/definitions lies.
broker_repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Debian's /usr/sbin wrappers change the user and lose the environment, so the scripts of the
# installation are used directly.
broker_sbin() {
    local found
    for found in /usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin /opt/rabbitmq/sbin; do
        if [ -x "$found/rabbitmq-server" ]; then
            printf '%s\n' "$found"
            return 0
        fi
    done
    echo "RabbitMQ is not installed: apt-get install rabbitmq-server" >&2
    return 1
}

# Three ports that nobody listens on: AMQP, the distribution port and the port mapper's. Of those
# that the kernel gives to nobody by itself: one of its own choice may be somebody's end of a
# connection before the broker listens on it, or while the broker is dead.
broker_free_ports() {
    python3 - <<'PYTHON'
import random, socket
with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
    end = int(file.read().split()[0])
found = []
for port in random.sample(range(10000, end if end > 11000 else 32768), 1000):
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            continue
    found.append(port)
    if len(found) == 3:
        break
print(*found)
PYTHON
}

# Runs a command with the environment of the broker in DIR; without one of its own from outside.
broker_environment() {
    local dir=$1 sbin
    shift
    sbin=$(broker_sbin) || return 1
    # shellcheck disable=SC1091
    . "$dir/ports"
    env -i LANG=C.UTF-8 HOME="$dir/home" PATH="$sbin:/usr/bin:/bin" \
        RABBITMQ_NODENAME="operon$BROKER_PORT@localhost" \
        RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 \
        RABBITMQ_NODE_PORT="$BROKER_PORT" \
        RABBITMQ_DIST_PORT="$BROKER_DIST_PORT" \
        RABBITMQ_MNESIA_BASE="$dir/mnesia" \
        RABBITMQ_LOG_BASE="$dir/log" \
        RABBITMQ_CONFIG_FILE="$dir/rabbitmq.conf" \
        RABBITMQ_CONF_ENV_FILE="$dir/env" \
        RABBITMQ_ENABLED_PLUGINS_FILE="$dir/plugins" \
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}' \
        ERL_CRASH_DUMP="$dir/crash.dump" \
        ERL_EPMD_PORT="$BROKER_EPMD_PORT" ERL_EPMD_ADDRESS=127.0.0.1 \
        "$@"
}

# A server that keeps a descriptor of whoever started it would keep them waiting for its end.
broker_close_descriptors() {
    local entry number
    for entry in /proc/self/fd/*; do
        number=${entry##*/}
        if [ "$number" -gt 2 ]; then eval "exec $number>&-"; fi
    done 2>/dev/null
}

# What a deployed broker is given, for any prefix of the tests; and guest, with every right, for
# logging in before anything else works and for what tests have to do as somebody else. The broker
# takes both at every start, also with an empty disk.
broker_definitions() {
    mkdir -p "$1" || return 1
    cat >"$1/guest.json" <<'EOF'
{
  "vhosts": [{"name": "/"}],
  "users": [{"name": "guest", "password": "guest", "tags": "administrator"}],
  "permissions": [
    {"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
  ]
}
EOF
    env -i PATH="$PATH" OPERON_VHOST=/ OPERON_PREFIX_PATTERN='(operon|test\.[^.]+)\.' \
        OPERON_COORDINATOR_USER=coordinator OPERON_COORDINATOR_PASSWORD=coordinator \
        OPERON_WORKER_USER=worker OPERON_WORKER_PASSWORD=worker \
        OPERON_TRIGGER_QUEUES='user\..*' \
        "$broker_repository/deploy/rabbitmq/definitions" >"$1/operon.json"
}

# Lines that the caller put into $dir/extra.conf are added to the configuration; $dir/extra.plugins
# names plugins of the installation.
broker_start() {
    local dir=$1 port=${2:-} ports
    mkdir -p "$dir/mnesia" "$dir/log" "$dir/home" || return 1
    ports=$(broker_free_ports) || return 1
    # shellcheck disable=SC2086
    set -- $ports
    cat >"$dir/ports" <<EOF
BROKER_PORT=${port:-$1}
BROKER_DIST_PORT=$2
BROKER_EPMD_PORT=$3
EOF
    broker_definitions "$dir/definitions" || return 1
    cat >"$dir/rabbitmq.conf" <<EOF
listeners.tcp.1 = 127.0.0.1:${port:-$1}
log.file.level = warning
load_definitions = $dir/definitions
EOF
    if [ -f "$dir/extra.conf" ]; then cat "$dir/extra.conf" >>"$dir/rabbitmq.conf"; fi
    echo "[$(cat "$dir/extra.plugins" 2>/dev/null)]." >"$dir/plugins"
    : >"$dir/env"
    broker_restart "$dir"
}

# The logs of a start go to $dir/out. 90 s: a start takes 5 s, and ten times that on a busy machine.
broker_restart() {
    local dir=$1 deadline=$((SECONDS + 90)) server
    rm -f "$dir"/mnesia/*.pid
    (
        broker_close_descriptors
        # What a dying broker leaves where it was started belongs into its folder.
        cd "$dir" || exit 1
        broker_environment "$PWD" setsid rabbitmq-server
    ) >>"$dir/out" 2>&1 </dev/null &
    server=$!
    until broker_takes_logins "$dir"; do
        if [ "$SECONDS" -ge "$deadline" ] || ! kill -0 "$server" 2>/dev/null; then
            echo "the broker in $dir did not start; its last words:" >&2
            tail -n 20 "$dir/out" >&2
            broker_stop "$dir"
            return 1
        fi
        sleep 0.2
    done
}

# The port may be open before logins are taken: the broker's answer to a protocol header tells.
broker_takes_logins() {
    local dir=$1
    # shellcheck disable=SC1091
    . "$dir/ports"
    broker_pid "$dir" >/dev/null || return 1
    python3 - "$BROKER_PORT" <<'PYTHON' 2>/dev/null
import socket, struct, sys

def frame(channel, class_id, method_id, payload):
    body = struct.pack(">HH", class_id, method_id) + payload
    return struct.pack(">BHI", 1, channel, len(body)) + body + b"\xce"

def short(text):
    return bytes([len(text)]) + text

def method(stream):
    kind, channel, size = struct.unpack(">BHI", stream.read(7))
    body = stream.read(size)
    stream.read(1)
    return struct.unpack(">HH", body[:4]), body[4:]

def expect(stream, wanted):
    got, payload = method(stream)
    sys.exit(1) if got != wanted else None
    return payload

with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5) as connection:
    stream = connection.makefile("rb")
    connection.sendall(b"AMQP\0\0\x09\x01")
    expect(stream, (10, 10))
    login = b"\0guest\0guest"
    connection.sendall(frame(0, 10, 11, struct.pack(">I", 0) + short(b"PLAIN")
                             + struct.pack(">I", len(login)) + login + short(b"en_US")))
    tune = expect(stream, (10, 30))
    connection.sendall(frame(0, 10, 31, tune[:8]))
    connection.sendall(frame(0, 10, 40, short(b"/") + short(b"") + b"\0"))
    expect(stream, (10, 41))
    connection.sendall(frame(0, 10, 50, struct.pack(">H", 200) + short(b"") + bytes(4)))
    expect(stream, (10, 51))
PYTHON
}

# The process id of the broker, if it lives.
broker_pid() {
    local dir=$1 pid
    # shellcheck disable=SC1091
    . "$dir/ports"
    pid=$(cat "$dir/mnesia/operon$BROKER_PORT@localhost.pid" 2>/dev/null) || return 1
    kill -0 "$pid" 2>/dev/null || return 1
    printf '%s\n' "$pid"
}

# The process that listens on our port mapper's port: the only epmd that was started for us.
broker_epmd_pid() {
    local dir=$1 entry
    # shellcheck disable=SC1091
    . "$dir/ports"
    for entry in /proc/[0-9]*; do
        [ "$(cat "$entry/comm" 2>/dev/null)" = epmd ] || continue
        # Those of other users cannot be read, and are not ours.
        if { tr '\0' '\n' <"$entry/environ"; } 2>/dev/null \
            | grep -qx "ERL_EPMD_PORT=$BROKER_EPMD_PORT"; then
            printf '%s\n' "${entry#/proc/}"
            return 0
        fi
    done
    return 1
}

broker_gone() {
    local pid=$1 deadline=$((SECONDS + $2))
    while kill -0 "$pid" 2>/dev/null; do
        # What is dead and not yet waited for holds nothing any more.
        case $(sed -n 's/^State:[[:space:]]*//p' "/proc/$pid/status" 2>/dev/null) in
            Z*) return 0 ;;
        esac
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.05
    done
}

broker_kill9() {
    local dir=$1 pid
    pid=$(broker_pid "$dir") || return 0
    kill -9 "$pid"
    broker_gone "$pid" 10
}

broker_wipe() {
    local dir=$1
    broker_kill9 "$dir" && rm -rf "$dir/mnesia" && mkdir "$dir/mnesia"
}

broker_stop() {
    local dir=$1 pid
    [ -f "$dir/ports" ] || return 0
    if pid=$(broker_pid "$dir"); then
        kill -TERM "$pid"
        broker_gone "$pid" 20 || broker_kill9 "$dir"
    fi
    if pid=$(broker_epmd_pid "$dir"); then kill "$pid"; fi
    return 0
}

broker_url() {
    local user=${2:-guest}
    # shellcheck disable=SC1091
    . "$1/ports"
    printf 'amqp://%s:%s@127.0.0.1:%s\n' "$user" "$user" "$BROKER_PORT"
}

broker_ctl() {
    local dir=$1
    shift
    broker_environment "$dir" rabbitmqctl --silent "$@"
}

# In milliseconds: rabbitmqctl starts a machine of Erlang's for each call, which takes a core for
# seconds.
broker_eval() {
    local dir=$1 answer
    # shellcheck disable=SC1091
    . "$dir/ports"
    answer=$(env -i PATH=/usr/bin:/bin HOME="$dir/home" ERL_EPMD_PORT="$BROKER_EPMD_PORT" \
        erl_call -c "$(cat "$dir/home/.erlang.cookie")" -n "operon$BROKER_PORT@localhost" \
        -e <<<"$2") || return 1
    case $answer in
        "{ok, "*"}") answer=${answer#"{ok, "} && printf '%s\n' "${answer%"}"}" ;;
        *) echo "$answer" >&2 && return 1 ;;
    esac
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    set -u
    command=${1:-}
    [ -n "${2:-}" ] || command=usage
    case $command in
        start | stop | kill9 | wipe | restart | url | ctl | eval | pid)
            shift
            "broker_$command" "$@"
            ;;
        *)
            sed -n 's/^# \{0,1\}//p' "$0" | head -n 16 | tail -n +2 >&2
            exit 2
            ;;
    esac
fi
