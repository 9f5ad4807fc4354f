"""Texts that are made of numbers and of other texts: f-strings, ``str`` and ``repr``.

A number in a text has no derivative; a program that reads one out of a text again is not made (see `Activity`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...rules.words import with_article
from ..kinds import static
from ..protocols import DIGITS
from . import equivalents
from .basics import NUMBERS, computed, loaded, plain, refuse
from .recorder import PLAIN, Box, Recorder
from .region import is_of_numpy


def shown(recorder: Recorder, key: Any, x: Any, how: str = "", spec: Any = "") -> Any:
    """``f"{x!how:spec}"``."""
    if issubclass(type(x), BaseException) and id(x) in recorder.memories:
        x, how = message(recorder, key, x), how or "s"
    value = plain(x)
    if type(x) is not Box and type(x) not in NUMBERS and type(x) not in PLAIN:
        return refuse(f"{with_article(type(x).__name__)} becomes a text")
    if type(value) not in NUMBERS and type(value) not in PLAIN:
        if not is_of_numpy(value) or np.ndim(value):
            return refuse(f"{with_article(type(value).__name__)} becomes a text")
    if type(x) is Box or type(spec) is Box:
        given = (x, how, spec)
        text = computed(recorder, key, equivalents.shown, given)
        return recorder.value(key, equivalents.shown, given, text)
    if type(x) is int and x.bit_length() > 3 * DIGITS:  # a setting says how many digits it may have
        return refuse("a long integer becomes a text")
    return equivalents.shown(x, how, spec)


def message(recorder: Recorder, key: Any, error: BaseException) -> Any:
    """What an exception says: its only argument."""
    kind = type(error)
    usual = static(kind, "__str__") in (
        static(BaseException, "__str__"),
        static(Exception, "__str__"),
    )
    if not usual or static(kind, "__format__") is not static(object, "__format__"):
        refuse(f"{with_article(kind.__name__)} becomes a text in a way of its own")
    recorder.outside.of_class(kind, "__str__")
    recorder.outside.of_class(kind, "__format__")
    args = loaded(recorder, (key, "args"), error, "args", error.args)
    return (
        args[0] if len(args) == 1 else refuse("an exception with several arguments becomes a text")
    )


def joined(recorder: Recorder, key: Any, parts: tuple[Any, ...]) -> Any:
    """The text that the parts of an f-string make."""
    if all(type(x) is str for x in parts):
        return "".join(parts)
    return recorder.value(key, equivalents.joined, parts, "".join(map(plain, parts)))
