"""What is read back is what was written: SHA-256 of records in JSON and of arrays."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

SEAL = "sha256"  # of all the rest, in a record or among arrays


def sealed_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with a digest of its content, as `read_record` checks it."""
    return {**record, SEAL: _of_record(record)}


def record_holds(record: Mapping[str, Any]) -> bool:
    """Whether a record is as it was sealed; one without a seal is taken as it is."""
    return SEAL not in record or record[SEAL] == _of_record(record)


def _of_record(record: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in record.items() if name != SEAL}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def sealed_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """A digest of the arrays (names, types, shapes, values), and the arrays.

    The digest is first: it stays if a flipped bit cuts short the directory of a file.
    """
    return {SEAL: _of_arrays(arrays), **arrays}


def unsealed_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays without their digest; ValueError if they are not as they were sealed.

    Arrays without a digest, as of a version before, are taken as they are.
    """
    rest = {name: value for name, value in arrays.items() if name != SEAL}
    if SEAL in arrays and not np.array_equal(arrays[SEAL], _of_arrays(rest)):
        raise ValueError("its content is not what was written")
    return rest


def _of_arrays(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        value = np.asarray(arrays[name])
        digest.update(json.dumps([name, value.dtype.str, value.shape]).encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)
