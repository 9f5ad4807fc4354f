"""``checkpoint``: a function whose intermediate values are computed again for the reverse sweep, instead of kept.

Words
-----
stretch   the ops that a call of a checkpointed function has put on the tape.
segment   what takes their place: one op, called with the values that the stretch takes from before it. Its value is a
          tuple of what is needed of the stretch afterwards; the rest is forgotten.
replay    the ops of a stretch once more, as new ops with values: the sweep runs over those.
escape    a value of the stretch that somebody outside could get hold of other than as a result.

A stretch is recorded like any other before it is folded, so what the function reads by its closure, from objects or
globals are operands of the segment like its arguments. Where folding could change what the program means (random
numbers, prints, writes to what lies outside, rules that are not pure), the stretch stays as it is.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from ..rules.registry import lookup
from ..tracer import calls, places
from ..tracer.active import active
from ..tracer.border import ATOMS
from ..tracer.box import BOXES, ArrayBox, Box
from ..tracer.errors import GuardError
from ..tracer.intrinsic import intrinsic
from ..tracer.kinds import attribute, has, is_one_of, isinstance
from ..tracer.loops import Carry, drawn
from ..tracer.pairs import Pair
from ..tracer.purity import is_pure
from ..tracer.run import must_be_callable
from ..tracer.session import Tracer
from ..tracer.source import Writer
from ..tracer.structure import attributes, is_container
from ..tracer.tape import GONE, Input, Op, Site, Tape, append, copy_of, element, primal, substitute
from ..tracer.tracebacks import fold
from . import forward
from .argnums import refusing
from .loops import LoopFunction, Miss
from .programs import may_end
from .reverse import OWN, Machine, Parts, Recorded, dependents, run_steps
from .shapes import has_free_shape, shape_in_words, shapes_of

F = TypeVar("F", bound=Callable[..., Any])


@intrinsic
@refusing
def checkpoint(f: F) -> F:
    """``f``, differentiated with less memory: what it computes on its way is not kept, but computed again.

    Without it every intermediate value is kept until the reverse sweep. Of a call of the checkpointed function only the
    arguments and the result are kept; when the sweep comes to it, the call's operations are run again, and what they
    give is dropped again after it. A chain of n layers in √n checkpointed groups needs √n times as much memory as one
    layer, for one more forward run. Values and gradients are the same, to the bit where they are traced.

    Operations are repeated, not the function: it is called once, and prints once. A call that draws random numbers,
    prints, writes to something outside, or uses a rule that is not pure keeps its values as if it were not
    checkpointed. A value that leaves the function other than in its result and is used later raises `TraceError`.

    >>> import math
    >>> from wengert import grad
    >>> @checkpoint
    ... def layer(x):
    ...     return math.sin(math.exp(x))
    >>> grad(lambda x: layer(layer(x)))(0.5) == grad(lambda x: layer.__wrapped__(layer.__wrapped__(x)))(0.5)
    True
    """

    must_be_callable(f)

    @functools.wraps(f)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        try:
            return segmented(f, args, kwargs)
        except BaseException as error:
            fold(error)
            raise

    return checkpointed  # type: ignore[return-value]


@intrinsic
def segmented(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``f``; while a function is traced, fold what the call puts on the tape."""
    tracer = active.tracer
    if tracer is None:
        return f(*args, **kwargs)
    site, tape = places.user_site(), tracer.tape
    start, cached = len(tape.ops), tracer.cached
    before, tape.overwritten = tape.overwritten, []
    try:
        result = calls.call(tracer, site, f, args, kwargs)
    finally:
        written, tape.overwritten = tape.overwritten, before
        if before is not None:
            before += written
    if tracer.folds and tracer.primitives is None and tracer.cached == cached:
        stretch = Stretch(tracer, start, written, result, (f, args, kwargs))
        if stretch.can_be_folded():
            stretch.fold(attribute(f, "__name__", "f"), site)
    return result


