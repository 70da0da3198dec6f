"""What a ledger says about a run. It reads no clock and starts nothing, so lies can be planted.

`Facts` is what the harness knows: the graphs, what the system acknowledged, how it says that each
operation ended, and the kills. `check` compares that with the ledger.
"""
import collections
import dataclasses
import statistics

# Throughput is back when this many seconds have this share of the ends that they should have.
WINDOW, SHARE = 3.0, 0.8
# A kill may show so many seconds after what was killed is back: a message that was sent twice
# because its confirmation was lost may wait until workers have connected again.
SHORTLY = 10.0


@dataclasses.dataclass
class Line:
    """A line of the ledger; its time is in seconds of CLOCK_MONOTONIC."""

    time: float
    word: str
    operation: str
    process: int


@dataclasses.dataclass
class Death:
    """A kill that happened between two moments, and the operations that ran in what it killed."""

    time: float
    until: float
    kind: str
    held: list
    ready: float | None = None


@dataclasses.dataclass
class Facts:
    # The dependencies of each operation that was submitted.
    before: dict
    acknowledged: set
    # How the system says that operations ended: "succeeded", or another word.
    outcomes: dict
    deaths: list = dataclasses.field(default_factory=list)
    # From the first graph to the last.
    began: float = 0.0
    ended: float = 0.0


def parse(text):
    """The lines of a ledger; one that a kill cut short is left out."""
    lines = []
    for one in text.splitlines():
        words = one.split()
        if len(words) == 4 and words[1] in ("start", "end"):
            lines.append(Line(int(words[0]) / 1e9, words[1], words[2], int(words[3])))
    return lines


def running(lines, processes, since, until):
    """The operations that ran in these processes at some time between the two."""
    found = {}
    for line in lines:
        if line.process not in processes:
            continue
        key = line.operation, line.process
        if line.word == "start" and line.time <= until:
            found[key] = True
        elif line.word == "end" and line.time < since:
            found.pop(key, None)
    return sorted({operation for operation, _ in found})


def times(lines, word):
    """When each operation started, or ended, in order."""
    found = collections.defaultdict(list)
    for line in sorted(lines, key=lambda one: one.time):
        if line.word == word:
            found[line.operation].append(line.time)
    return found


def check(lines, facts):
    """The names of the operations with which something is wrong, by what it is."""
    starts, ends = times(lines, "start"), times(lines, "end")
    return {
        # Acknowledged, and never run to the end.
        "lost": sorted(one for one in facts.acknowledged if one not in ends),
        # Submitted, but not ended, whether acknowledged or not.
        "unfinished": sorted(one for one in facts.before if one not in ends),
        # Run to the end more than once.
        "doubled": sorted(one for one, found in ends.items() if len(found) > 1),
        # Started more than once.
        "again": sorted(one for one, found in starts.items() if len(found) > 1),
        # Started before a dependency had ended for the first time.
        "early": sorted(
            one for one, found in starts.items()
            if any(other not in ends or ends[other][0] > found[0] for other in facts.before[one])),
        # Run to the end, but reported as something other than a success.
        "changed": sorted(
            one for one, outcome in facts.outcomes.items()
            if outcome != "succeeded" and one in ends),
        # Reported as a success, but never run to the end.
        "invented": sorted(
            one for one, outcome in facts.outcomes.items()
            if outcome == "succeeded" and one not in ends),
        # Started more than once although nothing was killed or away meanwhile, or shortly before.
        "unprovoked": sorted(
            one for one, found in starts.items()
            if len(found) > 1 and not any(
                death.time < found[-1] and found[0] < (death.ready or death.until) + SHORTLY
                for death in facts.deaths)),
    }


def recoveries(lines, facts):
    """For each death: when what it held started again, and when throughput was back, in seconds
    after it; None if that never happened."""
    starts, ends = times(lines, "start"), times(lines, "end")
    all_ends = sorted(time for found in ends.values() for time in found)
    rate = len(facts.before) / max(facts.ended - facts.began, WINDOW)
    result = []
    for death in facts.deaths:
        restarts, survivors = [], 0
        for one in death.held:
            later = [time for time in starts[one] if time > death.until]
            # What ended although its worker was killed, and never started again, was kept.
            if not later and any(time > death.time for time in ends[one]):
                survivors += 1
            else:
                restarts.append(later[0] - death.time if later else None)
        result.append({
            "kind": death.kind,
            "restarts": restarts,
            "survivors": survivors,
            "throughput": back(all_ends, death.time, rate),
            "ready": death.ready - death.time if death.ready else None,
        })
    return result


def back(ends, since, rate):
    """The seconds until a window begins in which enough operations end; None if none does."""
    wanted = max(1, round(WINDOW * SHARE * rate))
    candidates = [since] + [time for time in ends if time > since]
    for begin in candidates:
        if sum(begin < time <= begin + WINDOW for time in ends) >= wanted:
            return begin - since
    return None


def summary(values):
    """Median and highest of what is known."""
    known = [one for one in values if one is not None]
    return (statistics.median(known), max(known)) if known else None
