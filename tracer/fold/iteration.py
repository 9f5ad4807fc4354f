"""What may be iterated over: a counted loop goes through the numbers of a range, each of which stands for an item.

Words
-----
source     what a loop goes through: a range, and what makes an item of a number of it.
iterator   an object of the run's own, with a list and how far it was gone through: what ``iter`` gives, or a generator.
away       of an iterator that a generator goes through, which runs at once: nobody else may ask it any more.
cut        of a generator that has more to give than its list has.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...rules.words import with_article
from . import arrays, equivalents
from .basics import decided, loaded, now, plain, refuse
from .functions import call_function
from .memories import count_of, elements, stored
from .named import is_named, parts
from .operators import truth
from .recorder import Box, Recorder
from .region import EXHAUSTED, ITEM, LENGTH, LIST, OBJECT
from .substitutes import Defaults, Queue

USED = -1


class Source:
    """A range, what makes an item of a number of it, and a check at the end.

    ``turn`` is that of an iterator, which is used up by the first loop: None of what may be looped over again. ``skip``
    takes an item of an iterator for nothing.
    """

    __slots__ = ("check", "give", "range", "skip", "turn")

    def __init__(
        self,
        range: Box,
        give: Callable[[Any], Any],
        check: Callable[[], None] | None = None,
        turn: int | None = None,
        skip: Callable[[Any], Any] | None = None,
    ) -> None:
        self.skip = skip
        self.range = range
        self.give = give
        self.check = check
        self.turn = turn

    def taken(self, recorder: Recorder) -> Source:
        """What a loop goes through that takes this: an iterator is taken once, in the turn that made it."""
        if self.turn is None:
            return self
        if not recorder.is_within(self.turn):
            refuse("an iterator is used again")
        self.turn = USED
        return Source(self.range, self.give, self.check, skip=self.skip)

    @property
    def counts(self) -> bool:
        """Whether the numbers are 0, 1, 2... in every run."""
        op = self.range.op
        return op.fn is builtins.range and len(op.args) == 1


class Iterator:
    """What ``iter`` or a generator function gives. ``items``, ``at``, ``away`` and ``cut`` are a program's as well.

    ``home`` is the generator that has made it, and ``owner`` the one that has taken it: each by the list of what it
    gives.
    """

    def __init__(
        self,
        items: list[Any],
        home: Any,
        check: Callable[[], None] | None = None,
        longer: Callable[[], None] | None = None,
    ) -> None:
        self.items = items
        self.at: Any = 0
        self.away = False
        self.cut = longer is not None
        self.home = self.owner = home
        self.check = check  # whether it may be asked now
        self.longer = longer  # asks for more than there is in the list
        self.done = False


def iterator(recorder: Recorder, key: Any, made: Iterator) -> Iterator:
    """The op of an iterator that was just made."""
    given = (Iterator, "items", made.items, "at", 0, "away", False, "cut", made.cut)
    recorder.yielded.add(id(made))
    return recorder.born((key, "iterator"), OBJECT, given, made)  # type: ignore[no-any-return]


def of_items(recorder: Recorder, key: Any, x: Any) -> Any:
    """``iter(x)``."""
    if type(x) in (Iterator, Source):
        return x
    if type(x) is tuple:
        x = elements(recorder, (key, "items"), x)
    if type(x) is not list or id(x) not in recorder.memories:
        return refuse(f"iter of {with_article(type(x).__name__)} is called")
    return iterator(recorder, key, Iterator(x, running(recorder)))


def running(recorder: Recorder) -> Any:
    """The generator that runs."""
    return recorder.giving[-1][0] if recorder.giving else None


def asked(recorder: Recorder, key: Any, it: Iterator) -> None:
    """An iterator is asked for items: by those who may."""
    if it.check is not None:
        it.check()
    who, away = running(recorder), flag(recorder, (key, "away"), it, "away")
    if away and it.owner is not who:
        refuse("an iterator is asked that a generator goes through")
    if not away and it.home is not who:
        stored(recorder, (key, "taken"), it, "away", True)
        it.away, it.owner = True, who


def flag(recorder: Recorder, key: Any, it: Iterator, name: str) -> bool:
    """What an iterator says of itself."""
    return truth((key, "truth"), loaded(recorder, key, it, name, getattr(it, name)))


def ended(recorder: Recorder, key: Any, it: Iterator) -> None:
    """An iterator has come to the end of its list, and gives nothing ever after."""
    if flag(recorder, (key, "cut"), it, "cut") and it.longer is not None:
        it.longer()
    nothing = (
        equivalents.ended.__code__,
        key,
    )  # as of lists that generators have given: nobody writes to it
    it.items, it.at, it.done = recorder.born(nothing, LIST, (), []), 0, True
    stored(recorder, (key, "dropped"), it, "items", it.items)
    stored(recorder, (key, "begin"), it, "at", 0)


def advanced(recorder: Recorder, key: Any, it: Iterator, *default: Any) -> Any:
    """``next(it)`` or ``next(it, default)``."""
    asked(recorder, (key, "asked"), it)
    same = equivalents.next_or if default else equivalents.next_of
    return call_function(recorder, key, same, (it, *default), {})


def source_of_iterator(recorder: Recorder, key: Any, it: Iterator) -> Source:
    """What an iterator still gives."""
    asked(recorder, (key, "asked"), it)
    items = loaded(recorder, (key, "items"), it, "items", it.items)
    at = loaded(recorder, (key, "at"), it, "at", it.at)
    begin, size = plain(at), len(items)
    left = recorder.value(
        (key, "left"), operator.sub, (count_of(recorder, key, items), at), size - begin
    )
    steps = recorder.value((key, "range"), range, (left,), range(size - begin))

    def reached(key: Any, i: Any) -> Box:
        """How far this loop has come, which must be as far as the iterator has: nobody else may ask it."""
        recorder = now()
        k = begin + plain(i)
        j = recorder.value((key, "number"), operator.add, (at, i), k)
        there = loaded(recorder, (key, "there"), it, "at", it.at)
        if not decided(recorder, (key, "alone"), operator.eq, (there, j), plain(there) == k):
            refuse("an iterator is asked by others while it is looped over")
        return j

    def step(key: Any, i: Any) -> Box:
        """The iterator gives an item: the number of it."""
        recorder, j = now(), reached(key, i)
        k = j.value
        it.at = recorder.value((key, "next"), operator.add, (j, 1), k + 1)
        stored(recorder, (key, "step"), it, "at", it.at)
        return j

    def give(i: Box) -> Any:
        if it.check is not None:
            it.check()
        j = step((key, "each"), i)
        if j.value >= len(items):
            refuse("a list grows shorter while it is looped over")
        return loaded(now(), (key, "load"), items, j, items[j.value])

    def check() -> None:
        recorder = now()
        if it.check is not None:
            it.check()
        there = recorder.value((key, "again"), LENGTH, (items,), len(items))
        left = recorder.value((key, "rest"), operator.sub, (there, at), len(items) - begin)
        number = recorder.value((key, "steps"), len, (steps,), len(steps.value))
        reached((key, "all"), number)
        if not decided(recorder, (key, "same"), operator.eq, (left, number), len(items) == size):
            refuse("a list grows while it is looped over")
        ended(recorder, (key, "end"), it)

    return Source(steps, give, check, skip=lambda i: step((key, "skip"), i))


class Items:
    """The iterator of a counted loop."""

    __slots__ = ("key", "source", "steps")

    def __init__(self, key: Any, source: Source) -> None:
        self.key = key
        self.source = source
        self.steps = iter(source.range.value)

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> Any:
        recorder = now()
        if not recorder.begins():
            refuse("something else than a loop asks for the next item")
        try:
            i = next(self.steps)
        except StopIteration:
            recorder.decide(EXHAUSTED, True)
            if self.source.check is not None:
                self.source.check()
            raise
        recorder.decide(EXHAUSTED, False)
        try:
            return self.source.give(recorder.value(self.key, ITEM, (), i))
        except StopIteration:  # of a function that makes the items
            return refuse("a StopIteration ends a loop")


class Collected:
    """What a generator expression gives that has run at once, for the call of which it is an argument.

    ``lazy`` says that nobody sees whether all of it was asked for.
    """

    __slots__ = ("items", "lazy")

    def __init__(self, items: list[Any], lazy: bool) -> None:
        self.items = items
        self.lazy = lazy


def source_of(recorder: Recorder, key: Any, x: Any) -> Source:
    kind = type(x)
    if kind is Source:
        return x.taken(recorder)  # type: ignore[no-any-return]
    if kind is Iterator:
        return source_of_iterator(recorder, key, x)
    if kind is Queue:
        return source_of_queue(recorder, key, x)
    if issubclass(kind, Defaults):
        x = loaded(recorder, (key, "held"), x, "_held", x._held)
        kind = dict
    if kind is dict and id(x) in recorder.memories:
        return source_of_dict(recorder, key, x, "keys")
    if kind is Box and type(x.value) is range:
        return Source(x, lambda i: i)
    if kind is not tuple and is_named(recorder, x):
        x, kind = parts(recorder, (key, "parts"), x), tuple
    if kind is tuple:
        x = elements(recorder, (key, "items"), x)
    elif type(plain(x)) is str:
        size = len(plain(x))
        count = recorder.value((key, "count"), len, (x,), size)
        steps = recorder.value((key, "range"), range, (count,), range(size))
        return Source(steps, lambda i: loaded(now(), (key, "load"), x, i, plain(x)[i.value]))
    elif arrays.is_array(x) and type(x.value) is np.ndarray and x.value.ndim:
        size = len(x.value)
        count = arrays.length(recorder, (key, "count"), x)
        steps = recorder.value((key, "range"), range, (count,), range(size))
        return Source(steps, lambda i: arrays.item(now(), (key, "item"), x, i))
    elif not (kind is list and id(x) in recorder.memories):
        return refuse(f"it loops over {with_article(kind.__name__)}")  # type: ignore[no-any-return]
    items: list[Any] = x
    size = len(items)
    count = recorder.value((key, "count"), LENGTH, (items,), size)
    steps = recorder.value((key, "range"), range, (count,), range(size))

    def give(i: Box) -> Any:
        if i.value >= len(items):
            refuse("a list grows shorter while it is looped over")
        return loaded(now(), (key, "load"), items, i, items[i.value])

    def check() -> None:
        """The list must be as long as it was: Python asks at each step."""
        now_there = now().value((key, "again"), LENGTH, (items,), len(items))
        if not decided(now(), (key, "same"), operator.eq, (now_there, count), len(items) == size):
            refuse("a list grows while it is looped over")

    return Source(steps, give, check)


def source_of_queue(recorder: Recorder, key: Any, queue: Queue) -> Source:
    """The items of a queue, which must not change meanwhile."""
    items, first, changes = [
        loaded(recorder, (key, name), queue, name, getattr(queue, name))
        for name in ("_items", "_first", "_changes")
    ]
    given = items, first, None, None
    part = call_function(recorder, (key, "part"), equivalents.part_of, given, {})
    source = source_of(recorder, (key, "each"), part)

    def check() -> None:
        recorder, before = now(), plain(changes)
        there = loaded(recorder, (key, "again"), queue, "_changes", queue._changes)
        same = plain(there) == before
        if not decided(recorder, (key, "same"), operator.eq, (there, changes), same):
            refuse("a deque changes while it is looped over")

    def give(i: Box) -> Any:
        check()
        return source.give(i)

    return Source(source.range, give, check)


def source_of_dict(recorder: Recorder, key: Any, held: dict[Any, Any], what: str) -> Source:
    """The keys of a dict as they are now, or its values, or both."""
    keys = recorder.born((key, "keys"), list, (held,), [*held])
    source = source_of(recorder, (key, "each"), keys)

    def give(i: Box) -> Any:
        check()
        k = source.give(i)
        if what == "keys":
            return k
        x = loaded(now(), (key, "value"), held, k, held[plain(k)])
        return x if what == "values" else (k, x)

    def check() -> None:
        """The dict must have as many keys as it had: Python asks at each step."""
        there = now().value((key, "again"), LENGTH, (held,), len(held))
        equal = len(held) == len(keys)
        count = now().value((key, "count"), LENGTH, (keys,), len(keys))
        if not decided(now(), (key, "same"), operator.eq, (there, count), equal):
            refuse("a dict changes its size while it is looped over")

    return Source(source.range, give, check)


def enumerated(recorder: Recorder, key: Any, x: Any, start: Any = 0) -> Source:
    """``enumerate(x, start)``."""
    source = source_of(recorder, (key, 0), x)
    if not source.counts or type(plain(start)) is not int:
        refuse("it counts something else than a list")

    def number(i: Box) -> Any:
        if type(start) is int and start == 0:
            return i
        return now().value((key, "number"), operator.add, (start, i), plain(start) + i.value)

    return Source(source.range, lambda i: (number(i), source.give(i)), source.check, recorder.turn)


def from_the_end(recorder: Recorder, key: Any, x: Any) -> Source:
    """``reversed(x)``, of a range or a list."""
    if type(plain(x)) is range:
        value = equivalents.backwards(plain(x))
        steps = recorder.value(key, equivalents.backwards, (x,), value)
        return Source(steps, lambda i: i, turn=recorder.turn)
    if type(x) is not list or id(x) not in recorder.memories:
        refuse("reversed is called")
    source = source_of(recorder, (key, 0), x)
    n = len(source.range.value)
    last = recorder.value((key, 1), operator.sub, (count_of(recorder, key, x), 1), n - 1)
    steps = recorder.value((key, 2), range, (last, -1, -1), range(n - 1, -1, -1))
    return Source(steps, source.give, source.check, recorder.turn)


def zipped(recorder: Recorder, key: Any, *given: Any) -> Source:
    """``zip(*given)``."""
    sources = [source_of(recorder, (key, i), x) for i, x in enumerate(given)]
    if not all(one.counts for one in sources):
        refuse("it zips something else than lists")
    counts = [
        recorder.value((key, "count", i), len, (one.range,), len(one.range.value))
        for i, one in enumerate(sources)
    ]
    n = min(map(plain, counts))
    least = recorder.value((key, "least"), min, counts, n) if len(counts) > 1 else counts[0]
    steps = recorder.value((key, "steps"), range, (least,), range(n))

    def check() -> None:
        """They are asked in their order, until the first has nothing to give: iterators before it have given more."""
        iterators = any(one.skip is not None for one in sources)
        for i, one in enumerate(sources):
            if iterators and len(sources) > 1:
                ended = decided(
                    now(), (key, "last", i), operator.eq, (counts[i], least), counts[i].value == n
                )
                if not ended:
                    if one.skip is not None:
                        one.skip(least)
                    continue
            if one.check is not None:
                one.check()
            if iterators:
                break

    def give(i: Box) -> tuple[Any, ...]:
        return tuple([one.give(i) for one in sources])

    return Source(steps, give, check, recorder.turn)


ITERATORS = frozenset((Source, Iterator))
OF_ITERATION = frozenset((Source, Items, Collected, Iterator))