class Stretch:
    """The ops that a call has put on the tape, from ``start`` on, its ``result``, and what was ``given`` to it."""

    def __init__(
        self, tracer: Tracer, start: int, overwritten: list[Op], result: Any, given: Any
    ) -> None:
        self.tracer = tracer
        self.start = start
        self.overwritten = overwritten
        self.result = result
        self.given = given
        self.first: dict[
            Op, None
        ] = {}  # inputs, and what cannot be repeated: it stays before the segment
        self.last: list[Op] = []  # guards, which stay behind it
        self.body: dict[Op, None] = {}
        self.boxes: list[Box] = []  # the results that come out of the body

    def can_be_folded(self) -> bool:
        """Sort the ops; says whether repeating those of the body later would give the same."""
        for op in self.tracer.tape.ops[self.start :]:
            inner = any(x in self.body for x in op.operands())
            if op.kind == "effect" or type(op.fn) is Pair:
                return False
            if op.kind == "guard":
                self.last.append(op)
            elif (
                op.kind == "input" or op.fn is drawn
            ):  # a mark for the loop around, which computes nothing
                self.first[op] = None
            elif not inner and not self.is_repeatable(op):
                if (
                    self.last
                ):  # it is asked for when something has been decided, and so must be again
                    return False
                self.first[op] = None
            elif self.is_repeatable(op):
                self.body[op] = None
            else:
                return False
        if not self.body or not all(op in self.body for op in self.overwritten):
            return False
        try:
            found = {id(x): x for x in boxes_in(self.result) if x.op in self.body}
            self.boxes = list(found.values())
        except Opaque:
            return False
        return not self.has_escaped() and self.is_apart()

    def is_repeatable(self, op: Op) -> bool:
        """Whether an op gives the same again: it looks at nothing but values, and tosses no coin."""
        fn = op.fn
        if fn is element:
            return op.args[0] not in self.first
        rule = lookup(fn)
        if (
            not is_one_of(type(fn), (Segment, LoopFunction))
            and not isinstance(fn, Carry)
            and (rule is None or rule.recorded)
            and not is_pure(fn)
        ):
            return False
        owner = attribute(fn, "__self__")
        kinds = (types.ModuleType, type, np.ufunc, type(None))
        return isinstance(owner, kinds) and all(map(is_value, (*op.args, *op.kwargs.values())))

    def has_escaped(self) -> bool:
        """Whether the call has put a value of the body where later code finds it."""
        tracer = self.tracer
        held: list[Any] = [entry[2] for entry in tracer.overlay.values()]
        for shadow, _ in tracer.originals.values():
            held += shadow.values() if isinstance(shadow, dict) else shadow
        for _, cell in tracer.cells.values():
            try:
                held.append(cell.cell_contents)
            except ValueError:  # an empty cell
                pass
        if any(is_one_of(type(x), BOXES) and x.op in self.body for x in held):
            return True
        return any(x.op in self.body for x in boxes_in(self.given, within=True))

    def is_apart(self) -> bool:
        """Whether no result is a view of something else than another result, so that none is written through to it."""
        arrays = [x for x in self.boxes if type(x) is ArrayBox]
        for x in arrays:
            others = [y for y in arrays if y is not x and y.memory is x.memory]
            root = x
            while root.derivation is not None:
                root = root.derivation[0]
            if root is not x and (others or root.op not in self.body):
                return False
        return True

    def fold(self, name: str, site: Site) -> None:
        """Put a segment in the place of the body."""
        tape = self.tracer.tape
        outputs: dict[Op, Op | None] = {x.op: None for x in self.boxes}
        outputs.update({x: None for op in self.last for x in op.operands() if x in self.body})
        free = [op for op in self.body if has_free_shape(op)]
        needed = outputs | dict.fromkeys(free) | dict.fromkeys(filter(may_end, self.body))
        for op in reversed(self.body):
            if op in needed:
                needed.update(dict.fromkeys(op.operands()))
        body = [op for op in self.body if op in needed]
        inner = Tape(name, site)
        copies: dict[Op, Op] = {}
        given = [op for op in needed if op not in self.body]
        for i, op in enumerate(given):
            copies[op] = Input(f"x{i}", None, inner)
            inner.ops.append(copies[op])
        for op in body:
            copies[op] = copy_of(op, inner, copies)
            inner.ops.append(copies[op])
            if op in tape.callers:
                inner.callers[copies[op]] = tape.callers[op]
        inner.result = tuple([copies[op] for op in outputs])
        if self.tracer.loops is not None:
            self.tracer.loops.forget(self.start)
        tape.ops[self.start :] = self.first
        shapes = {copies[op]: (shapes_of(op.value), shape_in_words(op)) for op in free}
        segment = append(
            tape,
            Segment(inner, shapes),
            tuple(given),
            {},
            tuple([op.value for op in outputs]),
            site,
        )
        for i, op in enumerate(list(outputs)):
            outputs[op] = append(tape, element, (segment, i), {}, op.value, op.site)
        for op in self.last:
            op.args = substitute(op.args, lambda x: outputs.get(x) or x)
        tape.ops += self.last
        tape.again.update(dict.fromkeys(given))
        for x in self.boxes:
            self.redirect(x, outputs[x.op])
        for op in self.body:
            op.tape = GONE
            tape.again.pop(op, None)

    def redirect(self, x: Box, op: Any) -> None:
        """Let a result come from the segment."""
        x.op = op
        if type(x) is ArrayBox:
            x.derivation = None
            x.memory.saved = [old for old in x.memory.saved if old not in self.body]
            x.memory.saved.append(op)


def is_value(x: Any) -> bool:
    """Whether a constant on the tape is what it is: no object that may change, or be used up."""
    if is_one_of(type(x), (tuple, list)):
        return all(map(is_value, x))
    if type(x) is dict:
        return all(map(is_value, x.values()))
    if type(x) is slice:
        return is_value((x.start, x.stop, x.step))
    kinds = (Op, int, float, complex, np.generic, np.ndarray, np.dtype, types.EllipsisType)
    return is_one_of(type(x), ATOMS) or isinstance(x, kinds) or x is np._NoValue


PACKAGE = __name__.partition(".")[0]


