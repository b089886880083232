"""The nodes' own behaviour, under a virtual clock, without any network."""

import math

import numpy as np
import pytest
from virtual_clock import VirtualClock

from cosmo import load, method
from cosmo.errors import InputError
from cosmo.live.clock import GENERATION, Emulated
from cosmo.live.core_en import FAR_MS, EnCore
from cosmo.live.dispatcher_runner import DispatcherRunner
from cosmo.live.guarded_dispatcher import GuardedDispatcherRunner
from cosmo.live.limits import Buckets
from cosmo.live.link import Link
from cosmo.live.tasks import Fate
from cosmo.node import DONE, Dispatcher, Method, Updater
from cosmo.policy.rules.run import RuleDispatcher
from live.cores import Moody, Wires, en_node, sn_node, task
from observations import site


def test_a_silent_sn_is_shown_as_far_away_and_not_offloaded_to():
    core, clock, wires = en_node()
    core.silence(1, True)
    seen = core.sight(task(0), 0.0).arrays()
    assert seen.up_backlog_ms[0, 1] == FAR_MS
    assert seen.up_backlog_ms[0, 0] == 0.0
    core.arrive(task(1))  # by turns: to the second SN
    assert wires.sent == []
    clock.run()
    assert wires.answers == {1: Fate.DONE}  # done here instead
    core.silence(1, False)
    core.arrive(task(3))
    assert wires.sent == [(1, 3)]


def test_a_subclass_of_a_rule_decides_and_hears_in_its_own_way():
    heard = []

    class Local(RuleDispatcher):
        def decide(self, tasks):
            return np.zeros(len(tasks), int)

        def observe(self, feedback):
            heard.extend(feedback.task.tolist())

    class Mine(Method):
        def dispatcher(self, site):
            made = method("all-offload").dispatcher(site)
            return Local(site, made.rule, made.state)

    runner = DispatcherRunner(Mine(), site(load("campus")), 0)
    core, clock, wires = en_node(runner=runner)
    for number in (0, 1):
        core.arrive(task(number))
        clock.run()
    assert (wires.sent, wires.answers) == ([], {0: Fate.DONE, 1: Fate.DONE})
    assert heard == [0]


def test_a_dispatcher_hears_on_a_node_wherever_its_observe_is_from():
    """A simulation calls it, too."""

    class Listening(Dispatcher):
        def __init__(self, heard):
            self.observe = lambda feedback: heard.append(feedback.task.tolist())

    class Listens(Method):
        """Is told of all fates."""

        def __init__(self):
            self.heard = []

        def dispatcher(self, site):
            return Listening(self.heard)

    listens = Listens()
    runner = DispatcherRunner(listens, site(load("paper")), 0)
    for number in (3, 4):
        runner.note_fate(number, 0, DONE, True, 5.0)
    runner.deliver_feedback()
    assert listens.heard == [[3, 4]]


def test_a_lost_task_is_done_here_once_if_there_is_time_and_room():
    core, clock, wires = en_node()
    good, late, full = task(0), task(2, deadline_ms=5.0), task(4)
    for each in (good, late, full):
        core.arrive(each)
    core.lost(good)
    core.lost(good)  # told twice, done once
    core.lost(late)
    for number in (5, 7, 9):
        core.station.admit(task(number), 0.0)
    core.lost(full)
    clock.run()
    wanted = {0: Fate.DONE, 2: Fate.FAILED, 4: Fate.FAILED}
    assert {number: wires.answers[number] for number in wanted} == wanted
    core.result(good, b"too late, and from the dead")
    assert good.rerun


def test_a_new_sn_has_an_empty_cache_and_its_work_counts_until_books_know():
    core, _, wires = en_node("periodic", load("campus"))
    core.status(0, 5, 0.0, [4.0, 0.0, 0.0, 1.0])
    core.status(0, 5, 0.0, [3.0, 0.0, 0.0, 1.0])  # old news
    assert wires.acknowledged == [(0, 5)]
    core.restarted(0, 108_000.0 * 7.0)  # seven ms of the SN's full rate
    assert core.caches[0].numbers.tolist() == [0.0] * 4
    assert math.isnan(core.caches[0].source_ms)
    seen = core.sight(task(0), 0.0).arrays()
    assert seen.up_backlog_ms[0].tolist() == [7.0, 0.0]
    assert core.sight(task(0), 3.0).arrays().up_backlog_ms[0, 0] == 4.0
    core.status(0, 0, 1.0, [2.0, 0.0, 0.0, 1.0])  # a new count begins
    assert core.caches[0].sequence == 0


