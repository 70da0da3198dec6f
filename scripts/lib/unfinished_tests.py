#!/usr/bin/env python3
"""Prints the tests that began and have not ended, from the event stream of the test runner."""
import json
import sys

begun = {}
with open(sys.argv[1], encoding="utf-8", errors="replace") as stream:
    for line in stream:
        try:
            record = json.loads(line)
        except ValueError:
            continue  # The last line may be cut.
        payload = record.get("payload", {})
        if record.get("kind") != "event" or "testID" not in payload:
            continue
        if payload["kind"] == "testStarted":
            begun[payload["testID"]] = True
        elif payload["kind"] in ("testEnded", "testSkipped"):
            begun.pop(payload["testID"], None)
for test in begun:
    print(f"✘ Test {test} has not ended")
