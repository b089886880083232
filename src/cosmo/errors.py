"""The one exception for what a user got wrong."""


class InputError(ValueError):
    """Bad input: the message is one line that names the field, the value and what is allowed."""
