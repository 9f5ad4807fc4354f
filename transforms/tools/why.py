"""``why``: for what reason a gradient is zero, NaN, infinite, huge, tiny or None.

Words
-----
spot        a number or an array among the arguments, by its path: ``params['w']``.
finding     what is to be said about some elements of the gradient by a spot.
influence   what is left of a small change of one element, from operation to operation: its tangents. Where it ends,
            the derivative is zero.
result      what the gradient is of: all that the function returns, added up, or the part that is asked for.
source      of a cotangent: the op that handed the largest part of it on, or the first that was not finite.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...rules.words import with_article
from ...tracer import frames
from ...tracer.active import active
from ...tracer.entrances import entrance
from ...tracer.errors import TraceError, WengertError
from ...tracer.frames import Own
from ...tracer.kinds import attribute, isinstance
from ...tracer.pairs import severed
from ...tracer.places import OURS, in_words
from ...tracer.run import Run, argument_names, describe, keyword_names, run
from ...tracer.structure import Branch, Leaf, Tree, has_leaf, leaf_of, leaves
from ...tracer.tape import NOWHERE, Input, Op, Site, Tape, append, element, fn_name, primal
from ..explain import state_of
from ..forward import Pusher
from ..gradients import Gradient
from ..refused import NUMBERLESS, numberless
from ..reverse import dependents
from ..stop import held
from .callers import Callers
from .causes import (
    UNDERFLOW,
    Cause,
    of_what_has_none,
    where_it_ends,
    where_it_grows,
    where_it_is_born,
    where_it_shrinks,
)
from .values import is_finite, numbers_in, size_of, summary
from .walk import Walk, kept, one

HUGE, TINY = 1e8, 1e-12  # from where on a gradient is huge, and up to where tiny
MOST = 3  # places told of one finding, and others that are alike
LOOKED_AT = 50  # findings of one kind of which the places are looked for
RESULT = "the result"
KINDS = ("NaN", "infinite", "zero", "huge", "tiny")


@dataclass(frozen=True)
class Place:
    """An operation at a line of the user's, what happens there with which values, and what to do.

    Where it lies in somebody's library, ``site`` is the line of the user's that led there, and ``inner`` its own.
    """

    site: Site
    operation: str
    cause: Cause
    inner: Site | None = None

    def lines(self) -> Iterator[str]:
        if self.site.filename:
            yield in_words(self.site) + (f": {self.site.text}" if self.site.text else "")
        if self.inner is not None:
            yield f"  {in_words(self.inner)}: {self.inner.text}"
        yield f"  {self.operation}: {self.cause.what}" if self.operation else f"  {self.cause.what}"
        yield f"  what to do: {self.cause.cure}"


@dataclass(frozen=True)
class Finding:
    """What is to be said about some elements of a gradient.

    ``path`` is the argument, or the first such element (``params['w'][2, 3]``), or ``the result`` where that is not
    finite itself. ``kind`` says what the gradient is: one of ``NaN``, ``infinite``, ``zero``, ``huge``, ``tiny``,
    ``None``; ``gradient`` is the number. ``count`` of ``total`` elements are so. ``places`` are the operations to
    blame, the first one first.
    """

    path: str
    kind: str
    gradient: Any
    count: int
    total: int
    places: tuple[Place, ...]

    @property
    def line(self) -> int:
        """The line of the first place (0 where there is none)."""
        return self.places[0].site.lineno if self.places else 0

    @property
    def cause(self) -> str:
        """The name of the first place's cause."""
        return self.places[0].cause.name if self.places else ""

    def lines(self) -> Iterator[str]:
        many = f" ({self.count} of {self.total} elements are)" if self.total > 1 else ""
        value = f", {self.gradient:.3g}" if self.kind in ("huge", "tiny") else ""
        what = self.path if self.path == RESULT else f"the gradient by {self.path}"
        yield f"{what} is {self.kind}{value}{many}"
        for place in self.places[:MOST]:
            yield from ("  " + line for line in place.lines())
        if len(self.places) > MOST:
            yield f"  … and {len(self.places) - MOST} other places"


