"""What all hooks of folding ask: which recording goes on, and which way it goes."""

from __future__ import annotations

import operator
from typing import Any

from ...rules.words import with_article
from .recorder import Box, Recorder, Unfolded, active, same_float
from .region import LENGTH, LOAD, Array

MOST_LENGTHS = 8  # of what is taken apart at one place
NUMBERS = frozenset((int, float))
CONTAINERS = frozenset((list, dict, set))
ATOMS = frozenset(
    (int, float, bool, str, bytes, type(None), tuple)
)  # on which operators do what they do


def now() -> Recorder:
    """The recording that goes on."""
    recorder = active.recorder
    if recorder is None:
        raise Unfolded("it is called when the recording has ended")
    return recorder


def plain(x: Any) -> Any:
    return x.value if type(x) is Box else x


def is_same(known: Any, x: Any) -> bool:
    """Whether a number that is none of the run's is the one that was there, to the bit."""
    return type(known) is type(x) and known == x and (x != 0 or same_float(known, x))


def refuse(what: str) -> Any:
    raise Unfolded(what)


def is_object(recorder: Recorder, x: Any) -> bool:
    """Whether something is an object of a class of the user's that the run has made."""
    return id(x) in recorder.memories and type(x) not in CONTAINERS and type(x) is not Array


def is_constant(x: Any) -> bool:
    return type(x) in ATOMS and (type(x) is not tuple or all(map(is_constant, x)))


def decided(recorder: Recorder, key: Any, fn: Any, args: Any, value: Any) -> bool:
    """A question whose answer is True or False: the way that is gone depends on it."""
    if type(value) is not bool:
        raise Unfolded(f"{fn.__name__} gives {with_article(type(value).__name__)}")
    result: bool = recorder.decide(recorder.add(key, fn, args, bool), value)
    return result


def loaded(recorder: Recorder, key: Any, memory: Any, index: Any, x: Any) -> Any:
    """What was found in a memory."""
    return recorder.taken(key, LOAD, (memory, index), x)


def apart_by_length(recorder: Recorder, key: Any, items: list[Any]) -> tuple[Any, ...]:
    """What is in a list, of which each length is a way of its own."""
    length_of(recorder, key, items)
    return tuple([loaded(recorder, (key, i), items, i, x) for i, x in enumerate([*items])])


def length_of(recorder: Recorder, key: Any, memory: Any) -> None:
    """Which length a memory has decides: it is asked for those that were met, in their order."""
    size = len(memory)
    count = recorder.value(key, LENGTH, (memory,), size)
    known = recorder.folded.lengths.setdefault(key, [])
    if size not in known:
        known.append(size)
        if len(known) > MOST_LENGTHS:
            refuse("what is taken apart has too many lengths")
    for n in known:
        if decided(recorder, (key, n), operator.eq, (count, n), n == size):
            return


def computed(recorder: Recorder, key: Any, fn: Any, args: Any) -> Any:
    """The plain value of ``fn(*args)``; what it raises is an outcome of the op, which depends on the arguments."""
    try:
        return fn(*map(plain, args))
    except Exception as error:
        recorder.failed(key, fn, args, error)
        raise
