"""Rules that are not pure: their bodies are run once a call and traced like user code.

Words
-----
body      a rule up to its return. It gives a value and the pullback that belongs to this very call.
pair      the two. On the tape it is the callable of an op ``pair(operands…, value)``, which is the value; the sweep
          calls its pullback (see ``transforms.pairs``).
severed   the value of a body as a constant: a derivative flows by the pullback, not through what the body computed.
captured  an array that a pullback finds in a variable of its rule. It counts as it was when the rule had returned.

The pullback lives on boxes as long as the run goes on, and shares its variables with the body. When the run has ended
it becomes the plain Python function that it would have been without us.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..rules import registry
from ..rules.linear import variable
from ..rules.registry import nondiff
from ..rules.words import with_article
from . import directions, meaning, rewrite
from .arrays import current, same_place, save
from .border import ATOMS
from .box import BOXES, ArrayBox, Box
from .closed import must_be_closed, must_come_from
from .detours import code_of, made_inside
from .directions import is_number
from .errors import CotangentError, TraceError
from .kinds import attribute, is_one_of, isinstance, own_dict
from .opaque import opaque
from .places import blame
from .purity import is_pure
from .record import box, box_of, describe, has_box, operand, stored
from .session import Tracer
from .structure import FIXED, Branch, Leaf, Tree, is_container, is_namedtuple
from .tape import Op, Site, append, element, fn_name, ops_in, primal
from .unboxing import lower

FunctionType = types.FunctionType


@nondiff
def severed(value: Any) -> Any:
    """The identity, through which no derivative flows."""
    return value


class Pair:
    """What one call of a recorded rule returned, as the callable of an op.

    ``tree`` is the structure of the value. If that is one number or array, it is the op's value; of a structure the
    op's value is the tuple of its leaves.
    """

    def __init__(self, fn: Any, rule: registry.Rule, pullback: Any, tree: Tree, site: Site) -> None:
        self.fn = fn
        self.rule = rule
        self.pullback = pullback
        self.tree = tree
        self.site = site
        self.captured: list[Captured] = []
        self.form: Any = None  # the pullback as it was recorded for the forward mode
        self.__name__ = fn_name(fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[-1]

    def __repr__(self) -> str:
        return f"<a call of {self.__name__}>"


def is_recorded(tracer: Tracer, rule: registry.Rule) -> bool:
    """Whether a call that the tracer has come to is answered by a rule that is not pure.

    A rule that is being expanded is pure, and so is what it calls.
    """
    pure = rule.pure_forward if is_forward(tracer, rule) else rule.pure
    return not (pure or tracer.expanding)


def is_forward(tracer: Tracer, rule: registry.Rule) -> bool:
    """Whether to go by the rule for the forward mode: where somebody waits for tangents, or there is no other."""
    return rule.forward is not None and (tracer.forward or rule.function is None)


def call(tracer: Tracer, site: Site, fn: Any, rule: registry.Rule, args: Any, kwargs: Any) -> Any:
    """Call a primitive whose rule is recorded; NotImplemented, where it is a call like that of any other primitive."""
    if tracer.reads is not None:
        tracer.reads.pin(fn)  # another closure with the same code is another primitive
    wanted = not tracer.last and fn not in tracer.bodies
    if wanted and (has_box(args) or has_box(kwargs)):
        how = recorded_forward if is_forward(tracer, rule) else recorded
        return how(tracer, site, fn, rule, args, kwargs)
    # Nobody asks for its derivative, or it is the rule that calls: this is what plain Python calls.
    if rule.custom:
        made = Answer(tracer, site, fn, args, kwargs)
        value = body(tracer, site, fn, rule, args, kwargs)[0]
        if wanted:
            made.must_be_given(stored(value, []))
        return value
    if is_pure(fn):
        return NotImplemented
    if type(fn) is FunctionType:
        must_be_closed(tracer, site, fn, args, kwargs)
    return opaque(tracer, site, fn, args, kwargs)


def body(
    tracer: Tracer, site: Site, fn: Any, rule: registry.Rule, args: Any, kwargs: Any
) -> tuple[Any, Any]:
    """Run the body of a rule."""
    tracer.bodies.append(fn)
    try:
        return pair_of(rule.function, meaning.calls.call(tracer, site, rule.function, args, kwargs))
    finally:
        tracer.bodies.pop()


def pair_of(function: Any, made: Any) -> tuple[Any, Any]:
    """What a rule returned, if it is a value and a pullback."""
    if not isinstance(made, tuple) or len(made) != 2 or not callable(made[1]):
        raise CotangentError(
            f"{place_of(function)} is a rule and must return (value, pullback)\n"
            "end it with: return y, pullback, where pullback(dy) gives one cotangent for each argument"
        )
    return made


def place_of(function: Any) -> str:
    """The name of a rule and where it stands."""
    code = getattr(attribute(function, "__func__", function), "__code__", None)
    name = attribute(function, "__name__", type(function).__name__)
    return name if code is None else f"{name} ({Site.of_code(code).place})"


def recorded(
    tracer: Tracer, site: Site, fn: Any, rule: registry.Rule, args: Any, kwargs: Any
) -> Any:
    """Run the body of a rule, and put the pair on the tape."""
    made = Answer(tracer, site, fn, args, kwargs)
    value, pullback = body(tracer, site, fn, rule, args, kwargs)
    made.look(value)
    pair = Pair(fn, rule, pullback, made.tree, site)
    result = made.put(pair, value, ())
    if made.parts:
        note_captured(tracer, pair)
        tracer.pairs.append(pair)
    return result


def recorded_forward(
    tracer: Tracer, site: Site, fn: Any, rule: registry.Rule, args: Any, kwargs: Any
) -> Any:
    """Run a rule for the forward mode, and put the value and its derivative on the tape."""
    made = Answer(tracer, site, fn, args, kwargs)
    tracer.bodies.append(fn)
    try:
        answer = directions.called(tracer, site, fn, rule, args, kwargs)
    finally:
        tracer.bodies.pop()
    if answer is None:
        if rule.function is not None:
            return NotImplemented if rule.pure else recorded(tracer, site, fn, rule, args, kwargs)
        return NotImplemented if is_pure(fn) else opaque(tracer, site, fn, args, kwargs)
    value, t, given = answer
    made.look(value)
    tangents = operand(tuple(directions.flattened(tracer, fn, site, t, value)), [])
    ops, moving = tracer.tape.ops[made.start :], list(given.values())
    tape, sources = directions.linear_part(fn_name(fn), site, ops, moving, tangents)
    operands = [*ops_in(made.operands), *ops_in(made.options)]
    places = [operands.index(op) for op in given]
    guessed = [x for x in moving if x.fn is not variable]
    linear = directions.Linear(
        fn, tape, places, directions.decides(ops, moving), directions.decides(ops, guessed)
    )
    return made.put(linear, value, (tuple(sources),))


class Answer:
    """What a recorded rule has made of a call: the ops from ``start`` on are its body's."""

    def __init__(self, tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> None:
        self.tracer, self.site, self.fn, self.given = tracer, site, fn, (args, kwargs)
        self.operands, self.options = operand(args, []), operand(kwargs, [])
        self.start, self.cached = len(tracer.tape.ops), tracer.cached

    def look(self, value: Any) -> None:
        """Look at the value that the rule has returned: its structure, its numbers and arrays."""
        self.parts: list[Any] = []
        self.tree = tree_of(value, self.parts, self.fn, self.site)
        one = isinstance(self.tree, Leaf)
        self.sources = operand(self.parts[0] if one else tuple(self.parts), [])
        self.must_be_given(self.sources)

    def must_be_given(self, sources: Any) -> None:
        """Make sure that the value was computed from nothing traced but the operands."""
        self.own = set(self.tracer.tape.ops[self.start :])
        given = {*ops_in(self.operands), *ops_in(self.options)}
        call = (self.tracer, self.site, self.fn, *self.given)
        must_come_from(*call, given, self.own, sources)

    def put(self, pair: Any, value: Any, more: tuple[Any, ...]) -> Any:
        """Put an op on the tape that is the value, with the derivative of a pair, and give the value as it is now."""
        tape, site = self.tracer.tape, self.site
        if not self.parts:
            return value
        one, sources = isinstance(self.tree, Leaf), self.sources
        plain = primal(sources)
        cut = append(tape, severed, (sources,), {}, plain, site)
        op = append(tape, pair, (*self.operands, *more, cut), self.options, plain, site)
        ops = [op]
        if not one:
            ops = [append(tape, element, (op, i), {}, x, site) for i, x in enumerate(plain)]
        # What a cache has kept may be somebody else's.
        fresh = self.own if self.tracer.cached == self.cached else set()
        leaves = iter(
            [renamed(self.tracer, x, op, fresh) for x, op in zip(self.parts, ops, strict=True)]
        )
        return refilled(self.tracer, value, leaves, self.given, self.fn, site)


def returned(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any, x: ArrayBox) -> ArrayBox:
    """An array that a primitive was given and returns as it is, where somebody's rule has a derivative for that."""
    op = append(tracer.tape, fn, operand(args, []), operand(kwargs, []), x.value, site)
    return renamed_array(x, op, False)


# ---------------------------------------------------------------------------------------------- the value


def tree_of(value: Any, parts: list[Any], fn: Any, site: Site) -> Tree:
    """The structure of a value; its numbers and arrays, which have derivatives, are added to ``parts``."""
    kind = type(value)
    if is_number(value):
        parts.append(value)
        return Leaf(None, None)
    if (
        is_one_of(kind, BOXES)
        or is_one_of(kind, ATOMS)
        or isinstance(value, (np.generic, np.dtype))
    ):
        return FIXED
    if is_container(value) and not is_one_of(kind, (set, frozenset)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return Branch(kind, {key: tree_of(x, parts, fn, site) for key, x in items})
    raise TraceError(
        f"{blame(site)}: the rule of {fn_name(fn)} makes {with_article(describe(value))} of traced values, "
        "through which no "
        "gradient can be followed\nlet the rule return numbers, arrays, or lists, tuples and dicts of them"
    )


def renamed(tracer: Tracer, x: Any, op: Op, fresh: set[Op]) -> Any:
    """A part of the value as the program gets it: what is computed from it has the derivative that the rule says.

    A box that the body has made is the same from here on, for the pullback too, which may have captured it.
    """
    kind = type(x)
    own = is_one_of(kind, BOXES) and x.op in fresh and x.op.kind == "call"
    if kind is Box:
        if own:
            x.op = op
            return x
        return Box(x.value, op)
    if kind is ArrayBox:
        return renamed_array(x, op, own)
    return box(tracer, op, [])


def renamed_array(x: ArrayBox, op: Op, fresh: bool) -> ArrayBox:
    """The same for an array; one that existed before the rule has a box more, and is written to through either."""
    memory = x.memory
    if fresh and x.derivation is None and not memory.boxes:
        x.op, x.seen = op, memory.writes
        memory.saved.append(op)
        return x
    root = x
    while root.derivation is not None:
        root = root.derivation[0]
    alias = ArrayBox(x.value, op, memory)
    memory.saved.append(op)
    # A part of an array is on its own: after a write to the one, a use of the other is refused.
    if same_place(root.value, alias.value):
        known = {id(other) for other in memory.boxes}
        memory.boxes += [other for other in (root, alias) if id(other) not in known]
    return alias


def refilled(
    tracer: Tracer, value: Any, leaves: Iterator[Any], given: Any, fn: Any, site: Site
) -> Any:
    """The value with other leaves. A list or dict is the rule's own, and stays the same object."""
    kind = type(value)
    if is_number(value):
        return next(leaves)
    if not is_container(value) or is_one_of(kind, (set, frozenset)):
        return value
    items = value.items() if isinstance(value, dict) else enumerate(value)
    pairs = [(k, refilled(tracer, x, leaves, given, fn, site)) for k, x in items]
    if isinstance(value, tuple):
        parts = [x for _, x in pairs]
        return value._make(parts) if is_namedtuple(kind) else tuple(parts)  # type: ignore[attr-defined]
    if id(value) in tracer.originals or any(value is x for x in containers(given)):
        raise TraceError(
            f"{blame(site)}: the rule of {fn_name(fn)} returns {with_article(kind.__name__)} that it did not "
            "make\nreturn a copy"
        )
    for key, x in pairs:
        value[key] = x
    return value


def containers(value: Any) -> Iterator[Any]:
    """The lists and dicts in a nested argument."""
    if is_container(value) and not is_one_of(type(value), (set, frozenset)):
        yield value
        for x in value.values() if isinstance(value, dict) else value:
            yield from containers(x)


# ------------------------------------------------------------------------------------------ what is captured


class Captured:
    """What a variable holds that a pullback shares with its rule: arrays, and which versions of them.

    ``cell`` is None where the arrays lie in something that cannot hold others in their place.
    """

    def __init__(self, cell: Any, content: Any, arrays: list[ArrayBox]) -> None:
        self.cell = cell
        self.content = content
        self.versions = {id(x): (x, current(x), x.memory.writes) for x in arrays}
        save(arrays)

    @property
    def stale(self) -> bool:
        """Whether an array was written to since."""
        return any(x.memory.writes != writes for x, _, writes in self.versions.values())

    def replaced(self, leaf: Any) -> None:
        """Put ``leaf(box, op)`` in the place of each array."""
        now = self.cell.cell_contents
        if now is self.content or (
            is_one_of(type(self.content), BOXES) and now is self.content.value
        ):
            self.content = self.cell.cell_contents = self.mapped(self.content, leaf)

    def mapped(self, value: Any, leaf: Any) -> Any:
        if id(value) in self.versions:
            return leaf(*self.versions[id(value)][:2])
        if isinstance(value, tuple):
            parts = [self.mapped(x, leaf) for x in value]
            return value._make(parts) if hasattr(value, "_make") else tuple(parts)
        return value


def note_captured(tracer: Tracer, pair: Pair) -> None:
    """Remember the versions of the arrays that a pullback has captured, as they are now."""
    rule: Any = pair.rule.function
    known = tracer.twins.get(id(rule))
    rule = known[1] if known is not None else rule
    own = type(rule) is FunctionType and made_inside(rule)
    outside = {id(cell) for cell in rule.__closure__ or ()} if own else set()
    outside.update([id(shadow) for _, shadow in [*tracer.cells.values()]])
    pair.captured = [
        Captured(cell if is_replaceable(content) else None, content, arrays)
        for cell, content in variables(pair.pullback, outside, set())
        if (arrays := list(arrays_in(content, set())))
    ]


def variables(value: Any, outside: set[int], seen: set[int]) -> Iterator[tuple[Any, Any]]:
    """The variables that a pullback shares with its rule, by their cells, and what else it has been given."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if type(value) is FunctionType:
        if not made_inside(value):
            return
        for cell in value.__closure__ or ():
            try:
                content = None if id(cell) in outside else cell.cell_contents
            except ValueError:  # an empty cell
                continue
            yield cell, content
            yield from variables(content, outside, seen)
        yield None, (value.__defaults__, value.__kwdefaults__)
    elif isinstance(value, types.MethodType):
        yield from variables(value.__func__, outside, seen)
        yield None, own_dict(value.__self__)
    elif isinstance(value, functools.partial):
        yield None, (value.args, value.keywords)
        yield from variables(value.func, outside, seen)


def arrays_in(value: Any, seen: set[int]) -> Iterator[ArrayBox]:
    """The traced arrays in a value."""
    if type(value) is ArrayBox:
        yield value
    elif is_container(value) and id(value) not in seen:
        seen.add(id(value))
        for x in value.values() if isinstance(value, dict) else value:
            yield from arrays_in(x, seen)


def is_replaceable(value: Any) -> bool:
    """Whether another value may stand for one in a variable: nobody can write to it but through an array."""
    if isinstance(value, tuple):
        return all(map(is_replaceable, value))
    return not is_container(value)


def restore_captured(tracer: Tracer, pair: Pair) -> None:
    """Let a pullback that is about to run see the arrays as they were, whatever was written to them since."""

    def as_it_was(_: ArrayBox, op: Op) -> Box:
        copy = box_of(tracer, op)
        copy.value.flags.writeable = False  # what is written to it would be lost
        return copy

    for held in pair.captured:
        if held.stale:
            if held.cell is None:
                raise written_to(pair)
            held.replaced(as_it_was)


def written_to(pair: Pair) -> TraceError:
    place = place_of(pair.rule.function)
    return TraceError(
        f"{blame(pair.site)}: an array that the pullback of {place} uses was written to after the rule had returned\n"
        "let the rule keep a copy of it"
    )


# --------------------------------------------------------------------------------------- after the run


def settle_pairs(tracer: Tracer) -> None:
    """The run has ended: let pullbacks be plain functions again, of plain values and the real variables outside."""
    outside = {id(shadow): cell for cell, shadow in [*tracer.cells.values()]}
    plain: dict[int, tuple[Any, Any]] = {}
    for pair in tracer.pairs:
        for held in pair.captured:
            if held.cell is not None:
                held.replaced(lambda x, op: x if op.value is x.value else read_only(op.value))
            elif held.stale:
                pair.pullback = Refusal(written_to(pair))
        pair.captured, pair.form = [], None
    for pair in tracer.pairs:
        try:
            if type(pair.pullback) is not Refusal:
                pair.pullback = plain_function(tracer, pair.pullback, outside, plain)
        except TraceError as error:  # a generator, say, that holds boxes
            pair.pullback = Refusal(error)


def read_only(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view


class Refusal:
    """A pullback that cannot be called any more."""

    def __init__(self, error: TraceError) -> None:
        self.error = error

    def __call__(self, *args: Any) -> Any:
        raise self.error


def plain_function(
    tracer: Tracer, value: Any, outside: dict[int, Any], memo: dict[int, tuple[Any, Any]]
) -> Any:
    """A value that a pullback refers to, without boxes, and with the real variables in the place of shadows."""
    if id(value) in memo:
        return memo[id(value)][1]
    if isinstance(value, functools.partial):
        parts = (value.func, *value.args, *value.keywords.values())
        func, *rest = [plain_function(tracer, x, outside, memo) for x in parts]
        args, named = rest[: len(value.args)], rest[len(value.args) :]
        return functools.partial(func, *args, **dict(zip(value.keywords, named, strict=True)))
    if type(value) is tuple:
        return tuple([plain_function(tracer, x, outside, memo) for x in value])
    if type(value) is not FunctionType or not made_inside(value):
        return lower(tracer, value, {}, final=True)
    cells = value.__closure__ and tuple([outside.get(id(cell), cell) for cell in value.__closure__])
    code = rewrite.original(code_of(value))
    new = FunctionType(code, value.__globals__, value.__name__, None, cells)
    memo[id(value)] = (value, new)
    new.__qualname__, new.__module__, new.__doc__ = (
        value.__qualname__,
        value.__module__,
        value.__doc__,
    )
    new.__dict__.update(value.__dict__)
    new.__defaults__ = plain_function(tracer, value.__defaults__, outside, memo)
    new.__kwdefaults__ = lower(tracer, value.__kwdefaults__, {}, final=True)
    for cell, old in zip(cells or (), value.__closure__ or (), strict=True):
        if cell is old:
            try:
                cell.cell_contents = plain_function(tracer, cell.cell_contents, outside, memo)
            except ValueError:  # an empty cell
                pass
    return new