class Reasons(str):
    """What `why` tells. Printed, or shown as it is, it is the text; ``findings`` are the parts of it."""

    findings: tuple[Finding, ...]

    def __new__(cls, text: str, findings: tuple[Finding, ...] = ()) -> Reasons:
        self = super().__new__(cls, text)
        self.findings = findings
        return self

    def __repr__(self) -> str:
        return str(self)


@entrance
def why(
    f: Callable[..., Any],
    /,
    *args: Any,
    argnums: int | str | Collection[int | str] | None = None,
    result: Any = None,
    **kwargs: Any,
) -> Reasons:
    """Why the gradient of ``f`` at these arguments is zero, NaN, infinite, None, huge or tiny, in plain words.

    ``f`` is a function, or what `grad` or `value_and_grad` made of one. It is called once, and traced; then the
    reverse sweep is walked through. For each number and array among the arguments (those that ``argnums`` numbers or
    names, else all) it tells which elements of the gradient are not as one hopes for, and of the first of them the
    operation to blame: the line, the values there, the reason, and what to do. Where all is well it says so. The
    gradient is that of the result, or of the sum of all numbers in it; ``result`` asks for one of several: an index or
    a key, or a tuple of those that lead there, into arrays as well. (If ``f`` has a parameter of that name itself, it
    goes to ``f``.) Huge is 1e8 and more, tiny 1e-12 and less.

    The result is a string; ``why(f, x).findings`` has the parts: ``path``, ``kind``, ``line``, ``cause``, and
    ``places`` with the site, the operation and the cure. What cannot be traced or differentiated at all is told too.
    Raises `TraceError` where ``f`` is not callable and inside a function that is being traced, and whatever ``f``
    itself raises.

    >>> from wengert import why
    >>> found = why(lambda x, y: round(x) * y, 1.4, 2.0)
    >>> [(x.path, x.kind, x.cause) for x in found.findings]
    [('x', 'zero', 'rounding')]
    >>> why(lambda x: (x * x, {"a": 0.0 * x}), 3.0, result=(1, "a")).findings[0].cause
    'times zero'
    """
    if active.tracer is not None:
        raise TraceError(
            "why cannot be used inside a function that is being traced\n"
            "call it outside, of the function itself"
        )
    state = state_of(f)
    has_aux = False
    if isinstance(state, Gradient):
        f, has_aux = state.f, state.has_aux
        argnums = state.argnums if argnums is None else argnums
    if result is not None and "result" in keyword_names(f):
        kwargs["result"], result = result, None
    name, site = describe(f)
    title = f"{name}  # {site}" if site.filename else name
    try:
        callers = Callers()

        def perform(fn: Any, given: Any, named: Any, site: Site, go: Any) -> Any:
            callers.note(site)
            return go(*given, **named)

        done = run(f, args, kwargs, perform=perform, folds=False)
        asked = spots_of(f, done, args, kwargs, argnums)
        diagnosis = Diagnosis(done, has_aux, callers, () if result is None else result)
        findings = tuple(diagnosis.findings(asked))
    except WengertError as error:
        told_by = str(error).replace("\n", "\n    ")
        return Reasons(f"{title}\n  there is no gradient: {told_by}")
    lines = [title, *["  " + line for line in told(findings)]]
    if len(diagnosis.results) > 1:
        lines[1:1] = [
            f"  of the sum of {len(diagnosis.results)} results; result={diagnosis.first!r} asks for the first"
        ]
    if any(x.op is not None for x in asked) and not any(x.kind != "None" for x in findings):
        rest = "all is well" if not findings else "all else is well"
        lines.append(f"  {rest}: every element of the gradient is finite, and none is zero")
    return Reasons("\n".join(lines), findings)


