"""What a run found: rows of a table, and every expectation that was not met."""
import os
import platform
import sys


class Report:
    def __init__(self):
        self.rows = []
        self.missed = []

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def row(self, phase, what, value):
        self.rows.append((phase, what, value))
        self.say(f"{phase}: {what}: {value}")

    def expect(self, is_met, sentence):
        if not is_met and sentence not in self.missed:
            self.missed.append(sentence)
            self.say(f"NOT MET: {sentence}")

    def refusal(self, answer, where):
        """Checks that a refusal says what it is, in words, and when to come back."""
        fields = answer.fields
        is_said = (answer.status in (429, 503)
                   and fields.get("content-type", "").startswith("application/problem+json")
                   and fields.get("retry-after", "").isdigit()
                   and answer.json().get("detail", "").rstrip().endswith("."))
        self.expect(is_said, f"{where}: a refusal has no status 429 or 503, problem+json with a "
                             f"sentence and Retry-After: {answer.status}, "
                             f"Retry-After {fields.get('retry-after')}, {answer.body[:200]!r}")

    def table(self):
        """Lines that can be copied into docs/RELIABILITY.md."""
        lines = ["| phase | measured | value |", "|---|---|---|"]
        lines += [f"| {phase} | {what} | {value} |" for phase, what, value in self.rows]
        load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
        lines += ["", f"{os.cpu_count()} processors, {platform.system()} {platform.release()}, "
                      f"load average {load} at the end."]
        return "\n".join(lines)


def milliseconds(seconds):
    value = seconds * 1_000
    return f"{value:,.0f} ms" if value >= 10 else f"{value:.1f} ms"


def mebibytes(count):
    return f"{count / (1 << 20):,.0f} MiB"
