"""Reads the metrics of one service again and again; what cannot be read is silence."""

import asyncio
import random
from collections.abc import Callable

from cosmo.live.readings.metering import ImplausibleError, Meter, Reading
from cosmo.live.readings.pages import Page
from cosmo.live.realtime import RealClock

MOST_BYTES = 2_000_000  # of a page
_SHORT = 50_000  # characters that are read in a moment; who is asked to decide must not wait longer

Heard = Callable[[Reading, float], None]  # a reading, and when it was made, in ms of the node
Attempted = Callable[[str, str], None]  # what became of an attempt, one of these, and why
READ, FAILED, IMPLAUSIBLE = "read", "failed", "implausible"


class Scraper:
    """Asks one server for one page; its readings go to whoever has made it.

    `silent` is called when the last reading is older than `silent_ms`, and at once after a page
    that cannot be true.
    """

    def __init__(
        self,
        page: Page,
        meter: Meter,
        clock: RealClock,
        every_ms: float,
        silent_ms: float,
    ) -> None:
        self._page, self._meter = page, meter
        self._clock, self._every_ms, self._silent_ms = clock, every_ms, silent_ms
        self._task: asyncio.Task[None] | None = None
        self._last_ms = clock.now()

    def begin(self, heard: Heard, attempted: Attempted, silent: Callable[[], None]) -> None:
        """Start to read the page at regular intervals."""
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._keep(heard, attempted, silent))

    async def _keep(self, heard: Heard, attempted: Attempted, silent: Callable[[], None]) -> None:
        clock, scale = self._clock, self._clock.scale / 1000.0
        # Pages of many services, or of one for many pickers, are not asked for in one moment.
        await asyncio.sleep(random.random() * self._every_ms * scale)
        while True:
            asked_ms, result, why = clock.now(), READ, ""
            try:
                async with asyncio.timeout(self._silent_ms * scale):
                    text = await self._page.text()
                made_ms = 0.5 * (asked_ms + clock.now())
                if len(text) < _SHORT:
                    reading = self._meter.read(text, made_ms)
                else:
                    reading = await asyncio.to_thread(self._meter.read, text, made_ms)
                heard(reading, made_ms)
            except ImplausibleError as error:
                result, why = IMPLAUSIBLE, str(error)
            except Exception as error:  # whatever it is, the next page is asked for
                result, why = FAILED, f"{type(error).__name__}: {error}"[:200]
            attempted(result, why)
            now = clock.now()
            if result == READ:
                self._last_ms = made_ms
            elif result == IMPLAUSIBLE or now - self._last_ms >= self._silent_ms:
                silent()
            await asyncio.sleep(max(asked_ms + self._every_ms - now, 0.0) * scale)

    def stop(self) -> None:
        """Tell of nothing more, from now on."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Stop reading and close the connection."""
        self.stop()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._page.close()
