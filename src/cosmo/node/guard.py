"""Answers of methods, checked: a policy's mistake is one line that names the policy."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosmo import interrupts
from cosmo.errors import InputError
from cosmo.node.calls import NOTHING, Dispatcher, Method, Updater
from cosmo.node.observation import NO_NODE, DispatchObservation, UpdateObservation
from cosmo.node.site import Site

Given = TypeVar("Given")
Answer = TypeVar("Answer")
Side = TypeVar("Side", Dispatcher, Updater)

_MOST_CARRIED = 4096  # numbers in a status: what is sent would otherwise fill the memory


def ask(who: object, call: Callable[[Given], Answer], given: Given) -> Answer:
    """Call a policy; what goes wrong inside is reported with the place where it did.

    Whatever a policy raises is its failure, SystemExit too; only the user's interrupt is none.
    """
    try:
        return call(given)
    except InputError:
        raise
    except BaseException as error:
        text = reason(error)
        if isinstance(error, IndexError) and _has_no_status(given):
            text += "; its statuses have no numbers, as its `carries` is 0"
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}, line {last.lineno}"
        raise InputError(f"method {type(who).__name__} failed at {place} ({text})") from error


def _has_no_status(given: object) -> bool:
    return isinstance(given, DispatchObservation) and given.status.shape[-1] == 0


def reason(error: BaseException) -> str:
    """What a policy raised, in one line; if it is the user's interrupt, that is raised again."""
    if interrupts.of_user(error):
        raise error
    try:
        text = str(error).strip().splitlines()
    except Exception:  # an error of the policy's own making, that cannot even be described
        text = []
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def check_carries(method: Method) -> None:
    """Refuse a method that does not say how many numbers a status of its carries."""
    carries = ask(method, lambda asked: asked.carries, method)
    if type(carries) is not int or not 0 <= carries <= _MOST_CARRIED:
        raise InputError(
            f"method {type(method).__name__}: carries = {_shown(carries)}: must be a whole number"
            f" from 0 to {_MOST_CARRIED}"
        )


def _array(who: object, answer: object) -> NDArray[Any]:
    """What a policy gave as an array; lists whose lengths differ make none."""
    return ask(who, np.asarray, answer)


def _shown(value: object) -> str:
    try:
        return repr(value)[:60]
    except Exception:
        return f"a {type(value).__name__}"


def checked_actions(
    who: object, answer: ArrayLike, tasks: DispatchObservation
) -> NDArray[np.int64]:
    """Whole numbers from 0 to K + 1, one a row, and no SN that its EN does not reach."""
    name, rows, sns = type(who).__name__, len(tasks), tasks.sns
    actions = _array(who, answer)
    if actions.shape != (rows,):
        raise InputError(
            f"method {name}: decide gave {_shape(actions)}, must give an action for each of "
            f"{rows} rows"
        )
    if actions.dtype.kind not in "iu":
        raise InputError(f"method {name}: actions are {actions.dtype}, must be whole numbers")
    if rows == 1 and 0 <= actions[0] <= sns + 1 and tasks.sn[0, sns - 1] != NO_NODE:
        return actions.astype(np.int64, copy=False)  # a node asks task by task: soon answered
    if rows and not 0 <= actions.min() <= actions.max() <= sns + 1:
        wrong = actions[(actions < 0) | (actions > sns + 1)][0]
        raise InputError(f"method {name}: action = {wrong}: must be from 0 to {sns + 1}")
    if not tasks.reached.all():
        row = np.flatnonzero((actions > tasks.reached.sum(axis=1)) & (actions <= sns))
        if len(row):
            en, most = int(tasks.en[row[0]]), int(tasks.reached[row[0]].sum())
            raise InputError(
                f"method {name}: action = {actions[row[0]]}: EN {en} reaches {most} SNs, so it"
                f" must be from 0 to {most}, or {sns + 1}"
            )
    return actions.astype(np.int64, copy=False)


def checked_update(
    who: object, answer: object, nodes: UpdateObservation
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """[row, k] whom to tell, and [row] intervals greater than 0."""
    name, rows = type(who).__name__, len(nodes)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InputError(f"method {name}: the updater must give a pair (send, interval_ms)")
    send, interval = _array(who, answer[0]), _array(who, answer[1])
    if send.shape not in ((rows,), (rows, nodes.ens)) or interval.shape != (rows,):
        raise InputError(
            f"method {name}: the updater gave {_shape(send)} and {_shape(interval)}, must give "
            f"one of each for each of {rows} rows, or to send to some ENs {nodes.ens} a row"
        )
    if send.dtype.kind not in "biu" or interval.dtype.kind not in "iuf":
        raise InputError(f"method {name}: the updater must give truth values and numbers of ms")
    if np.count_nonzero(interval > 0) < rows:  # NaN is refused as well
        raise InputError(f"method {name}: intervals must be greater than 0 ms")
    told = send.astype(np.bool_, copy=False)
    told = nodes.reached & (told if told.ndim == 2 else told[:, None])
    return told, interval.astype(np.float64, copy=False)


def checked_ride(who: object, answer: ArrayLike, rows: int) -> NDArray[np.bool_]:
    """[row] whether a status rides on a result."""
    ride = _array(who, answer)
    if ride.shape != (rows,) or ride.dtype.kind not in "biu":
        raise InputError(
            f"method {type(who).__name__}: ride gave {_shape(ride)} of {ride.dtype}, must give a"
            f" truth value for each of {rows} rows"
        )
    return ride.astype(np.bool_, copy=False)


def checked_numbers(who: object, answer: ArrayLike, rows: int, carries: int) -> NDArray[np.float64]:
    """[row, d] finite numbers, as many as the method says that a status carries."""
    name = type(who).__name__
    numbers = _array(who, answer)
    if numbers.shape != (rows, carries):
        raise InputError(
            f"method {name}: encode gave {_shape(numbers)}, must give {carries} numbers for each"
            f" of {rows} rows"
        )
    if numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
        raise InputError(f"method {name}: encode must give finite numbers")
    return numbers.astype(np.float64, copy=False)


def made_dispatcher(method: Method, site: Site) -> Dispatcher:
    """The method's dispatcher, or one line that says what is wrong with it."""
    return _made(method, method.dispatcher, Dispatcher, site)


def made_updater(method: Method, site: Site) -> Updater:
    """The method's updater, likewise."""
    return _made(method, method.updater, Updater, site)


def _made(method: Method, make: Callable[[Site], Side], kind: type[Side], site: Site) -> Side:
    check_carries(method)
    made = ask(method, make, site)
    if not isinstance(made, kind):
        name = kind.__name__
        raise InputError(
            f"method {type(method).__name__}: {name.lower()} gave a {type(made).__name__}, which"
            f" must be a cosmo.{name}"
        )
    return made


def made_sides(method: Method, site: Site) -> tuple[Dispatcher, Updater | None]:
    """Both of them anew; no updater for a method that goes by no statuses."""
    dispatcher = made_dispatcher(method, site)
    return dispatcher, None if method.carries == NOTHING else made_updater(method, site)


def _shape(array: NDArray[np.generic]) -> str:
    return f"an array of shape {array.shape}" if array.ndim else "a single value"