def test_what_is_under_way_counts_when_the_books_are_new():
    core, _, _ = en_node()
    core.arrive(task(0, cycles=108_000.0 * 12.0))
    core.start_over()
    assert core.caches[0].unknown_work_ms == 12.0
    assert core.caches[1].unknown_work_ms == 0.0


class Watchful(Method, Dispatcher):
    """Runs all tasks here, and keeps when it was told that each was decided on and done."""

    def __init__(self):
        self.started, self.decided, self.heard = 0, [], []

    def dispatcher(self, site):
        self.started += 1
        return self

    def decide(self, tasks):
        self.decided.append(float(tasks.time_ms[0]))
        return np.zeros(1, np.int64)

    def observe(self, feedback):
        self.heard += feedback.time_ms.tolist()


def test_a_method_s_time_begins_with_its_load_and_again_after_a_pause():
    watchful = Watchful()
    core, clock, _ = en_node(
        runner=DispatcherRunner(watchful, site(load("campus")), 0), fresh_ms=1000.0
    )
    gap_ms = 1000.0 / core.site.tasks.rate
    # The node has been there for long; then a task a second and a half, each of 10 ms.
    for number, now in enumerate((7000.0, 7100.0, 8600.0, 8605.0)):
        clock.at(now, 0, lambda number=number, now=now: core.arrive(task(number, now - 2.0)))
    clock.at(8607.0, 0, core.start_over)  # somebody else has decided in between
    clock.at(8608.0, 0, lambda: core.arrive(task(4, 8606.0)))
    clock.run()
    first = gap_ms + 2.0
    assert watchful.decided == pytest.approx([first, first + 100.0, first, first + 5.0, first])
    # The first is done 10 ms after its start; what is under way then is heard of in new times.
    assert watchful.heard[0] == pytest.approx(first + 10.0)
    assert watchful.started == 5  # to begin with, before tasks 0, 2 and 4, and in between
    assert max(watchful.heard) < 200.0


def test_a_ue_hears_when_its_budget_is_gone_and_late_work_is_dropped_or_not():
    for drop, recalled, waiting in ((True, [(0, 0)], 0), (False, [], 1)):
        core, clock, wires = en_node(answer_late=True, drop_late=drop)
        gone = task(2, generated_ms=-100.0)
        core.arrive(gone)
        assert wires.answers == {2: Fate.EXPIRED}
        core.arrive(task(0))
        clock.run()
        assert clock.now() == 100.0
        assert wires.answers == {2: Fate.EXPIRED, 0: Fate.EXPIRED}
        assert wires.recalled == recalled
        assert core.in_flight == waiting


def test_dropping_a_waiting_task_gives_its_room_back():
    core, clock, wires = en_node("all-local", load("paper"), answer_late=True, drop_late=True)
    items = [task(k, cycles=18_000.0 * 150.0) for k in range(3)]
    for item in items:
        core.arrive(item)
    state = core.station.state(0.0)
    assert state[0] == 0.0
    core.cancel(items[0])  # running: the one that waits takes its slot
    assert core.station.requests == 2
    core.cancel(items[2])
    core.cancel(items[2])
    clock.run()
    assert wires.answers == {1: Fate.EXPIRED}  # nobody waits for the others
    assert core.station.state(clock.now())[:4] == [2.0, 0.0, 0.0, 240000.0]


