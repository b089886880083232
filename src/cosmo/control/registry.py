"""All methods that a laboratory can play: the deployable ones, and the yardsticks."""

from cosmo.control.yardsticks import FullInformation, SharedKnowledge
from cosmo.errors import InputError
from cosmo.node import Method
from cosmo.policy import registry
from cosmo.policy.trained import Trained

METHODS: dict[str, type[Method]] = {
    **registry.METHODS,
    "full-information": FullInformation,
    "shared-knowledge": SharedKnowledge,
}

# All that can be played without training first.
BASELINES = tuple(name for name, kind in METHODS.items() if not issubclass(kind, Trained))


def method(spec: str) -> Method:
    """A method by its name.

    Args:
        spec: A name of `cosmo methods`, `file.py:Class`, `onnx:policy.onnx` or `sb3:model.zip`,
            with parameters as `:name=value,name=value`.

    Returns:
        The method, made with these parameters.

    Raises:
        InputError: In one line, if there is none of that name, or a parameter is not allowed.

    """
    return registry.method(spec, METHODS)


def kind_of(spec: str, known_only: bool = False) -> tuple[type[Method], dict[str, str]]:
    """The class that a method's name stands for, and the parameters that the name sets.

    `known_only`: InputError also for a method of a file, which would be run.
    """
    if known_only and spec.partition(":")[0].endswith(".py"):
        raise InputError(f"method = {spec!r}: is that of a file")
    return registry.kind_of(spec, METHODS)