class Opaque(Exception):
    """Something that cannot be looked into, and may hold boxes."""


def boxes_in(x: Any, seen: set[int] | None = None, within: bool = False) -> Iterator[Box]:
    """The boxes in what a function returns; ``within`` also those in the closures of functions.

    Raises Opaque for what cannot be looked into, if it is no function; ``within`` passes over it.
    """
    seen = set() if seen is None else seen
    if is_one_of(type(x), BOXES):
        yield x
    elif id(x) in seen or isinstance(x, (type, types.ModuleType, np.ndarray)):
        return
    elif is_container(x):
        seen.add(id(x))
        for part in x.values() if isinstance(x, dict) else x:
            yield from boxes_in(part, seen, within)
    elif within and isinstance(x, types.MethodType | functools.partial):
        owner = x.__self__ if isinstance(x, types.MethodType) else (x.args, x.keywords)
        yield from boxes_in((attribute(x, "__func__") or x.func, owner), seen, within)  # type: ignore[union-attr]
    elif within and isinstance(x, types.FunctionType):
        seen.add(id(x))
        for cell in x.__closure__ or ():
            try:
                yield from boxes_in(cell.cell_contents, seen, within)
            except ValueError:  # an empty cell
                pass
    elif isinstance(x, types.FunctionType | types.MethodType | types.GeneratorType | slice):
        if not within:
            raise Opaque
    elif not is_one_of(type(x), ATOMS):
        ours = type(x).__module__.startswith(f"{PACKAGE}.")  # a pullback, say
        if ours or has(type(x), "__next__") or isinstance(x, functools.partial):
            if within:
                return
            raise Opaque
        seen.add(id(x))
        for part in attributes(x).values():
            yield from boxes_in(part, seen, within)


class OtherShape(Miss, GuardError):
    """The values that a segment is called with give an array of another shape than in the traced run."""


class SegmentWriter(Writer):
    """Writes the function of a segment, in the engine and in files: it checks the shapes that the data decide."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment.tape)
        self.shapes = segment.shapes

    def statement(self, op: Op) -> list[str]:
        lines = super().statement(op)
        if op in self.shapes:
            shape, words = self.shapes[op]
            message = f"{words}, and has another here\ntrace the function for these arguments"
            asked = f"{self.named(shapes_of, 'shapes_of')}({self.argument(op)})"
            error = f"{self.named(OtherShape, 'OtherShape')}({message!r})"
            lines.append(f"    if {asked} != {shape!r}: raise {error}")
        return lines


class Segment:
    """The ops of a checkpointed call, as a function from what they need to what is needed of them.

    ``shapes`` are those that the data have decided, also in words. The ops hold for them alone.
    """

    def __init__(self, tape: Tape, shapes: dict[Op, tuple[Any, str]]) -> None:
        self.tape = tape
        self.shapes = shapes
        self.__name__ = f"checkpointed_{tape.name}"
        self.function: Any = None

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        if self.function is None:
            writer = SegmentWriter(self)
            self.function = writer.run(writer.write("segment"), "segment")
        return self.function(*args)  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return Segment, (self.tape, self.shapes)

    def replay(self, args: Iterable[Op], tape: Tape) -> tuple[list[Op], list[Op]]:
        """The ops once more, with values, for operands on another tape; and which of them are the results."""
        known: dict[Op, Op] = dict(zip(self.tape.inputs, args, strict=True))
        made = []
        for op in self.tape.ops:
            if op.kind == "call":
                new = known[op] = copy_of(op, tape, known)
                new.value = new.fn(*primal(new.args), **primal(new.kwargs))
                made.append(new)
                if op in self.tape.callers:
                    tape.callers[new] = self.tape.callers[op]
        return made, [known[op] for op in self.tape.result]


def pull_segment(machine: Machine, op: Op, dz: Any, active: set[Op]) -> None:
    """Run a segment again, and the sweep over it."""
    assert isinstance(dz, Parts)
    recorded = isinstance(machine, Recorded)
    tape = machine.tape if recorded else Tape()  # type: ignore[attr-defined]
    made, results = op.fn.replay(op.args, tape)
    if recorded:
        tape.ops += made
        machine.repeated += made  # type: ignore[attr-defined]
    wrt = [x for x in op.args if x in active]
    steps, inner = dependents(made, wrt)
    for result, d in zip(results, dz.parts, strict=True):
        if d is not None and result in inner:
            machine.accumulate(result, d)
    run_steps(steps, inner, machine)


def push_segment(pusher: forward.Pusher, op: Op) -> tuple[Any, ...]:
    """Carry tangents along the ops of a segment; forward, there is nothing to be saved."""
    made, results = op.fn.replay(op.args, pusher.tape)
    pusher.tape.ops += made
    tangents = pusher.tangents
    steps, _ = dependents(made, [x for x in op.args if x in tangents])
    for x in forward.needed(steps, results):
        t = pusher.push(x)
        if t is not None:
            tangents[x] = t
    return tuple([tangents.get(x) for x in results])


OWN[Segment] = pull_segment
forward.OWN[Segment] = push_segment
