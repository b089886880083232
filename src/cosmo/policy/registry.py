"""Methods by name: `all-local`, `periodic:interval_ms=37`, `my_policies.py:MyMethod`."""

import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, get_type_hints

from cosmo.errors import InputError, did_you_mean
from cosmo.node import Method
from cosmo.node.guard import check_carries, reason
from cosmo.policy.outside import Onnx, Sb3
from cosmo.policy.parameters import parsed
from cosmo.policy.rules.adaptive import AdaptivePrices
from cosmo.policy.rules.admission import AdmissionControl
from cosmo.policy.rules.aoci_online import AociOnline
from cosmo.policy.rules.aoi_threshold import AoiThreshold
from cosmo.policy.rules.aov_gap import AovGap
from cosmo.policy.rules.back_off import BackOff
from cosmo.policy.rules.fixed import AllLocal, AllOffload, LocalUntilFull, Random
from cosmo.policy.rules.idle_queue import JoinIdleQueue
from cosmo.policy.rules.in_flight import InFlight
from cosmo.policy.rules.incorrect_information import AgeOfIncorrectInformation
from cosmo.policy.rules.join_below_threshold import JoinBelowThreshold
from cosmo.policy.rules.leaky_bucket import LeakyBucket
from cosmo.policy.rules.periodic import Never, Periodic, by_estimate
from cosmo.policy.rules.power_of_d import Piggyback, PowerOfD
from cosmo.policy.rules.prequal import Prequal
from cosmo.policy.rules.priced import PricedBooks
from cosmo.policy.rules.queue_views import LocalShortestQueue, SparseJoinShortestQueue
from cosmo.policy.rules.self_tracking import SelfTracking
from cosmo.policy.trained import TRAINED, Trained

METHODS: dict[str, type[Method]] = {
    "all-local": AllLocal,
    "all-offload": AllOffload,
    "local-until-full": LocalUntilFull,
    "random": Random,
    "never": Never,
    "periodic": Periodic,
    "aoi-threshold": AoiThreshold,
    "aov-gap": AovGap,
    "aoci-online": AociOnline,
    "aoi-threshold/estimate": by_estimate("aoi-threshold", AoiThreshold),
    "aov-gap/estimate": by_estimate("aov-gap", AovGap),
    "aoci-online/estimate": by_estimate("aoci-online", AociOnline),
    "prequal": Prequal,
    "admission-control": AdmissionControl,
    "power-of-d": PowerOfD,
    "piggyback": Piggyback,
    "jbt": JoinBelowThreshold,
    "jiq": JoinIdleQueue,
    "lsq": LocalShortestQueue,
    "sparse-jsq": SparseJoinShortestQueue,
    "aoii": AgeOfIncorrectInformation,
    "in-flight": InFlight,
    "leaky-bucket": LeakyBucket,
    "self-tracking": SelfTracking,
    "back-off": BackOff,
    "priced-books": PricedBooks,
    "adaptive-prices": AdaptivePrices,
    **TRAINED,
}

# Methods that are made of a file of others' agents: onnx:policy.onnx, sb3:model.zip.
FROM_FILES: dict[str, type[Method]] = {"onnx": Onnx, "sb3": Sb3}

_PLAIN = (bool, int, float)  # types of defaults that say what a parameter is

_PERIODIC = re.compile(r"periodic-(\d+(?:\.\d+)?)")  # periodic-37 is periodic:interval_ms=37


def method(spec: str, known: Mapping[str, type[Method]] = METHODS) -> Method:
    """A method from its name or `file.py:Class`, with parameters as `:name=value,name=value`.

    Raises InputError in one line for an unknown name, a bad parameter or a file that fails.
    """
    return made(spec, *_resolve(spec, known))


def made(spec: str, kind: type[Method], parameters: str) -> Method:
    """A method of this class with parameters as text, `name=value,name=value`.

    Raises InputError in one line that names it as `spec`.
    """
    try:
        arguments = _arguments(spec, kind, parameters)
    except InputError:
        raise
    except BaseException as error:  # of annotations of the user's
        text = reason(error)
        raise InputError(f"method = {spec!r}: its parameters cannot be read ({text})") from error
    try:
        found = kind(**arguments)
        check_carries(found)
    except InputError as error:
        raise InputError(f"method = {spec!r}: {error}") from None
    except BaseException as error:  # of a class of the user's
        raise InputError(f"method = {spec!r}: cannot be made ({reason(error)})") from error
    return found


def parameters_of(kind: type[Method]) -> dict[str, inspect.Parameter]:
    """What can be set about a method."""
    if kind.__init__ is object.__init__:
        return {}
    found = dict(inspect.signature(kind).parameters)
    return {
        name: parameter
        for name, parameter in found.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }


def types_of(kind: type[Method]) -> dict[str, Any]:
    """The type of each parameter of a method: its annotation, else its default's, else text."""
    allowed = parameters_of(kind)
    hints = get_type_hints(kind.__init__, include_extras=True) if allowed else {}
    plain = {
        name: type(parameter.default) if type(parameter.default) in _PLAIN else str
        for name, parameter in allowed.items()
    }
    return {name: hints.get(name, plain[name]) for name in allowed}


def kind_of(
    spec: str, known: Mapping[str, type[Method]] = METHODS
) -> tuple[type[Method], dict[str, str]]:
    """The class that a method's name stands for, and the parameters that the name sets, as text.

    Raises InputError in one line if there is none.
    """
    kind, parameters = _resolve(spec, known)
    items = (item.partition("=") for item in filter(None, parameters.split(",")))
    return kind, {name.strip(): value.strip() for name, _, value in items}


def with_parameters(spec: str, parameters: Mapping[str, object]) -> str:
    """The name of the same method with further parameters, as it is written everywhere."""
    if not parameters:
        return spec
    own_colon = 1 if spec.partition(":")[0].endswith(".py") else 0  # file.py:Class
    comma = "," if spec.count(":") > own_colon else ":"
    return f"{spec}{comma}{','.join(f'{name}={value}' for name, value in parameters.items())}"


def _resolve(spec: str, known: Mapping[str, type[Method]]) -> tuple[type[Method], str]:
    short = _PERIODIC.fullmatch(spec)
    if short:
        spec = f"periodic:interval_ms={short[1]}"
    name, _, rest = spec.partition(":")
    if name in known:
        return known[name], rest
    if name in FROM_FILES:
        return FROM_FILES[name], f"file={rest}"
    if name.endswith(".py"):
        class_name, _, parameters = rest.partition(":")
        return _from_file(spec, Path(name), class_name), parameters
    close = did_you_mean(name, known)
    if close:
        raise InputError(f"method = {spec!r}: unknown{close} (cosmo methods lists all)")
    names = ", ".join(known)
    raise InputError(
        f"method = {spec!r}: unknown; must be one of {names}, file.py:Class,"
        " sb3:model.zip or onnx:policy.onnx"
    )


class _FreshLoader(SourceFileLoader):
    """Compiles the source as it is now.

    Python's own bytecode cache compares size and whole seconds: a file that is changed twice within
    a second, as a script may do, would be played in its old form.
    """

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _from_file(spec: str, path: Path, class_name: str) -> type[Method]:
    if not path.is_file():
        raise InputError(f"method = {spec!r}: there is no file '{path}'")
    name = f"cosmo_user_{path.stem}"
    loader = _FreshLoader(name, str(path))
    module_spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert module_spec is not None
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[module_spec.name] = module
    try:
        loader.exec_module(module)
    except BaseException as error:
        text = reason(error)
        raise InputError(f"method = {spec!r}: '{path}' fails on import ({text})") from error
    classes = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Method)
        and value.__module__ == module.__name__
    ]
    if class_name not in classes:
        found = ", ".join(classes) or "none"
        close = did_you_mean(class_name, classes)
        raise InputError(f"method = {spec!r}: no such Method in '{path}' (found: {found}){close}")
    kind: type[Method] = getattr(module, class_name)
    return kind


def _arguments(spec: str, kind: type[Method], text: str) -> dict[str, Any]:
    allowed, types = parameters_of(kind), types_of(kind)
    arguments: dict[str, Any] = {}
    for item in filter(None, text.split(",")):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise InputError(f"method = {spec!r}: parameter {item!r} must look like name=value")
        if name not in allowed:
            choice = ", ".join(allowed) or "none"
            close = did_you_mean(name, allowed)
            raise InputError(
                f"method = {spec!r}: unknown parameter {name} (allowed: {choice}){close}"
            )
        if name in arguments:
            raise InputError(f"method = {spec!r}: parameter {name} is set twice")
        try:
            arguments[name] = parsed(value, types[name])
        except ValueError as error:
            raise InputError(f"method = {spec!r}: {name} = {value!r}: {error}") from None
    for name, parameter in allowed.items():
        if parameter.default is parameter.empty and name not in arguments:
            hint = (
                f"; train one: cosmo train --method {spec} --out DIR"
                if issubclass(kind, Trained)
                else ""
            )
            raise InputError(f"method = {spec!r}: parameter {name} is missing{hint}")
    return arguments
