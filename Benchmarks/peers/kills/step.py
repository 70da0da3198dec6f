"""What an operation does, for commands and for functions alike.

    step.py LEDGER OPERATION SECONDS

Each line of the ledger is one write to the end of the file, so lines of several processes do not
mix. CLOCK_MONOTONIC is the same for all processes of a machine.
"""
import os
import sys
import time


def run(ledger, operation, seconds):
    descriptor = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        note(descriptor, "start", operation)
        time.sleep(seconds)
        note(descriptor, "end", operation)
    finally:
        os.close(descriptor)


def note(descriptor, word, operation):
    line = f"{time.monotonic_ns()} {word} {operation} {os.getpid()}\n"
    os.write(descriptor, line.encode())


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], float(sys.argv[3]))
