"""What is read back is what was written, or is refused."""

import json

import numpy as np
import pytest

from cosmo import InputError, checksums
from cosmo.arrays import read_arrays
from cosmo.files import read_record, write_record

ARRAYS = {"en/w": np.arange(6.0).reshape(2, 3), "seed": np.array(7), "none": np.zeros((0, 2))}


def test_arrays_come_back_without_their_seal():
    found = checksums.unsealed_arrays(checksums.sealed_arrays(ARRAYS))
    assert found.keys() == ARRAYS.keys()
    assert all(np.array_equal(found[name], ARRAYS[name]) for name in ARRAYS)
    assert checksums.unsealed_arrays(ARRAYS).keys() == ARRAYS.keys()  # an older file


@pytest.mark.parametrize(
    "change",
    [
        {"en/w": ARRAYS["en/w"] + np.eye(2, 3)},
        {"en/w": ARRAYS["en/w"].reshape(3, 2)},
        {"en/w": ARRAYS["en/w"].view(np.int64)},
        {"seed": np.array(8)},
        {"more": np.array(1)},
        {checksums.SEAL: np.zeros(3)},
    ],
)
def test_other_arrays_are_refused(change):
    with pytest.raises(ValueError, match="not what was written"):
        checksums.unsealed_arrays({**checksums.sealed_arrays(ARRAYS), **change})


def test_a_missing_array_is_refused():
    kept = checksums.sealed_arrays(ARRAYS)
    del kept["seed"]
    with pytest.raises(ValueError, match="not what was written"):
        checksums.unsealed_arrays(kept)


def test_no_flipped_bit_in_a_file_of_arrays_changes_what_is_read(tmp_path):
    """Every byte of a small file, one bit each: the same arrays, or one line."""
    path = tmp_path / "agents.npz"
    np.savez(path, **checksums.sealed_arrays(ARRAYS))
    whole, refused = path.read_bytes(), 0
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        try:
            found = read_arrays(path)
        except InputError:
            refused += 1
            continue
        assert found.keys() == ARRAYS.keys(), place
        assert all(np.array_equal(found[name], ARRAYS[name]) for name in ARRAYS), place
    assert refused > len(whole) / 2


def test_a_record_is_sealed(tmp_path):
    path, told = tmp_path / "a.json", {"format": 1, "seeds": [0, 1], "text": "µ\n"}
    write_record(path, told)
    assert read_record(path, "nothing", "us", 1) == told
    path.write_text(path.read_text().replace("1\n  ]", "3\n  ]"))
    assert json.loads(path.read_text())["seeds"] == [0, 3]
    with pytest.raises(InputError, match="not what was written; the file is damaged"):
        read_record(path, "nothing", "us", 1)
    path.write_text(json.dumps(told))  # an older version's
    assert read_record(path, "nothing", "us", 1) == told
