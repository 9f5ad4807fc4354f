"""Holders: objects of C code that were made of text, or were given some to keep.

Words
-----
holder   a match, a buffer, a reader, an array of strings …: what is read from it is text as well.
known    of a function: numbers that it gives are counts, positions and the like, and not read off the text.
naming   of a function: text is the name of a file or the like to it.
looking  of a function: it looks at text that it is given, and keeps none.

A holder is known by its identity, as long as it lives.
"""

from __future__ import annotations

import gc
import io
import os
import re
import stat
import struct
import sys
import types
import weakref
from typing import Any

import numpy as np

from ..rules import registry
from .box import BOXES
from .dependence import kind_of_rule
from .kinds import (
    IMMUTABLE,
    attribute,
    flags_of,
    hashes_natively,
    is_one_of,
    isinstance,
    mro_of,
    own_dict,
)
from .origins import File, Origin, Store, Texts, around, joined
from .places import UNTRACED, module_of, root_of
from .structure import is_container
from .text import PRIVATE

KNOWN = frozenset(
    "__len__ __hash__ __sizeof__ __length_hint__ __contains__ find rfind index rindex count hash len id getsizeof "
    "getrefcount start end span regs lastindex pos endpos groups tell seek write writelines writerow writerows "
    "truncate fileno flush send sendto sendall readinto readinto1 nbytes itemsize ndim size shape strides flags "
    "digest_size block_size line_num errno winerror lineno colno end_lineno offset end_offset str_len returncode pid "
    "poll _internal_poll wait call check_call".split()
)
# Methods that keep what they are given, though they return something.
KEEPING = frozenset(
    "set put put_nowait execute executemany executescript feed setdefault add send".split()
)
NAMING = frozenset(("posix", "nt", "_socket", "_imp", "_posixsubprocess", "fcntl"))
OPENING = frozenset((open, io.open_code, io.FileIO))
PATTERNS = frozenset(("Pattern", "Match"))  # by what name ever: of other packages as well
LOOKING = (re.Pattern, re.Match, struct.Struct)
# Python functions that are run as they are, and make numbers of text.
READING = frozenset(
    "re ast tokenize locale pickle codecs pprint encodings traceback subprocess".split()
)

