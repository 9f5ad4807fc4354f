"""What is known of callables in C by their names: which give equal results for equal arguments, and which only look."""

from __future__ import annotations

import time
import types
from typing import Any

import numpy as np

from .handed import home_of
from .kinds import attribute, is_one_of, isinstance
from .places import module_of

# Functions in C that leave containers as they are, by the first part of their module's name.
LOOKING = frozenset("_json _pickle _struct _io time random _random numpy logging".split())

RUNNING = ("shuffle", "sleep", "load", "loads")  # of these, but for what they change or run


def may_change(fn: Any) -> bool:
    """Whether a callable may change a container that it is given: one in C of which nothing is known."""
    return not (type(fn) is types.FunctionType or isinstance(fn, type) or looks_only(fn))


def looks_only(fn: Any) -> bool:
    """Whether a callable is known to change no container, nor to call what might."""
    if is_pure(fn):
        return True
    owner = getattr(fn, "__self__", None)
    module = module_of(fn) or type(owner if owner is not None else fn).__module__
    looking = str(module).partition(".")[0] in LOOKING
    return looking and attribute(fn, "__name__") not in RUNNING


# Modules in C of which no function waits, or calls what is the user's; and those of others that do not.
SHORT = frozenset(
    "sys zlib binascii unicodedata _statistics _datetime _hashlib _md5 _sha2 _blake2".split()
)
SHORT_NAMES = frozenset(
    "bin hex oct chr ord ascii callable getpid getppid getcwd cpu_count".split()
)


def may_wait(fn: Any) -> bool:
    """Whether an unknown callable may wait, or let code of the user's run: what was read before it is stale then."""
    if is_draw(fn) or looks_only(fn):
        return False
    module = str(module_of(fn)).partition(".")[0]
    known = module in ("builtins", "posix", "nt") and attribute(fn, "__name__") in SHORT_NAMES
    return module not in SHORT and not known


PURE_MODULES = frozenset(("math", "cmath", "_operator", "re", "copyreg", "fractions"))
PURE_TYPES = (
    frozenset((str, bytes, int, float, complex, bool, tuple, frozenset, range, slice, type(None)))
    | frozenset((np.dtype, np.finfo, np.iinfo, object, type))
    | frozenset(t for t in vars(np).values() if isinstance(t, type) and issubclass(t, np.generic))
)
NUMPY_CORE = tuple(vars(m) for m in (np, np.linalg, np.fft))
# NumPy's functions that look at files, memory or settings, or change something.
NUMPY_IMPURE = frozenset(
    (
        "array2string array_repr array_str copyto fill_diagonal frombuffer fromfile from_dlpack geterr "
        "get_printoptions info load loadtxt may_share_memory place put put_along_axis putmask save savetxt savez "
        "savez_compressed shares_memory show_config show_runtime"
    ).split()
)


def is_pure(fn: Any) -> bool:
    """Whether an unknown callable is known at least to give equal results for equal arguments."""
    if isinstance(fn, np.ufunc) or module_of(fn) in PURE_MODULES:
        return True
    if isinstance(fn, type):
        return is_one_of(fn, PURE_TYPES)
    owner = attribute(fn, "__self__")
    if attribute(fn, "__name__") == "__subclasses__":  # of which there may be more
        return False
    if owner is not None and not isinstance(owner, types.ModuleType):
        if isinstance(owner, type):
            return is_one_of(owner, PURE_TYPES)
        return is_one_of(type(owner), PURE_TYPES)  # whose own hash may run what is the user's
    if attribute(fn, "__objclass__") in PURE_TYPES:
        return True
    name = attribute(fn, "__name__", "")
    return name not in NUMPY_IMPURE and any(space.get(name) is fn for space in NUMPY_CORE)


def is_draw(fn: Any) -> bool:
    """Whether an impure function looks at nothing but a clock or the state of a random generator."""
    if fn is time.sleep:  # while others run
        return False
    owner = attribute(fn, "__self__")
    module = str(module_of(fn) or type(owner).__module__)
    return module.partition(".")[0] in ("time", "random", "_random") or module.startswith(
        "numpy.random"
    )


def is_random(fn: Any) -> bool:
    """Whether a function asks a random generator, or makes one."""
    return is_draw(fn) and home_of(fn) != "time"
