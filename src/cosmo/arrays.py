"""Arrays in .npz files, read without trust: nothing is executed, and no more is read than is there.

What we write is not compressed, so that a file says how much memory it takes: what a file declares
beyond its own size, as a bomb does, is refused before it is read.
"""

import math
import os
import zipfile
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from cosmo.checksums import unsealed_arrays
from cosmo.errors import InputError
from cosmo.files import MOST_ARRAYS, opened


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz file, as they were sealed; InputError in one line if they are not."""
    try:
        with opened(path, MOST_ARRAYS) as content:
            _check_sizes(content)
            content.seek(0)
            with np.load(content, allow_pickle=False) as file:
                return unsealed_arrays({name: file[name] for name in file.files})
    except FileNotFoundError:
        raise InputError(f"'{path}': is missing; the training has no checkpoint yet") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"'{path}': cannot be read ({reason})") from None
    except Exception as error:  # zipfile and NumPy raise all kinds at a flipped bit
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"'{path}': is damaged or cut short ({reason})") from None


def _check_sizes(opened_file: BinaryIO) -> None:
    """Refuse what declares more than the file holds."""
    with zipfile.ZipFile(opened_file) as file:
        entries = file.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("it is compressed, which cosmo's files are not")
        if sum(entry.file_size for entry in entries) > os.fstat(opened_file.fileno()).st_size:
            raise ValueError("it declares more than it holds")
        for entry in entries:
            with file.open(entry) as content:
                _check_header(content, entry.file_size)


def _check_header(content: IO[bytes], size: int) -> None:
    version = npy.read_magic(content)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, kind = read(content)
    if kind.hasobject:
        raise ValueError("it holds objects, not numbers")
    if content.tell() + math.prod(shape) * kind.itemsize != size:
        raise ValueError("an array declares another size than it has")
