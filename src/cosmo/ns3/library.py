"""ns-3 from its wheel, and our network compiled against it once."""

import ctypes
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from cosmo.errors import InputError
from cosmo.files import whole_file, whole_folder
from cosmo.ns3.tool import run_tool

VERSION = "3.42.post2"
INSTALL = "cosmo ns3 install"

_SOURCES = Path(__file__).with_name("cpp")
_MODULES = (
    "wifi",
    "internet",
    "point-to-point",
    "mobility",
    "propagation",
    "traffic-control",
    "network",
    "core",
)
_FLAGS = ("-std=c++20", "-O2", "-fPIC", "-shared")
_COMPILE_LIMIT_S = 300.0
_INSTALL_LIMIT_S = 900.0


class Settings(ctypes.Structure):
    """Settings of a simulation, laid out as in `cpp/interface.h`."""

    _fields_ = (
        *(
            (name, ctypes.c_int32)
            for name in (
                "ens",
                "sns",
                "ues",
                "links",
                "packet_bytes",
                "channel_mhz",
                "mcs",
                "short_guard",
                "rts",
                "ampdu_bytes",
                "datagram_bytes",
                "queue_packets",
                "tcp",
                "rate_steps",
            )
        ),
        *((name, ctypes.c_double) for name in ("queue_ms", "rate_period_ms")),
        ("run", ctypes.c_uint64),
    )


def cache_folder() -> Path:
    """Where what is compiled and installed by us is kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "cosmo"


def ns3_folder() -> Path:
    """Headers and libraries of ns-3: of this Python's packages, or of `cosmo ns3 install`."""
    spec = importlib.util.find_spec("ns3")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    for folder in (*map(Path, places), _own_copy() / "ns3"):
        if os.path.exists(folder / "include" / "ns3" / "core-module.h"):
            return folder
    raise InputError(
        f"engine = 'ns3': ns-3 is not installed; install it with: {INSTALL}"
        " (or from a clone: pip install '.[ns3]')"
    )


def install() -> Path:
    """ns-3's wheel without its dependencies; returns where it is. Nothing is done if it is there.

    The wheel is for Python 3.11, but what we need of it knows nothing of Python: it goes to a
    folder of ours, for any version.
    """
    try:
        return ns3_folder()
    except InputError:
        pass
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise InputError(
            f"engine = 'ns3': there is no wheel of ns-3 for {sys.platform} on"
            f" {platform.machine()}; must be linux on x86_64"
        )
    with whole_folder(_own_copy()) as temporary:
        _fetch(temporary)
    return ns3_folder()


def _fetch(target: Path) -> None:
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary=:all:", "--python-version=3.11", "--implementation=cp"),
        *("--target", str(target), f"ns3=={VERSION}"),
    ]
    try:
        done = run_tool(command, _INSTALL_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise InputError(f"ns-3 could not be installed in {_INSTALL_LIMIT_S:g} s") from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["pip failed"]
        raise InputError(f"ns-3 could not be installed: {lines[-1].strip()}")


def _own_copy() -> Path:
    return cache_folder() / f"ns3-{VERSION}"


def compiled_network() -> Path:
    """Our network as a library; compiled if there is none of these sources, ns-3 and compiler."""
    folder = ns3_folder()
    compiler = os.environ.get("CXX") or "g++"
    found = shutil.which(compiler)
    if found is None:
        raise InputError(
            f"engine = 'ns3': the C++ compiler {compiler!r} is not there; install g++ or set CXX"
        )
    told = run_tool([found, "--version"], _COMPILE_LIMIT_S)
    digest = hashlib.sha256()
    sources = [
        part
        for path in sorted((*_SOURCES.glob("*.cc"), *_SOURCES.glob("*.h")))
        for part in (path.name, path.read_text(encoding="utf-8"))
    ]
    for part in (*sources, str(folder), VERSION, told.stdout, *_FLAGS):
        digest.update(part.encode() + b"\0")
    target = cache_folder() / f"network-{digest.hexdigest()[:16]}.so"
    if os.path.exists(target):  # Path.exists() objects to a folder that is not ours to read
        return target
    with suppress(OSError):  # whole_file says why
        target.parent.mkdir(parents=True, exist_ok=True)
    libraries = folder / "lib64"
    with whole_file(target) as temporary:
        command = [
            *(found, *_FLAGS, f"-I{folder / 'include'}", str(_SOURCES / "network.cc")),
            *("-o", str(temporary)),
            *(f"-L{libraries}", f"-Wl,-rpath,{libraries}"),
            *(f"-lns3-dev-{name}" for name in _MODULES),
        ]
        try:
            done = run_tool(command, _COMPILE_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise InputError(
                f"engine = 'ns3': {compiler} did not finish in {_COMPILE_LIMIT_S:g} s"
            ) from None
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            raise InputError(
                f"engine = 'ns3': {compiler} failed ({(errors or ['no reason given'])[0]})"
            )
    return target


@cache
def library() -> ctypes.CDLL:
    """Our network, loaded into this process: one simulator, one world at a time."""
    loaded = ctypes.CDLL(str(compiled_network()))
    pointer, number = ctypes.c_void_p, ctypes.c_double
    loaded.cosmo_error.restype = ctypes.c_char_p
    loaded.cosmo_begin.argtypes = (pointer, pointer, pointer, pointer)
    loaded.cosmo_exchange.argtypes = (
        *(pointer, ctypes.c_int, number, number, pointer, ctypes.c_int, pointer),
    )
    return loaded