def told(findings: Collection[Finding]) -> Iterator[str]:
    """All findings in words; those that are alike, and have the same places, at once."""
    alike: dict[Any, list[Finding]] = {}
    for x in findings:
        where = tuple((p.site, p.cause) for p in x.places)
        alike.setdefault((x.kind, where), []).append(x)
    for first, *others in alike.values():
        lines = first.lines()
        yield next(lines)
        if others:
            names = ", ".join(x.path for x in others[:MOST])
            more = f" and {len(others) - MOST} others" if len(others) > MOST else ""
            yield f"  and so it is by {names}{more}"
        yield from lines


# ------------------------------------------------------------------------------------------------- spots


@dataclass(frozen=True)
class Spot:
    """A number or an array among the arguments; without an op, if it has no derivative."""

    path: str
    op: Op | None
    value: Any


def spots_of(
    f: Any, done: Run, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Any
) -> list[Spot]:
    """The spots of the arguments that are asked for."""
    names = argument_names(f, len(args))
    given = dict(zip(names, zip(done.args, args, strict=True), strict=True))
    given |= {name: (done.kwargs[name], value) for name, value in kwargs.items()}
    chosen = given if argnums is None else argnums
    found: list[Spot] = []
    for key in [chosen] if isinstance(chosen, int | str) else chosen:
        if isinstance(key, int) and -len(args) <= key < len(args):
            key = names[key]
        if key not in given:
            raise TraceError(
                f"argnums is {key!r}, but {len(args)} positional arguments were given"
                + (f" and {', '.join(kwargs)}" if kwargs else "")
                + "\nan argnum is the position of an argument, or its name"
            )
        tree, value = given[key]
        found += spots_in(tree, value, key)
    return found


def spots_in(tree: Tree, value: Any, path: str) -> Iterator[Spot]:
    """The spots of one argument."""
    whole = leaf_of(tree)
    if whole is not None:
        yield Spot(path, whole.op, whole.value)
    elif isinstance(tree, Branch):
        for key, part in tree.parts.items():
            yield from spots_in(part, *piece(tree, value, key, path))
    elif is_worth_telling(value):
        yield Spot(path, None, value)


def piece(tree: Branch, value: Any, key: Any, path: str) -> tuple[Any, str]:
    """A part of a structure under a key, and its path."""
    own = key.name if type(key) is Own else key if frames.native(tree.kind) is None else None
    if own is not None:
        return attribute(value, own) if type(own) is str else None, f"{path}.{own}"
    try:
        return value[key], f"{path}[{frames.shown(key)}]"
    except (TypeError, LookupError):  # of a set
        return None, f"{path}[{frames.shown(key)}]"


def is_worth_telling(value: Any) -> bool:
    """Whether somebody might expect a gradient by a value that has none."""
    return isinstance(value, (str, bool, np.ndarray, np.generic))


# --------------------------------------------------------------------------------------------- diagnosis