@pytest.mark.parametrize("mood", [RuntimeError("oh"), 99, 0.5])
def test_a_method_that_misbehaves_makes_way_and_gets_another_chance(mood):
    seconds, said, moody = [0.0], [], Moody()
    here = site(load("paper"))
    # Slowness is another test: on a busy machine anything may take long.
    names = "moody", "all-offload"
    runner = GuardedDispatcherRunner(
        moody, method("all-offload"), here, 0, 1e6, names, lambda: seconds[0]
    )
    runner.report = lambda who, why: said.append(who)
    core, _, wires = en_node(scenario=load("paper"), runner=runner)
    runner.changed = core.start_over
    core.arrive(task(0))
    assert wires.sent == []
    moody.moods = [mood]
    core.arrive(task(1))
    core.arrive(task(2))
    assert wires.sent == [(0, 1), (0, 2)]  # of the fallback
    assert (runner.name, runner.faults) == ("all-offload", 1)
    seconds[0] = 1.1
    moody.moods = [mood]
    core.arrive(task(3))  # tried again, in vain: now for twice as long
    seconds[0] = 2.9
    core.arrive(task(4))
    assert [number for _, number in wires.sent] == [1, 2, 3, 4]
    seconds[0] = 3.2
    core.arrive(task(5))
    assert (runner.name, len(wires.sent)) == ("moody", 4)
    assert said == ["all-offload", "moody", "all-offload", "moody"]


def test_a_slow_method_makes_way_too():
    class Slow(Moody):
        def decide(self, tasks):
            return np.array([sum(range(300_000)) * 0])

    here = site(load("paper"))
    runner = GuardedDispatcherRunner(Slow(), method("all-offload"), here, 0, slow_ms=1e-3)
    core, _, wires = en_node(scenario=load("paper"), runner=runner)
    runner.changed = core.start_over
    core.arrive(task(0))  # it did answer, and that counts
    core.arrive(task(1))
    assert wires.sent == [(0, 1)]


def test_a_method_without_a_working_fallback_takes_nothing():
    moody, worse = Moody(), Moody()
    moody.moods, worse.moods = [7], [8]
    runner = GuardedDispatcherRunner(moody, worse, site(load("paper")), 0, 1e6)
    core, _, wires = en_node(scenario=load("paper"), runner=runner)
    core.arrive(task(0))
    assert wires.answers == {0: Fate.REJECTED}


def test_updates_keep_to_their_cap_and_say_nothing_twice():
    core, clock, wires = sn_node("periodic:interval_ms=1", until_ms=100.0, least_gap_ms=10.0)
    core.begin()
    clock.run()
    assert [sequence for _, sequence, _ in wires.statuses] == list(range(11))
    core, clock, wires = sn_node("periodic:interval_ms=1", until_ms=100.0, refresh_ms=50.0)
    core.begin()
    clock.at(2.5, 1, lambda: core.acknowledged(0, 2))
    clock.at(60.5, 1, lambda: core.acknowledged(0, core.updates - 1))
    clock.run()
    # Three until the first was acknowledged, then one when that was 50 ms old, and so on until it
    # was acknowledged as well.
    assert core.updates == 3 + 9
    assert core.decisions == 101


def test_an_en_without_tasks_is_told_next_to_nothing():
    rules = {"per_task": 2.0, "idle_ms": 1000.0, "burst": 5.0}
    core, clock, _ = sn_node("periodic:interval_ms=1", until_ms=4000.5, **rules)
    core.begin()
    clock.at(2000.5, 1, lambda: core.arrive(task(0, 2000.0), 0))
    sent = []
    for now in (2000.0, 2010.0, 4000.5):
        clock.at(now, GENERATION, lambda: sent.append(core.updates))
    clock.run()
    # Five to begin with and one a second; two more for a task.
    assert sent == [7, 9, 11]
    assert core.suppressed == core.decisions - 11
    core, clock, _ = sn_node("periodic:interval_ms=1", until_ms=400.0, **rules)
    core.begin()
    for number in range(400):
        clock.at(number + 0.5, 1, lambda number=number: core.arrive(task(number, cycles=100), 0))
    clock.run()
    assert core.suppressed == 0  # who sends tasks is told whatever there is to tell


