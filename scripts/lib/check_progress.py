"""Asks the example service for a count, and reads its stream of events to the end.

usage: check_progress.py PROGRAM
"""

import subprocess
import sys
import urllib.request

LIMIT_SECONDS = 120


def events(address):
    """Pairs of name and data."""
    name = None
    with urllib.request.urlopen(address, timeout=LIMIT_SECONDS) as stream:
        for line in stream:
            key, _, value = line.decode().strip().partition(": ")
            if key == "event":
                name = value
            elif key == "data":
                yield name, value


def check(server):
    line = server.stdout.readline()
    port = int(line.removeprefix("listening on port "))
    url = f"http://127.0.0.1:{port}"
    request = urllib.request.Request(f"{url}/counts?below=100000", method="POST")
    with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
        assert answer.status == 202, answer.status
        path = answer.headers["location"]
    seen = list(events(url + path))
    done = [int(value.split("/")[0]) for name, value in seen if name == "progress"]
    assert done == sorted(done), seen
    assert done[-1] == 10, seen
    assert seen[-1] == ("result", "9592"), seen
    print(f"{len(seen)} events, the last: {seen[-1]}")


def main():
    with subprocess.Popen(
        [sys.argv[1], "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            check(server)
        finally:
            server.terminate()
            try:
                server.wait(LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                raise
    assert server.returncode == 0, server.returncode


main()
