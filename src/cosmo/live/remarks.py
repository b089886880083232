"""What a method says of what it meets (`Dispatcher.remark`) is passed on to people once."""

import re
from collections.abc import Callable

LOOK_EVERY = 256  # decisions, after which a method is asked
_MOST = 32  # lines that a method may say in the life of a node


class Remarks:
    """Of the method of one node."""

    def __init__(self) -> None:
        self.tell: Callable[[str], None] = lambda line: None
        self._told: set[str] = set()
        self._decisions = 0

    def decided(self, remark: Callable[[], str]) -> None:
        """A decision was taken; now and then `remark` is asked. Never raises."""
        self._decisions += 1
        if self._decisions % LOOK_EVERY or len(self._told) >= _MOST:
            return
        try:
            line = str(remark())
        except Exception as error:  # a method of others; a warning must not stop a node
            line = f"its remark failed: {error}"
        about = re.sub(r"[0-9.]+", "", line)  # numbers in a line change, what it is about does not
        if line and about not in self._told:
            self._told.add(about)
            self.tell(line)