def test_a_new_state_is_told_at_once():
    core, clock, wires = sn_node("periodic:interval_ms=1", until_ms=30.0, refresh_ms=1e6)
    core.begin()
    clock.at(0.5, 1, lambda: core.acknowledged(0, 0))
    clock.at(10.5, 1, lambda: core.arrive(task(0, 10.0), 0))
    clock.run()
    assert len(wires.statuses) > 1
    assert wires.statuses[1][2][0] == 3.0  # a slot is taken
    assert wires.results == [(0, Fate.DONE)]


def test_an_en_that_is_not_there_is_sent_nothing():
    core, clock, wires = sn_node("periodic", until_ms=1000.0)
    core.met(0, False)
    core.begin()
    clock.run()
    assert wires.statuses == []
    assert core.decisions == 11


def test_each_en_can_be_told_or_not():
    class Choosy(Method, Updater):
        carries = 1

        def updater(self, site):
            return self

        def decide(self, seen):
            return np.array([True]), np.array([np.inf])

        def encode(self, states):
            return states.state[:, :1]

    core, clock, wires = sn_node(Choosy())
    whom = np.array([[True]])
    send, _, _ = core.runner.decide(core.observation(0.0), 1)
    assert send.tolist() == np.broadcast_to(whom[0], 1).tolist()
    core.begin()
    clock.run()
    assert [en for en, _, _ in wires.statuses] == [0]


def test_an_updater_that_fails_is_silent_for_a_while_and_reported():
    class Broken(Method, Updater):
        carries = 4

        def updater(self, site):
            return self

        def decide(self, seen):
            raise RuntimeError("no")

    core, clock, wires = sn_node(Broken(), until_ms=1000.0)
    said = []
    core.runner.report = said.append
    core.begin()
    clock.run()
    assert core.decisions == core.runner.faults == len(said) == 11
    assert "Broken" in said[0]
    assert wires.statuses == []


def test_an_sn_drops_what_is_late_and_refuses_what_does_not_fit():
    core, clock, wires = sn_node("never", drop_late=True)
    core.arrive(task(0, generated_ms=-200.0), 0)
    assert wires.results == [(0, Fate.EXPIRED)]
    for number in range(1, 12):
        core.arrive(task(number, cycles=27_000.0 * 200.0), 0)
    assert wires.results[1:] == [(10, Fate.REFUSED), (11, Fate.REFUSED)]
    clock.run()
    assert clock.now() == 100.0
    assert wires.results[3:] == [(number, Fate.EXPIRED) for number in range(1, 10)]
    assert core.station.requests == 0
    assert core.recent.numbers(100.0) == (0.0, 0.0, 1.0)


def test_buckets_fill_with_time_and_belong_to_one_client():
    seconds = [0.0]
    buckets = Buckets(10.0, 2, lambda: seconds[0])
    assert [buckets.take("a") for _ in range(3)] == [True, True, False]
    assert buckets.take("b")
    seconds[0] = 0.1
    assert [buckets.take("a") for _ in range(2)] == [True, False]


def test_a_method_s_mistake_names_it():
    moody = Moody()
    moody.moods = [12]
    core, _, _ = en_node(runner=DispatcherRunner(moody, site(load("campus")), 0))
    with pytest.raises(InputError, match="Moody"):
        core.arrive(task(0))


def test_late_timers_do_not_add_up_in_an_emulated_slot():
    class Late(VirtualClock):
        def at(self, time_ms, kind, call):
            return super().at(time_ms + 3.0, kind, call)

    clock, begun = Late(), []
    here, wires = site(load("paper", ["en.slots=1"])), Wires()
    runner = DispatcherRunner(method("all-local"), here, 0)
    core = EnCore(here, 0, runner, clock, Emulated(clock), wires, [Link(here.links, 0, 0, up=True)])
    core._worker = emulated = Emulated(clock)
    run = emulated.run
    emulated.run = lambda item, finish, *rest: (begun.append(finish), run(item, finish, *rest))[1]
    for number in range(4):
        core.arrive(task(number))  # ten ms each
    clock.run()
    assert begun == [10.0, 20.0, 30.0, 40.0]
    assert clock.now() == 43.0
    assert set(wires.answers.values()) == {Fate.DONE}