class Diagnosis:
    """A traced run, and the reverse sweep over it."""

    def __init__(self, done: Run, has_aux: bool, callers: Callers, result: Any) -> None:
        self.tape = done.tape
        self.callers = callers
        callers.close(self.tape)
        self.counts: Counter[str] = Counter()  # of findings, by their kind
        tree, value, name = done.result, done.value, RESULT
        if has_aux and isinstance(tree, Branch):
            key = next(iter(tree.parts))
            (value, name), tree = piece(tree, value, key, name), tree.parts[key]
        self.first = first_path(tree)
        tree, value, name = self.part(tree, value, name, result)
        self.results = [x for x in leaves(tree) if x.op is not None]
        if not self.results and not any(True for _ in leaves(tree)):
            what, cure = what_it_is(value, name == RESULT)
            raise TraceError(f"{name} is {what}, which has no derivative\n{cure}")
        outs: list[Op] = [x.op for x in self.results if x.op is not None]
        self.needed = ancestors(self.tape.ops, outs)

    def part(self, tree: Tree, value: Any, name: str, keys: Any) -> tuple[Tree, Any, str]:
        """The part of a result that keys lead to, its value and its name; an element of an array is one more op."""
        rest = list(keys) if isinstance(keys, tuple) else [keys]
        while rest and isinstance(tree, Branch):
            key = rest.pop(0)
            known = key_in(tree, key)
            if known is None:
                shown = ", ".join([frames.shown(x) for x in tree.parts])
                raise TraceError(
                    f"{name} has no part {key!r}\nresult is one of its keys, {shown}, or a tuple of keys that lead on"
                )
            value, name = piece(tree, value, known[0], name)
            tree = tree.parts[known[0]]
        whole = leaf_of(tree)
        if not rest or whole is None:
            return tree, value, name
        index = rest[0] if len(rest) == 1 else tuple(rest)
        try:
            found = whole.value[index]
        except (TypeError, LookupError) as error:
            raise TraceError(
                f"{name}, {summary(whole.value)}, has no element at {index!r}: {error}\n"
                "result is an index or a key, or a tuple of those that lead to one number or array"
            ) from None
        name = f"{name}[{index!r}]"
        if whole.op is None:
            return Leaf(None, found), found, name
        op = append(self.tape, operator.getitem, (whole.op, index), {}, found, self.tape.site)
        return Leaf(op, found), found, name

    def place(self, op: Op, operation: str, cause: Cause) -> Place:
        """The place of an op."""
        site = self.callers.of(op)
        known = op.site is not site and op.site.filename and not op.site.filename.startswith(OURS)
        inner = op.site if known else None
        return Place(site, operation, cause, inner)

    def findings(self, spots: list[Spot]) -> Iterator[Finding]:
        """What is to be said, by the gravity of it."""
        wrt = [x.op for x in spots if x.op is not None]
        self.sweep(list(dict.fromkeys(wrt)))
        found = [*self.of_result(), *[y for x in spots for y in self.told(x)]]
        order = [*KINDS, "None"]
        yield from sorted(found, key=lambda x: order.index(x.kind))

    def sweep(self, wrt: list[Op]) -> None:
        """Walk back, and note each cotangent, and where it comes from."""
        seeds = [(x.op, one(x)) for x in self.results if x.op is not None]
        walk = Walk(self.tape.ops, wrt, seeds)
        self.cotangents: dict[Op, Any] = dict(seeds)
        self.born: dict[Op, Op] = {}  # by op: what made its cotangent not finite
        self.sources: dict[Op, Op] = {}  # by op: what gave the most of its cotangent
        sizes: dict[Op, float] = {}
        for step in walk:
            self.cotangents[step.op] = step.cotangent
            for x in set(step.op.operands()):
                d = walk.cotangents.get(x)
                if d is None:
                    continue
                if not is_finite(d):
                    self.born.setdefault(x, step.op)
                size = size_of(d)
                if size > sizes.get(x, -1.0):
                    sizes[x] = size
                    self.sources[x] = step.op
        for op in wrt:
            self.cotangents[op] = kept(walk.cotangents.get(op))

    def of_result(self) -> Iterator[Finding]:
        """What is to be said of a result that is not finite itself."""
        for leaf in self.results:
            assert leaf.op is not None
            for kind, test in (("NaN", np.isnan), ("infinite", np.isinf)):
                mask = test(leaf.value)
                if mask.any():
                    place = self.made_at(self.origin(leaf.op) or leaf.op)
                    count, value = int(mask.sum()), np.asarray(leaf.value)[mask][0]
                    yield Finding(RESULT, kind, value, count, int(np.size(leaf.value)), (place,))

    # One spot

    def told(self, spot: Spot) -> Iterator[Finding]:
        """The findings of one spot."""
        if spot.op is None:
            place = Place(NOWHERE, "", of_what_has_none(spot.value))
            yield Finding(spot.path, "None", None, 1, 1, (place,))
            return
        d = self.cotangents.get(spot.op)
        shape = np.shape(spot.value)
        whole = np.broadcast_to(0.0 if d is None else np.asarray(d), shape)
        size = np.abs(whole)
        masks = {
            "NaN": np.isnan(whole),
            "infinite": np.isinf(whole),
            "zero": whole == 0,
            "huge": (size >= HUGE) & np.isfinite(size),
            "tiny": (size <= TINY) & (size > 0),
        }
        for kind in KINDS:
            mask = masks[kind]
            if mask.any():
                index = tuple(int(i) for i in np.argwhere(mask)[0])
                path = spot.path + (f"[{', '.join(map(str, index))}]" if index else "")
                self.counts[kind] += 1
                known = self.counts[kind] <= LOOKED_AT
                places = tuple(self.places(kind, spot.op, index)) if known else ()
                count = int(mask.sum())
                yield Finding(path, kind, whole[index], count, int(whole.size), places)

    def places(self, kind: str, op: Op, index: tuple[int, ...]) -> Iterator[Place]:
        """What is to blame for the gradient by one element of a variable."""
        if kind == "zero":
            yield from self.ends(op, index)
        elif kind in ("NaN", "infinite"):
            yield self.birth(op)
        else:
            yield self.slope(op, kind)

    # NaN and infinities

    def birth(self, op: Op) -> Place:
        """Where the first cotangent on the way to a variable was born that is not finite, or the value behind it."""
        while op in self.born:
            op = self.born[op]
            if is_finite(self.cotangents.get(op)):
                break
        origin = self.origin(op)
        if origin is not None:
            return self.made_at(origin)
        dz = self.cotangents.get(op)
        for x in op.operands():
            d = self.cotangents.get(x)
            if not is_finite(d) and isinstance(d, np.ndarray) and d.ndim:
                index = tuple(int(i) for i in np.argwhere(~np.isfinite(d))[0])
                return self.place(op, written(op, index, d.shape), where_it_is_born(op, False))
        what = f"{written(op)}, with the cotangent {summary(dz)}"
        return self.place(op, what, where_it_is_born(op, False))

    def made_at(self, op: Op) -> Place:
        """Where the run has come by a value that is not finite."""
        made = next(
            x for x in numbers_in(op.value) if not is_finite(x)
        )  # of several results, the first
        index = np.argwhere(~np.isfinite(made))[0] if np.ndim(made) else []
        what = (
            op.name
            if isinstance(op, Input)
            else written(op, tuple(map(int, index)), np.shape(made))
        )
        value = np.asarray(made)[tuple(index)] if np.ndim(made) else made
        return self.place(op, f"{what} = {summary(value)}", where_it_is_born(op, True))

    def origin(self, op: Op) -> Op | None:
        """The first op of the run on the way to one whose value is not finite, if any of its values is not."""
        found = None
        todo: Op | None = op
        while todo is not None:
            found = todo if not is_finite(todo.value) else found
            todo = next((x for x in todo.operands() if not is_finite(x.value)), None)
        return found

    # Zeros

    def ends(self, variable: Op, index: tuple[int, ...]) -> Iterator[Place]:
        """Where the influence of one element ends: operations, decisions, or nowhere in particular."""
        influence = Influence(self.tape, variable, index)
        if any(x.op in influence.tangents for x in self.results):
            yield from self.lost(influence)
            return
        # Where a slope is zero comes before what has none, which may only say by what the slope was chosen.
        known = [x for x in influence.ends if x[0] in self.needed]
        known = known or [x for part, x in influence.parts if part in self.needed]
        ends = sorted(known, key=lambda x: x[0] not in influence.steps)
        places = [
            place
            for op, alive in ends
            for place in (
                *self.kinks_behind(op, influence.entry(op, alive[0])),
                self.place(op, influence.written(op, alive), where_it_ends(op, alive)),
            )
        ]
        # That other elements are picked explains nothing where this one is as well.
        picked = [x for x in places if x.cause.name == "not picked"]
        guards = [op for op in influence.guards if op.site.filename] or influence.guards
        found = [x for x in places if x not in picked]
        found = found or [self.place(op, "", DECISION) for op in guards] or picked
        if found:
            yield from first_of_each(found)
        elif influence.last is not variable:
            yield self.place(influence.last, written(influence.last), LEFT)
        else:
            outside = [x.name for x in self.tape.inputs if x.role == "outside" and x in self.needed]
            caught = self.tape.once or ""
            cause = unused(outside, bool(self.results))
            yield Place(self.tape.site, "", after(caught) if "was caught" in caught else cause)

    def kinks_behind(self, op: Op, index: tuple[int, ...] | None) -> Iterator[Place]:
        """Where there is no derivative at all by what an operation gives, at which an influence ends."""
        d = self.cotangents.get(op)
        if index is None or not isinstance(d, (float, complex, np.ndarray, np.generic)):
            return
        if np.asarray(d)[index] == 0:
            influence = Influence(self.tape, op, index)
            for kink, alive in influence.ends:
                cause = where_it_ends(kink, alive)
                if kink in self.needed and cause.name == "kink":
                    yield self.place(kink, influence.written(kink, alive), cause)

    def lost(self, influence: Influence) -> Iterator[Place]:
        """Where a cotangent becomes zero though the slope is not; and where the slope is infinite, if it is so."""
        alive = [x for x in influence.tangents if x in self.needed]
        flowing = {x for x in alive if self.flows(influence, x)}
        for op in reversed(alive):
            for x in op.operands() if op in flowing else ():
                if x in influence.tangents and x not in flowing:
                    if op in influence.unknown:
                        yield self.place(op, written(op), where_it_ends(op, [x]))
                        return
                    ways = [x in y.operands() for y in flowing] + [x is y.op for y in self.results]
                    if sum(ways) > 1:
                        several = len(self.results) > 1
                        yield self.place(op, written(op), TOGETHER if several else CANCELLED)
                        return
                    steep = influence.steep
                    what = influence.written(op, [x])
                    yield self.place(op, what, UNDERFLOW if steep is None else ZERO_WINS)
                    if steep is not None and steep is not op:
                        what = influence.written(steep, [y for y in steep.operands() if y in alive])
                        yield self.place(steep, what, where_it_is_born(steep, False))
                    return
        yield self.place(influence.last, "", UNDERFLOW)

    def flows(self, influence: Influence, op: Op) -> bool:
        """Whether a cotangent is not zero where an influence is not."""
        t, d = influence.tangents[op], self.cotangents.get(op)
        if d is None or not isinstance(t, (float, complex, np.ndarray, np.generic)):
            return d is not None
        return bool(np.any((np.asarray(t) != 0) & (np.asarray(d) != 0)))

    # Huge and tiny

    def slope(self, op: Op, kind: str) -> Place:
        """The line that makes a cotangent most of what it is, on the way from the result to a variable."""
        gains: dict[tuple[Site, Any], list[tuple[float, Op]]] = {}
        while op in self.sources:
            source = self.sources[op]
            before, after = size_of(self.cotangents.get(source)), size_of(self.cotangents.get(op))
            if before > 0 and after > 0:
                gain = math.log10(after / before)
                if source.fn is not element:
                    gains.setdefault((source.site, source.fn), []).append((gain, source))
            op = source
        sign = 1 if kind == "huge" else -1
        most = max(gains.values(), key=lambda x: sign * sum(g for g, _ in x), default=[(0.0, op)])
        total = sum(g for g, _ in most)
        one = max(most, key=lambda x: sign * x[0])[1]
        tell = where_it_grows if kind == "huge" else where_it_shrinks
        return self.place(one, written(one), tell(one, total, len(most)))


