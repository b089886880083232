"""What an EN and a picker have in common: a method that decides, watched and replaceable."""

from collections.abc import Callable, Sequence
from typing import Any

from cosmo.errors import InputError
from cosmo.live.config import NodeConfig
from cosmo.live.core_en import EnCore, EnRules
from cosmo.live.decisions import DecisionLog
from cosmo.live.guarded_dispatcher import GuardedDispatcherRunner
from cosmo.live.link import Link
from cosmo.live.logs import Log
from cosmo.live.metrics import Measured
from cosmo.live.realtime import RealClock
from cosmo.live.samples import Histogram, PathOverhead
from cosmo.live.server import NodeServer
from cosmo.live.shadow import Shadow
from cosmo.live.sight import Sight
from cosmo.live.smoothed import Estimates
from cosmo.live.tasks import Fate, Item
from cosmo.node import NOTHING, Method

_WARM_UPS = 3

MakeCore = Callable[..., Any]  # an EnCore from what its constructor takes


class DecidingServer(NodeServer):
    """A node whose method decides on tasks; a subclass is the transport of its core."""

    def __init__(
        self,
        config: NodeConfig,
        method: Method,
        clock: RealClock,
        log: Log,
        boot: int,
        peers: Sequence[Any],
        core: MakeCore = EnCore,
    ) -> None:
        """`peers` are the SNs that it starts with; `core` makes the node itself."""
        super().__init__(config, method, clock, log, boot, peers)
        self.delay_ms = Histogram()  # of tasks with a result
        self.overhead = PathOverhead(config.behaviour.most_guard_ms)
        self.estimates = Estimates(self.site.tasks.mean_cycles)
        self.decisions = DecisionLog(
            config.log.decisions, config.log.rows, self._write_failed, config.log.seconds
        )
        links = [Link(self.site.links, config.number, sn, up=True) for sn in range(len(peers))]
        runner = self._runner(config, method)
        rules = self._rules(config)
        self.core = core(self.site, config.number, runner, clock, self.worker, self, links, rules)
        runner.changed = self.core.start_over
        self._take_behaviour(config)
        self.core.on_choice, self.core.on_end = self._chosen, self._ended
        self.shadow = self._shadow(config, method.carries)

    def _runner(self, config: NodeConfig, method: Method) -> GuardedDispatcherRunner:
        from cosmo.policy.registry import method as named

        wanted = config.method
        fallback = named(wanted.fallback)
        if fallback.carries not in (NOTHING, method.carries):
            raise InputError(
                f"method.fallback = {wanted.fallback!r}: goes by statuses of {fallback.carries}"
                f" numbers, but those of {wanted.use!r} have {method.carries}"
            )
        names = wanted.use, wanted.fallback
        made = GuardedDispatcherRunner(
            method, fallback, self.site, self.config.number, wanted.slow_ms, names
        )
        made.report = self._deciding
        made.remarks.tell = lambda line: self.log.warning("outside of its training", what=line)
        return made

    def _shadow(self, config: NodeConfig, used: int) -> Shadow | None:
        """`used` is how many numbers the statuses have that come here."""
        spec = config.method.shadow
        if not spec:
            return None
        made = Shadow.of(spec, self.site, self.config.number)
        if made.carries not in (NOTHING, used):
            if used != NOTHING:
                raise InputError(
                    f"method.shadow = {spec!r}: goes by statuses of {made.carries} numbers, but"
                    f" those of {config.method.use!r} have {used}"
                )
            self.log.warning("the shadow goes by statuses, and none will come", shadow=spec)
        return made

    def _rules(self, config: NodeConfig) -> EnRules:
        behaviour = config.behaviour
        return EnRules(
            answer_late=True,
            drop_late=behaviour.late == "drop",
            expires=behaviour.lost == "expire",
            fresh_ms=behaviour.fresh_ms,
        )

    def reload(self, config: NodeConfig, method: Method) -> None:
        """Take over what may change while a node runs; all of it has been validated."""
        # A method that goes by no status can leave those that come alone.
        self._check_reload(config, method.carries or self._carries)
        runner, decisions = self._runner(config, method), None
        shadow = self._shadow(config, method.carries or self._carries)
        if config.log != self.config.log:
            decisions = DecisionLog(
                config.log.decisions, config.log.rows, self._write_failed, config.log.seconds
            )
        # All is made; from here on nothing is refused.
        runner.changed = self.core.start_over
        self.core.runner, self.shadow = runner, shadow
        self.core.start_over()
        self._expect(method)
        if decisions is not None:
            self.decisions.close(wait=False)
            self.decisions = decisions
        self._take_limits(config)
        self._take_behaviour(config)

    def _expect(self, method: Method) -> None:
        """Statuses are those of another method from now on."""

    def _take_behaviour(self, config: NodeConfig) -> None:
        self.core.rules = self._rules(config)
        self.overhead.most_ms = config.behaviour.most_guard_ms
        guarded = config.behaviour.guard
        self.core.guard_ms = self.overhead.guard_ms if guarded else lambda: 0.0

    def _deciding(self, who: str, why: str) -> None:
        self.counters.add("method_changes_total", to=who)
        self.log.warning("the deciding method has changed", now=who, why=why)

    def _write_failed(self, why: str) -> None:
        self.log.warning("the decision log cannot be written", why=why)

    def _warm_up(self) -> None:
        """Decide on tasks that nobody has sent, so that the first that somebody has sent does not
        pay for what is done only once.
        """
        tasks = self.site.tasks
        fake = Item(0, 0.0, tasks.deadline_ms[1], tasks.input_bytes[1], tasks.mean_cycles, ue=-1)
        fake.residual_ms = self.config.expected.residual_ms
        for _ in range(_WARM_UPS):
            self.core.runner.choose(self.core.sight(fake, self.clock.now()))
        self.core.start_over()

    def _name_of(self, action: int) -> str:
        """Of what was decided, for people: local, an SN's name, or reject."""
        raise NotImplementedError

    def _chosen(self, seen: Sight, item: Item) -> None:
        self.counters.add("decisions_total", action=self._name_of(item.action))
        if self.decisions.wanted:
            self.decisions.note(seen.arrays(), item)
        if self.shadow is not None:
            self._loop.call_soon(self.shadow.ask, seen.arrays(), item.action, self.counters)

    def _ended(self, item: Item, fate: Fate) -> None:
        self.counters.add("tasks_total", fate=fate.name)
        if item.rerun:
            self.counters.add("reruns_total")
        now = self.clock.now()
        if fate in (Fate.DONE, Fate.LATE):
            self.delay_ms.add(now - item.generated_ms)
        self.decisions.add(item, fate, now)

    def measured(self, now: float) -> list[Measured]:
        """What operators look at, beside what is counted."""
        runner = self.core.runner
        return [
            *super().measured(now),
            ("calls", {}, float(self.in_flight)),
            ("guard_seconds", {}, self.core.guard_ms() / 1000.0),
            ("path_overhead_seconds", {}, self.overhead.window),
            ("delay_seconds", {}, self.delay_ms),
            ("on_fallback", {}, float(runner.on_fallback)),
            ("method_info", {"method": runner.name}, 1.0),
            ("decision_seconds", {}, runner.decision_ms),
        ]

    def facts(self) -> dict[str, float]:
        """How it went so far: also how long decisions took, in ms."""
        runner = self.core.runner
        decided = {"decision_p99_ms": runner.decision_ms.quantile(0.99), "faults": runner.faults}
        return {**super().facts(), **decided, "guard_ms": self.core.guard_ms()}

    @property
    def in_flight(self) -> int:
        """Tasks that have not been answered."""
        raise NotImplementedError

    def drain(self) -> None:
        """Refuse new tasks from now on; those in flight are completed."""
        self.draining = True

    async def close(self) -> None:
        """Write what is kept."""
        self.decisions.close()
