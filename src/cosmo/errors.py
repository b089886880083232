"""What can go wrong that is not a mistake in the code."""


class InputError(ValueError):
    """Bad input: the message is one line that names the field, the value and what is allowed."""


class EngineError(RuntimeError):
    """An engine of others failed or did not answer: one line that names the world by its seed."""