def first_of_each(places: list[Place]) -> Iterator[Place]:
    """The first place of each line."""
    seen: dict[Site, Place] = {}
    for x in places:
        seen.setdefault(x.site, x)
    yield from seen.values()


def ancestors(ops: list[Op], results: list[Op]) -> set[Op]:
    """All that results depend on, by whatever operation."""
    found = set(results)
    for op in reversed(ops):
        if op in found:
            found.update(op.operands())
    return found


def key_in(tree: Branch, key: Any) -> tuple[Any] | None:
    """The key of a part that is asked for by it, or by its number; None where there is none."""
    if key in tree.parts:
        return (key,)
    if type(key) is int and frames.native(tree.kind) in (list, tuple):
        key += len(tree.parts)
    return (key,) if key in tree.parts else None


def first_path(tree: Tree) -> Any:
    """The keys that lead to the first number or array of a result."""
    path: list[Any] = []
    while isinstance(tree, Branch):
        key, tree = next((k, x) for k, x in tree.parts.items() if has_leaf(x))
        path.append(key.name if type(key) is Own else key)
    return path[0] if len(path) == 1 else tuple(path)


def what_it_is(value: Any, whole: bool) -> tuple[str, str]:
    """What a result is in which there is nothing that has a derivative, and what to do."""
    cure = "return a number or an array of floats"
    if type(value) in NUMBERLESS and (whole or value is not None):
        cure = numberless(value)[1]
    dtype = getattr(value, "dtype", None)
    of = f" of {dtype}" if dtype is not None else ""
    return "None" if value is None else with_article(type(value).__name__) + of, cure