# What holds no text, whatever it is.
SILENT = frozenset(
    (str, bytes, int, bool, float, complex, type(None), type, types.FunctionType, types.ModuleType)
    + (range, np.ufunc, np.dtype, type(Ellipsis), type(NotImplemented), property)
    + (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
)


def hold(texts: Texts, value: Any, origin: Origin) -> None:
    """Remember that an object holds text: of a file, so does what it is written to."""
    value = shown(value)
    if (file := file_of(value)) is not None:
        texts.files[file] = origin
    if root_of_class(value) not in WELL_KNOWN:
        origin = around(origin)
    if (store := store_of(texts, value)) is not None:
        store.origin = origin if store.origin is None else joined([origin, store.origin])
        texts.files |= dict.fromkeys(store.files, store.origin)
    key, holders = id(value), texts.holders
    known = holders.get(key)
    if known is not None:
        holders[key] = (known[0], joined([origin, known[1]]))
        return
    try:
        reference: Any = weakref.ref(value, lambda _: holders.pop(key, None))
    except TypeError:  # then it lives as long as the run goes on
        reference = value
    holders[key] = (reference, origin)


def shown(value: Any) -> Any:
    """The array that an array, or an iterator over its elements, shows; any other value itself."""
    while isinstance(value, SHOWING) and isinstance(value.base, np.ndarray):
        value = value.base
    return value


SHOWING = (np.ndarray, np.flatiter)
WELL_KNOWN = sys.stdlib_module_names | {"builtins", "numpy"}


def file_of(value: Any) -> File | None:
    """The file that an object writes to or reads."""
    if (module := type(value).__module__) in SHARED:
        return module, 0
    return file_named(name_of(value))


def name_of(value: Any) -> Any:
    """The descriptor of a file that is open, or its path; None for what is no file."""
    if not isinstance(value, io.IOBase):
        return None
    try:
        return value.fileno()
    except Exception:  # there is none, or it has been closed
        return getattr(value, "name", None)


def file_named(name: Any) -> File | None:
    """The file that a path or a descriptor means, however it is named, moved or linked. A pipe has two ends."""
    found = status(name)
    if found is None:
        return None
    return ("socket", 0) if stat.S_ISSOCK(found.st_mode) else (found.st_dev, found.st_ino)


def status(name: Any) -> os.stat_result | None:
    """What the system says of a path or a descriptor."""
    name = name.value if is_one_of(type(name), PRIVATE) else name
    if not isinstance(name, (int, str, bytes, os.PathLike)):
        return None
    try:
        return os.stat(name)
    except (OSError, ValueError):
        return None


def in_file(texts: Texts, name: Any) -> Origin | None:
    """The origin of what is in a file, by its path or a descriptor: another program may have written there."""
    known = texts.files.get(file_named(name))
    if known is None and texts.programs is not None and (found := status(name)) is not None:
        since, origin = texts.programs
        if stat.S_ISREG(found.st_mode) and found.st_mtime_ns >= since:
            return origin
    return known


def has_files(texts: Texts) -> bool:
    """Whether there may be text in any file."""
    return bool(texts.files) or texts.programs is not None


def started(texts: Texts, origin: Origin | None, began: int) -> None:
    """Another program was started, and may have ended: what was written since it ``began`` may be made of its texts."""
    origins = [x for x in (origin, texts.names, *texts.files.values()) if x is not None]
    if not origins:
        return
    since = began - CLOCK
    if texts.programs is not None:
        since, before = texts.programs
        origins.append(before)
    texts.programs = since, joined(origins)


def given_to_programs(texts: Texts, args: Any) -> Origin | None:
    """The origin of what another program may read: names, the environment, and the files that its command names."""
    words = [args]
    for x in words:
        if isinstance(x, (list, tuple)):
            words += x
        elif isinstance(x, str):
            words += x.split() if " " in x else ()
    files = [in_file(texts, x) for x in words if isinstance(x, (str, bytes, os.PathLike))]
    origins = [x for x in (texts.names, *files) if x is not None]
    return joined(origins) if origins else None


CLOCK = 20_000_000  # nanoseconds by which the times of files may be late
STARTING = frozenset("system posix_spawn posix_spawnp startfile popen fork_exec".split())


def on_the_system(
    texts: Texts, fn: Any, args: Any, origin: Origin | None, began: int
) -> Origin | None:
    """Note what a function of the system that was called at ``began`` does with text; the origin of what it gives."""
    name, first = fn.__name__, args[0] if args else None
    if name in STARTING:
        started(texts, origin, began)
        return None
    if name in READING_FILES:
        known = in_file(texts, first)
        if known is not None and name in ("readv", "preadv"):
            for x in args[1]:
                hold(texts, x, known)
        return known
    if name in LISTING:
        return texts.names
    if name in COPYING:
        source, target = map(file_named, args[:2] if name != "sendfile" else args[1::-1])
        if source in texts.files and target is not None:
            texts.files[target] = texts.files[source]
    elif origin is not None and name in WRITING:
        if (target := file_named(first)) is not None:
            texts.files[target] = origin
    elif origin is not None:
        texts.names = origin if texts.names is None else joined([origin, texts.names])
    return None


WRITING = frozenset("write writev pwrite pwritev setxattr".split())
READING_FILES = frozenset("read pread readv preadv getxattr".split())
LISTING = frozenset("listdir scandir readlink listxattr getcwd getcwdb".split())
COPYING = frozenset("sendfile copy_file_range splice _fcopyfile".split())
# What has another end, or another object for the same file: all of a kind are one.
SHARED = frozenset(("sqlite3", "_dbm", "_gdbm", "socket", "multiprocessing.connection"))


def hold_all(texts: Texts, value: Any, origin: Origin) -> None:
    """An object holds text, and so does what it writes to: a csv.writer has the method of a file."""
    hold(texts, value, origin)
    if isinstance(value, memoryview):
        hold(texts, value.obj, origin)
        return
    for x in gc.get_referents(value):
        target = x.__self__ if type(x) is types.BuiltinFunctionType else x
        if isinstance(target, (io.IOBase, bytearray)):
            hold(texts, target, origin)


def held(tracer: Any, value: Any) -> Origin | None:
    """The origin of the text that an object holds."""
    value = shown(value)
    holders = tracer.texts.holders
    known = holders.get(id(value))
    if known is None and has_files(tracer.texts):
        origin = tracer.texts.files.get(file_of(value)) or in_file(tracer.texts, name_of(value))
        if origin is not None:
            return origin
    if known is None and holders and isinstance(value, memoryview):
        known = holders.get(id(value.obj))
    store = store_of(tracer.texts, value) if tracer.texts.stores else None
    more = [] if store is None else [store.origin, *map(tracer.texts.files.get, store.files)]
    found = [x for x in (None if known is None else known[1], *more) if x is not None]
    if known is None and found:
        return around(joined(found))
    return joined(found) if found else None


def store_of(texts: Texts, value: Any) -> Store | None:
    """The store that a thing is a part of."""
    known = texts.stores.get(id(value))
    if known is None:
        return None
    store = known[1]
    while store.into is not None:
        store = store.into
    return store


def entered(texts: Texts, value: Any) -> Store | None:
    """The store that a thing is a part of, or that it will be; None for one of which C code knows no parts."""
    if (store := store_of(texts, value)) is not None or not is_store(value):
        return store
    key, stores = id(value), texts.stores
    try:
        reference: Any = weakref.ref(value, lambda _: stores.pop(key, None))
    except TypeError:  # then it lives as long as the run goes on: numbers and dates do not
        if not type(value).__flags__ & HAVE_GC or root_of_class(value) in WELL_KNOWN:
            return None
        reference = value
    known = texts.holders.get(key)
    store = Store(None if known is None else known[1])
    stores[key] = reference, store
    return store


HAVE_GC = 1 << 14


def is_store(value: Any) -> bool:
    """Whether a thing of C code's may have parts that C code makes."""
    kind = type(value)
    return not is_one_of(kind, BOXES) and not isinstance(value, np.ndarray) and may_hold(value)


def is_of_c(value: Any) -> bool:
    """Whether a value is of a class written in C, or of one that derives from such."""
    return any(flags_of(base) & IMMUTABLE for base in mro_of(type(value))[:-1])


def root_of_class(value: Any) -> str:
    """The package that the class of a value comes from."""
    return str(type(value).__module__).partition(".")[0]


def belong(texts: Texts, whole: Any, part: Any, of_c: bool = True) -> None:
    """C code has made one thing of another, or put it there: text that is put into one may be read from the other."""
    if part is whole or not (is_store(part) and is_store(whole)):
        return
    if not of_c or (is_of_c(part) and is_of_c(whole)):
        join(entered(texts, whole), entered(texts, part))


def join(one: Store | None, other: Store | None) -> None:
    """Make one store of two."""
    if one is None or other is None or one is other:
        return
    other.into = one
    one.files += other.files
    origins = [x for x in (one.origin, other.origin) if x is not None]
    one.origin = joined(origins) if origins else None


def belongs_to_own(texts: Texts, value: Any) -> None:
    """An object in Python, such as C code works with, is one with the things of C code's that are its attributes."""
    for x in list((own_dict(value) or {}).values()):
        if id(x) in texts.stores:
            join(entered(texts, value), store_of(texts, x))


def opened(texts: Texts, value: Any, files: list[File]) -> None:
    """C code was given the names of files, and has made a thing of them: what is put into that may be written there."""
    store = entered(texts, value) if files else None
    if store is not None:
        store.files += files


def may_hold(value: Any) -> bool:
    """Whether an object may keep what a C function was given beside it."""
    kind = type(value)
    if is_one_of(kind, SILENT) or is_one_of(kind, PRIVATE) or is_container(value):
        return False
    if isinstance(value, (type, types.BuiltinFunctionType, np.generic, *LOOKING)):
        return False
    if kind.__name__ in PATTERNS:
        return False
    return not (kind is np.ndarray and value.dtype.kind in "fibuc")


def is_known(fn: Any) -> bool:
    if type(fn) is types.FunctionType:
        root = root_of(fn)
        return root in UNTRACED and (root not in READING or fn.__name__ in KNOWN)
    name = attribute(fn, "__name__", "")
    owner = attribute(fn, "__self__")
    if owner is not None and not isinstance(owner, (type, types.ModuleType)):
        fn = getattr(type(owner), name, fn)
    if name in KNOWN:
        return True
    if isinstance(fn, type) or not hashes_natively(type(fn)):
        return False
    return kind_of_rule(fn) in (registry.NONDIFF, registry.QUERY)


def is_reader(fn: Any) -> bool:
    """Whether a Python function that is run as it is makes text of what it is given, or holds it."""
    if type(fn) is not types.FunctionType or fn.__name__ in KNOWN:
        return False
    return module_of(fn).partition(".")[0] in READING


def is_naming(fn: Any) -> bool:
    if module_of(fn) in NAMING:
        return fn.__name__ != "fspath" and not fn.__name__.startswith("_")
    return isinstance(fn, (types.BuiltinFunctionType, type)) and fn in OPENING


def gives_nothing(fn: Any, value: Any) -> bool:
    """Whether a function has done what it was called for, and only says that, or how much of it."""
    name = attribute(fn, "__name__", "")
    return value is None or name in KNOWN or name in KEEPING
