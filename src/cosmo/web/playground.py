"""The playground: a page with sliders, worlds that are played ahead for it, and what it exports."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from cosmo.control import method
from cosmo.errors import InputError
from cosmo.files import made_folder, whole_file
from cosmo.report.page import write_episodes
from cosmo.report.recording import record
from cosmo.scenario import dump, load
from cosmo.web.ahead import Ahead
from cosmo.web.server import application
from cosmo.web.settings import SEED, Chosen, chosen_from, first_choice, offered, scenario_of
from cosmo.workload import episode

_FIRST_MS, _PIECE_MS = 200.0, 100.0  # of simulated time; the first piece is there at once
_LONGEST_MS, _SHORTEST_MS, _MOST_TASKS = 20_000.0, 2_000.0, 20_000
# Between two pieces, at first and once so much is there: the page needs the processor as well.
_SOON_S, _LATER_S, _ENOUGH_MS = 0.02, 0.2, 2_000.0


class Playground:
    """What is chosen, and the pieces of it that have been played; whoever listens gets them all."""

    def __init__(self, out: Path) -> None:
        self._out, self._exports = out, 0
        self.number = 0  # of the choice; a new one makes the pieces of the last one void
        self._pieces: list[dict[str, Any]] = []
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()  # two choices at once come one after the other
        self.chosen = first_choice()

    async def choose(self, told: Any) -> dict[str, Any]:
        """Play something else from now on. Raises InputError, and goes on, if it cannot be."""
        await self.begin(chosen_from(told))
        return {"number": self.number}

    async def end(self) -> None:
        """Stop playing and wait until the background task has ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def begin(self, chosen: Chosen) -> None:
        """Play this from now on. Raises InputError, and goes on, if it cannot be."""
        worlds = _worlds_of(chosen)
        async with self._turn:
            await self.end()
            await self._announce(chosen, worlds)
            self._task = asyncio.create_task(self._play(worlds))

    async def _announce(self, chosen: Chosen, worlds: list[Ahead]) -> None:
        async with self._changed:
            self.chosen, self.number = chosen, self.number + 1
            self._pieces = [
                {
                    "kind": "begin",
                    "number": self.number,
                    "chosen": asdict(chosen),
                    "sites": [world.site() for world in worlds],
                }
            ]
            self._changed.notify_all()

    async def _play(self, worlds: list[Ahead]) -> None:
        until_ms = _FIRST_MS
        try:
            while not all(world.over for world in worlds):
                views = [await asyncio.to_thread(world.on, until_ms) for world in worlds]
                await self._add({"kind": "piece", "number": self.number, "views": views})
                until_ms += _PIECE_MS
                await asyncio.sleep(_SOON_S if until_ms < _ENOUGH_MS else _LATER_S)
        except Exception as error:  # of a method
            await self._add({"kind": "error", "number": self.number, "error": str(error)})
        finally:
            for world in worlds:
                world.stop()

    async def _add(self, piece: dict[str, Any]) -> None:
        async with self._changed:
            self._pieces.append(piece)
            self._changed.notify_all()

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """What can be chosen, then all pieces of what is chosen, and of what is chosen later."""
        yield {"kind": "offer", **offered()}
        number, place = 0, 0
        while True:
            async with self._changed:
                await self._changed.wait_for(
                    lambda: self.number != number or place < len(self._pieces)  # noqa: B023
                )
                if self.number != number:
                    number, place = self.number, 0
                new, place = self._pieces[place:], len(self._pieces)
            for piece in new:
                yield piece

    async def export(self, told: Any) -> dict[str, Any]:
        """Write the scenario, the command that compares the methods in it, and a recording with its
        page of what is on the screen, up to `until_ms`, into a new folder.
        """
        until_ms: Any = told.get("until_ms") if isinstance(told, dict) else None
        real = isinstance(until_ms, int | float) and not isinstance(until_ms, bool)
        if not real or not 1.0 <= until_ms <= _LONGEST_MS:
            raise InputError(f"until_ms = {until_ms!r}: must be from 1 to {_LONGEST_MS:g}")
        return await asyncio.to_thread(self._export, self.chosen, float(until_ms))

    def _export(self, chosen: Chosen, until_ms: float) -> dict[str, Any]:
        folder = self._new_folder()
        scenario, shown = scenario_of(chosen), scenario_of(chosen, _window_ms(chosen))
        whole = episode(shown, SEED, 0)
        kept = whole.tasks.time_ms < until_ms
        seen = replace(whole, tasks=whole.tasks.taken(kept), window_ms=until_ms)
        recordings = [
            {"title": name, "method": name, **record(shown, method(name), seen, SEED)}
            for name in chosen.methods
        ]
        methods = " ".join(chosen.methods)
        files = {
            f"{scenario.name}.toml": dump(scenario),
            "compare.sh": f"cosmo compare {methods} --scenario {scenario.name}.toml\n",
            **{f"recording-{k}.json": json.dumps(each) for k, each in enumerate(recordings)},
        }
        for name, text in files.items():
            with whole_file(folder / name) as path:
                path.write_text(text, encoding="utf-8")
        write_episodes(recordings, f"CoSMO: {scenario.name}", folder / "map.html")
        return {
            "folder": str(folder),
            "files": [*files, "map.html"],
            "command": files["compare.sh"],
        }

    def _new_folder(self) -> Path:
        """A folder that nobody else has, not even an export at the same time."""
        made_folder(self._out)
        while True:
            folder = self._out / f"play-{self._exports}"
            try:
                folder.mkdir()
            except FileExistsError:
                self._exports += 1
            except OSError as error:
                raise InputError(f"'{folder}': cannot be made ({error.strerror})") from None
            else:
                return folder


def playground_application(port: int, token: str, out: Path) -> Starlette:
    """The playground behind a token."""
    playground = Playground(out)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await playground.begin(playground.chosen)
        yield
        await playground.end()

    answers = {"choose": playground.choose, "export": playground.export}
    title = "CoSMO playground"
    return application("play", title, port, token, playground.events, answers, lifespan)


def _window_ms(chosen: Chosen) -> float:
    """As long as a number of tasks allows: pages have to hold what is played. No longer than the
    preset's own episodes, as devices may walk out of their cells after that.
    """
    own_ms = load(chosen.scenario).episode.window_ms
    rate = chosen.numbers["load"] * chosen.numbers["ens"] / 1000.0
    return min(own_ms, _LONGEST_MS, max(_SHORTEST_MS, _MOST_TASKS / rate))


def _worlds_of(chosen: Chosen) -> list[Ahead]:
    scenario = scenario_of(chosen, _window_ms(chosen))
    workload = episode(scenario, SEED, 0)
    return [Ahead(scenario, name, workload, SEED) for name in chosen.methods]