def written(op: Op, index: tuple[int, ...] = (), shape: tuple[int, ...] = ()) -> str:
    """An operation with the values of its operands: of those of a shape the elements at an index."""
    if op.kind != "call":
        return ""
    one = index if not isinstance(op.value, (tuple, list)) and np.shape(op.value) == shape else ()
    values = [
        summary(x[one] if one and isinstance(x, np.ndarray) and x.shape == shape else x)
        for x in primal(op.args)
    ]
    name = "stop_gradient" if op.fn is held else fn_name(op.fn)
    return f"{name}({', '.join(values)})" + (f" at [{', '.join(map(str, one))}]" if one else "")


DECISION = Cause(
    "decision",
    "it only decides which way is taken here (an if, a while, an index, a key or a text), and no small change of it "
    "changes that",
    "compute with the value itself on the way taken, or use a smooth choice in the place of the decision",
)
LEFT = Cause(
    "unused result",
    "what is computed from it here does not reach the result",
    "check which variable is returned, and whether a result is overwritten or left out",
)
TOGETHER = Cause(
    "cancelled",
    "its influences on the results add up to zero",
    "ask for each result by itself: why(f, …, result=0), with the index or the key of one",
)
CANCELLED = Cause(
    "cancelled",
    "its influences on the result add up to zero",
    "if it is so everywhere, the function does not depend on it, as a sum of deviations from a mean does not: "
    "check the signs, or divide by what it is normalised with only once",
)
ZERO_WINS = Cause(
    "times zero",
    "a cotangent of zero meets an infinite slope, and by convention zero wins",
    "keep the operand away from where the slope is infinite, or leave out what multiplies by zero",
)


