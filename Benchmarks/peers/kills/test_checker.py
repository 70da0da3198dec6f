"""The checker finds every lie that is planted in a ledger, and none in an honest one.

    cd Benchmarks/peers && python3 -m unittest kills.test_checker
"""
import unittest

from kills import schedule
from kills.checker import Death, Facts, back, check, parse, recoveries, running

BEFORE = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
HONEST = [
    (1.0, "start", "a", 10), (1.1, "end", "a", 10),
    (1.2, "start", "b", 11), (1.2, "start", "c", 12),
    (1.3, "end", "b", 11), (1.4, "end", "c", 12),
    (1.5, "start", "d", 13), (1.6, "end", "d", 13),
]


def lines(entries):
    return parse("".join(f"{round(time * 1e9)} {word} {name} {process}\n"
                         for time, word, name, process in entries))


def facts(**changes):
    known = {"before": BEFORE, "acknowledged": set(BEFORE),
             "outcomes": dict.fromkeys(BEFORE, "succeeded"), "began": 1.0, "ended": 4.0}
    return Facts(**{**known, **changes})


def wrong(entries, **changes):
    """What the checker finds, without what it finds nothing of."""
    found = check(lines(entries), facts(**changes))
    return {name: operations for name, operations in found.items() if operations}


class LiesAreFound(unittest.TestCase):
    def test_an_honest_ledger_is_clean(self):
        self.assertEqual(wrong(HONEST), {})

    def test_an_acknowledged_operation_that_never_ended_is_lost(self):
        found = wrong(HONEST[:-1], outcomes={})
        self.assertEqual(found, {"lost": ["d"], "unfinished": ["d"]})

    def test_an_operation_that_nobody_acknowledged_is_not_lost(self):
        found = wrong(HONEST[:-2], acknowledged={"a", "b", "c"}, outcomes={})
        self.assertEqual(found, {"unfinished": ["d"]})

    def test_a_success_without_an_end_is_invented(self):
        self.assertEqual(wrong(HONEST[:-1])["invented"], ["d"])

    def test_a_failure_of_what_ended_is_changed(self):
        outcomes = {**dict.fromkeys(BEFORE, "succeeded"), "b": "failed"}
        self.assertEqual(wrong(HONEST, outcomes=outcomes), {"changed": ["b"]})

    def test_two_ends_are_doubled_and_two_starts_are_again(self):
        second = [(1.7, "start", "d", 14), (1.8, "end", "d", 14)]
        held = [Death(1.55, 1.56, "machine", ["d"])]
        found = wrong(HONEST + second, deaths=held)
        self.assertEqual(found, {"doubled": ["d"], "again": ["d"]})

    def test_a_second_start_without_a_kill_is_unprovoked(self):
        second = [(11.7, "start", "d", 14), (11.8, "end", "d", 14)]
        self.assertEqual(wrong(HONEST + second)["unprovoked"], ["d"])
        late = [Death(11.75, 11.76, "machine", ["d"])]
        self.assertEqual(wrong(HONEST + second, deaths=late)["unprovoked"], ["d"])
        past = [Death(-20.0, -19.9, "broker", [], -9.0)]
        self.assertEqual(wrong(HONEST + second, deaths=past)["unprovoked"], ["d"])

    def test_two_starts_with_one_end_are_not_doubled(self):
        first = [(1.0, "start", "a", 9)]
        held = [Death(0.99, 0.995, "machine", ["a"])]
        self.assertEqual(wrong(first + HONEST, deaths=held), {"again": ["a"]})

    def test_a_start_before_a_dependency_ended_is_early(self):
        early = [(1.35, "start", "d", 13) if entry[1:3] == ("start", "d") else entry
                 for entry in HONEST]
        self.assertEqual(wrong(early), {"early": ["d"]})

    def test_a_line_that_was_cut_short_is_left_out(self):
        self.assertEqual(len(parse("1 start a 10\n2 end a\n\n3 sta")), 1)


class HeldAndRecovered(unittest.TestCase):
    def test_what_runs_in_a_process_is_held(self):
        self.assertEqual(running(lines(HONEST), {11}, 1.25, 1.25), ["b"])
        self.assertEqual(running(lines(HONEST), {11, 12}, 1.25, 1.25), ["b", "c"])
        self.assertEqual(running(lines(HONEST), {10, 11, 12, 13}, 1.7, 1.7), [])

    def test_what_ends_or_starts_during_the_kill_is_held(self):
        self.assertEqual(running(lines(HONEST), {10, 11, 12, 13}, 1.35, 1.55), ["c", "d"])

    def test_the_time_until_the_next_start(self):
        ledger = lines(HONEST[:6] + [(1.45, "start", "d", 9)] + HONEST[6:])
        found = recoveries(ledger, facts(deaths=[Death(1.455, 1.46, "machine", ["d"], 2.455)]))
        self.assertAlmostEqual(found[0]["restarts"][0], 0.045)
        self.assertAlmostEqual(found[0]["ready"], 1.0)

    def test_what_went_on_is_a_survivor(self):
        found = recoveries(lines(HONEST), facts(deaths=[Death(1.55, 1.56, "process", ["d"])]))
        self.assertEqual((found[0]["restarts"], found[0]["survivors"]), ([], 1))

    def test_what_never_started_again_has_no_time(self):
        found = recoveries(lines(HONEST[:-1]), facts(deaths=[Death(1.55, 1.56, "machine", ["d"])]))
        self.assertEqual((found[0]["restarts"], found[0]["survivors"]), ([None], 0))

    def test_throughput_is_back_after_a_gap(self):
        ends = [one / 10 for one in range(100)] + [20 + one / 10 for one in range(100)]
        self.assertAlmostEqual(back(ends, 9.95, 10), 10.05)
        self.assertEqual(back(ends, 3.0, 10), 0.0)
        self.assertIsNone(back(ends, 29.0, 10))


class SchedulesAreDrawn(unittest.TestCase):
    def test_a_seed_gives_the_same_schedule_and_another_seed_another(self):
        self.assertEqual(schedule.kills(1, 240), schedule.kills(1, 240))
        self.assertEqual(schedule.graphs(1, 30), schedule.graphs(1, 30))
        self.assertNotEqual(schedule.kills(1, 240), schedule.kills(2, 240))

    def test_every_kind_has_its_turn(self):
        kinds = [one.kind for one in schedule.kills(3, 240)]
        self.assertEqual(set(kinds[:5]), set(schedule.KINDS))

    def test_dependencies_come_first_and_lie_in_the_layer_before(self):
        for graph in schedule.graphs(1, 30):
            known = set()
            for name, seconds, before in graph.operations:
                self.assertLessEqual(set(before), known)
                self.assertIn(len(set(before)), (0, 2))
                self.assertTrue(schedule.SHORTEST <= seconds <= schedule.LONGEST)
                known.add(name)


if __name__ == "__main__":
    unittest.main()