def after(caught: str) -> Cause:
    """The function has gone on without an argument for which an operation has failed."""
    return Cause(
        "decision",
        f"{caught}, and what was computed instead does not depend on it",
        "ask before instead of catching afterwards, and compute with the value on either way",
    )


def unused(outside: list[str], moves: bool) -> Cause:
    """The function does not use an argument."""
    also = (
        f"; what it does use, from outside of its arguments: {', '.join(outside)}"
        if outside
        else ""
    )
    what = (
        "nothing is computed from it"
        if moves
        else "the result is a constant: nothing is computed from it"
    )
    return Cause(
        "constant",
        f"{what}{also}",
        "use the argument in the place of a variable from outside, or leave it out",
    )


class Influence:
    """What becomes of a small change of one element of a variable: its tangents along the tape."""

    def __init__(self, tape: Tape, variable: Op, index: tuple[int, ...]) -> None:
        self.variable = variable
        pusher = Pusher(Tape(), NOWHERE)
        self.tangents = pusher.tangents
        self.tangents[variable] = unit(variable.value, index)
        self.last = variable  # the last op that it reaches
        self.ends: list[tuple[Op, list[Op]]] = []  # with the operands that it comes by
        # Elements that it misses, and of what.
        self.parts: list[tuple[Op, tuple[Op, list[Op]]]] = []
        self.guards: list[Op] = []
        self.unknown: set[Op] = (
            set()
        )  # ops whose tangent could not be found, and is taken for some other
        self.steps = set(dependents(tape.ops, [variable])[0])
        reached = {variable}  # by whatever operation
        with np.errstate(all="ignore"):
            for op in tape.ops:
                operands = op.operands()
                if reached.isdisjoint(operands):
                    continue
                reached.add(op)
                if op.kind == "guard":
                    self.guards.append(op)
                if op.kind != "call":
                    continue
                alive = [x for x in operands if x in self.tangents]
                if not alive:
                    continue
                t = self.pushed(pusher, op) if op in self.steps else None
                if t is None or is_zero(t):
                    # Not the other elements of a tuple, nor what a rule computed for its value.
                    if op.fn is element:
                        several = alive[0]
                        sources = [x for x in several.operands() if x in self.tangents]
                        self.parts.append((op, (several, sources)))
                    elif op.fn is not severed:
                        self.ends.append((op, alive))
                else:
                    self.tangents[op] = t
                    self.last = op

    def pushed(self, pusher: Pusher, op: Op) -> Any:
        """The tangent of an op, as a plain value; where its rule cannot be run for it, any that is not zero."""
        try:
            return primal(pusher.push(op))
        except WengertError:
            self.unknown.add(op)
            return ones(op.value)

    @property
    def steep(self) -> Op | None:
        """The first op whose tangent is not finite."""
        return next((op for op, t in self.tangents.items() if not is_finite(primal(t))), None)

    def written(self, op: Op, alive: list[Op]) -> str:
        """An operation with its values, where the influence comes in."""
        return written(op, self.spot(alive[0]), np.shape(alive[0].value))

    def spot(self, op: Op) -> tuple[int, ...]:
        """The first element of an op's value that is influenced."""
        t = primal(self.tangents[op])
        spots: Any = np.argwhere(np.asarray(t) != 0) if isinstance(t, np.ndarray) and t.ndim else []
        return tuple(int(i) for i in spots[0]) if len(spots) else ()

    def entry(self, op: Op, operand: Op) -> tuple[int, ...] | None:
        """The element of an op's value that an influenced one of its operand would go on in; None if nobody knows."""
        shape = value_shape(op)
        if not shape:
            return shape
        return self.spot(operand) if shape == value_shape(operand) else None


def value_shape(op: Op) -> tuple[int, ...] | None:
    """The shape of a number or an array; None of what is neither."""
    value = op.value
    return np.shape(value) if isinstance(value, (float, complex, np.ndarray, np.generic)) else None


def unit(value: Any, index: tuple[int, ...]) -> Any:
    """The tangent of a change of one element."""
    if not isinstance(value, np.ndarray):
        return type(value)(1.0) if isinstance(value, np.generic) else 1.0
    t = np.zeros(value.shape, value.dtype)
    t[index] = 1
    return t


def ones(value: Any) -> Any:
    """A tangent of a value, or of each of several, that is zero nowhere."""
    if isinstance(value, (tuple, list)):
        return tuple(map(ones, value))
    return np.ones_like(value)[()]


def is_zero(t: Any) -> bool:
    if t is None:
        return True
    if isinstance(t, (tuple, list)):
        return all(map(is_zero, t))
    try:
        return not np.any(np.asarray(t) != 0)
    except TypeError:
        return False
