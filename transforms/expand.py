"""Expansions: what a rule comes down to, for given types, shapes and active operands.

Words
-----
expansion   a small tape from the cotangent, the value and the leaves of an op to the cotangents of its leaves.
leaf        an operand of an op: a variable, or a number that stands in an operand's place.
static      what an expansion depends on by value: strings, options such as ``axis``, integers a rule looked at.
pattern     which leaves are active, as bits.

The rule is run by the tracer itself, on boxes: what it decides by looking at shapes is decided once, and what it
computes lands on the expansion's tape as plain primitives.
"""

from __future__ import annotations

import cmath
import inspect
import math
import operator
import threading
import types
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

from ..rules import registry
from ..rules.broadcasting import as_integers
from ..rules.elementwise import unknown
from ..rules.mutation import scatter, setitem
from ..rules.numpy_ufuncs import methods
from ..rules.signatures import names_of
from ..tracer import calls, places, protocols
from ..tracer.active import active
from ..tracer.border import ATOMS
from ..tracer.box import BOXES
from ..tracer.boxing import enter
from ..tracer.errors import NoRuleError, TraceError, WengertError
from ..tracer.kinds import has_dict, is_one_of, isinstance
from ..tracer.lifetimes import unlink
from ..tracer.missing import known_of, no_rule, place_of_op
from ..tracer.purity import is_draw, is_random
from ..tracer.reads import MISSING, Reads
from ..tracer.record import box, operand
from ..tracer.rehearsal import take_back
from ..tracer.run import surroundings
from ..tracer.session import Tracer
from ..tracer.source import Writer, compiled
from ..tracer.tape import (
    NOWHERE,
    FloatOp,
    Input,
    KeywordOp,
    Op,
    Tape,
    append,
    element,
    fn_name,
    ops_in,
    substitute,
)
from . import asking, lowering
from .recent import Recent
from .shapes import has_free_shape
from .simplify import pruned, simplified

SCALARS = (float, int, complex)


class Expansion:
    """The pullback of one primitive, for given types.

    ``tape`` has the inputs ``dz``, ``z`` and the leaves; ``wanted`` lists the leaves that get a cotangent, and
    ``tape.result`` holds these cotangents. ``forms`` says of each how it is to be accumulated: ``None`` (add it),
    or ``scatter`` and ``zeroed`` for what only touches the elements at an index. A ``momentary`` expansion depends on
    values that its key does not tell (a global that the rule reads, a decision on a computed value), and is not kept.
    ``drawn`` are the integer leaves that the rule looked at, on whose values it depends; ``decided`` says whether
    other values may have led the rule another way.
    """

    __slots__ = ("decided", "drawn", "forms", "made", "momentary", "tape", "wanted")

    def __init__(
        self,
        tape: Tape,
        wanted: list[int],
        forms: list[str | None],
        momentary: bool = False,
        decided: bool = False,
    ) -> None:
        self.tape = tape
        self.decided = decided
        self.momentary = momentary
        self.wanted = wanted
        self.forms = forms
        self.drawn: set[int] = set()
        self.made: Callable[..., Any] | None = None

    @property
    def function(self) -> Callable[..., Any]:
        """The tape as a function, for those who run it: whoever writes a program reads the tape alone."""
        if self.made is None:
            self.made = compiled(self.tape, "pullback")
        return self.made


KEPT = 1024  # expansions take some 4 KB each
cache: Recent[Expansion] = Recent(KEPT)
registry.rules.listeners.append(
    cache.clear
)  # an frule that is transposed holds what other rules come down to
looked_at: Recent[set[int]] = Recent(KEPT)
looking = threading.RLock()  # held by whoever adds to it


def type_key(value: Any) -> Any:
    """The type of a value as far as an expansion may depend on it."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape
    if type(value) is tuple or type(value) is list:
        return type(value), tuple(map(type_key, value))
    return type(value)


def operand_count(rule: registry.Rule) -> int:
    """How many leading parameters of a rule are operands: those without a default."""
    known = operand_counts.get(rule)
    if known is None:
        if rule.function is None:
            return 1_000_000  # a rule for forward mode takes its options by keyword
        known = 0
        for p in inspect.signature(rule.function).parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                known = 1_000_000
            elif p.default is p.empty and p.kind is not p.VAR_KEYWORD:
                known += 1
        operand_counts[rule] = known
    return known


operand_counts: dict[registry.Rule, int] = {}


REFUSALS = (
    NotImplementedError,
    np.linalg.LinAlgError,
)  # how a rule says that there is no derivative


def refusal(op: Op, error: Exception) -> NoRuleError:
    """What to raise where a rule finds no derivative for the values or the options at hand."""
    name = fn_name(op.fn)
    todo = (
        "call it without that, or let finite differences stand in: @wengert.numeric_rule on a function that calls it"
        if isinstance(error, NotImplementedError)
        else f"wengert.why(f, x) shows the values there; keep to where there is one, or give {name} another rule"
    )
    return NoRuleError(f"{place_of_op(op)}: {name} has no derivative here: {error}\n{todo}")


def failed(op: Op, error: Exception) -> NoRuleError:
    """The error where the rule of an op raises one of its own."""
    if isinstance(error, REFUSALS):
        return refusal(op, error)
    rule = registry.lookup(op.fn)
    if isinstance(error, OverflowError) and rule is not None and is_own(rule):
        return NoRuleError(
            f"{place_of_op(op)}: the derivative of {fn_name(op.fn)} is larger than the largest float\n"
            "scale its operands, or work with logarithms; with np.float64(x) in the place of a float it is infinite"
        )
    made = NoRuleError(
        f"{place_of_op(op)}: the rule of {fn_name(op.fn)} failed with {type(error).__name__}: {error}\n"
        "if the rule is yours, correct it: wengert.check_grads checks it (docs/errors.md#noruleerror)"
    )
    made.__cause__ = error
    return made


def overflowed(op: Op | None, error: OverflowError) -> NoReturn:
    """Raise what there is to say where the derivative of an op is too large; rules of the user's have own errors."""
    rule = None if op is None else registry.lookup(op.fn)
    if op is None or rule is None or not is_own(rule):
        raise error
    places.raise_at(op.site, failed(op, error))


def leaves_of(op: Op, rule: registry.Rule) -> tuple[list[Any], Hashable]:
    """The leaves of an op, and a key of all that is not a leaf."""
    leaves: list[Any] = []
    count = operand_count(rule)
    args = tuple([skeleton(x, leaves, i < count) for i, x in enumerate(op.args)])
    kwargs = tuple([(key, skeleton(x, leaves, False)) for key, x in op.kwargs.items()])
    return leaves, (args, kwargs)


def skeleton(tree: Any, leaves: list[Any], dynamic: bool) -> Hashable:
    """A hashable picture of a nested argument; its leaves are added to the list."""
    kind = type(tree)
    if isinstance(tree, Op) or (dynamic and (kind is float or kind is int or kind is complex)):
        leaves.append(tree)
        return "leaf"
    if kind is tuple or kind is list:
        return kind, tuple([skeleton(x, leaves, dynamic) for x in tree])
    if kind is slice:
        return kind, tuple(
            [skeleton(x, leaves, dynamic) for x in (tree.start, tree.stop, tree.step)]
        )
    if kind is dict:
        return kind, tuple([(k, skeleton(x, leaves, dynamic)) for k, x in tree.items()])
    if isinstance(tree, tuple):
        return kind, tuple([skeleton(x, leaves, dynamic) for x in tree])
    try:
        hash(tree)
    except TypeError:
        return kind, id(tree)
    return kind, tree


def refill(tree: Any, boxes: Iterator[Any], dynamic: bool) -> Any:
    """The nested argument with boxes for its leaves, taken in order from ``boxes``."""
    kind = type(tree)
    if isinstance(tree, Op) or (dynamic and (kind is float or kind is int or kind is complex)):
        return next(boxes)
    if kind is tuple or kind is list:
        return kind([refill(x, boxes, dynamic) for x in tree])
    if kind is slice:
        return slice(*[refill(x, boxes, dynamic) for x in (tree.start, tree.stop, tree.step)])
    if kind is dict:
        return {k: refill(x, boxes, dynamic) for k, x in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_make"):
        return tree._make([refill(x, boxes, dynamic) for x in tree])
    return tree


WHOLE = frozenset("integers randint random_integers permutation choice bytes rand randn".split())


def only_counts(op: Op, active: Any) -> bool:
    """Whether a draw goes by active variables in nothing but how many numbers are drawn: that has the slope 0."""
    if not is_random(op.fn):
        return False
    name = getattr(op.fn, "__name__", "")
    names: dict[Any, str] = dict(enumerate(names_of(op.fn)))
    return all(
        isinstance(x.value, int) and (name in WHOLE or names.get(at, at) == "size")
        for at, tree in (*enumerate(op.args), *op.kwargs.items())
        for x in ops_in(tree)
        if x in active
    )


def expansion_of(op: Op, active_leaves: Any, dz: Any) -> tuple[Expansion | None, list[Any]]:
    """The expansion of an op's pullback and the op's leaves; None where no cotangent can flow.

    ``active_leaves`` is the set of ops that want a cotangent, and ``dz`` a cotangent of the kind to come.
    """
    # Asked first: another thread may register a rule that this one comes down to.
    changes = registry.rules.changes
    rule = registry.lookup(op.fn)
    if rule is None or rule.kind != registry.RRULE:
        if rule is not None and rule.kind in (registry.NONDIFF, registry.QUERY):
            return None, []
        if rule is None and only_counts(op, active_leaves):
            return None, []
        error = NoRuleError(
            no_rule(op.fn, op.site, op.args, op.kwargs, place=place_of_op(op), value=op.value)
        )
        places.raise_at(op.site, error)
    leaves, frame = leaves_of(op, rule)
    whole = rounds(op, rule)
    pattern = tuple(
        [
            isinstance(x, Op) and x in active_leaves and (not whole or is_whole(x.value))
            for x in leaves
        ]
    )
    shape = (op.fn, rule, frame, pattern, changes)
    types = tuple([type_key(x.value if isinstance(x, Op) else x) for x in leaves])
    statics = looked_at.get((rule, frame)) or ()
    key = (
        shape,
        types,
        type_key(op.value),
        type_key(dz),
        pinned(leaves, statics),
    )
    found = cache.get(key)
    if found is None:
        try:
            found, drawn = expand(op, rule, leaves, pattern, dz)
        except WengertError:
            raise
        except Exception as error:
            places.raise_at(op.site, failed(op, error))
        found.drawn = drawn
        found.momentary |= rule.recorded  # an frule, with which the operation was not recorded
        if drawn and not found.momentary:
            with looking:
                statics = looked_at.get((rule, frame)) or ()
                statics = looked_at[rule, frame] = {*statics, *drawn}
            key = (*key[:4], pinned(leaves, statics))
        if not found.momentary:
            forget_values(found.tape)
            cache[key] = found
    return found, leaves


def forget_values(tape: Tape) -> None:
    """Let go of the arrays that a small tape was traced with: of a kept one only types and shapes matter."""
    for op in (*tape.inputs, *tape.ops):
        if isinstance(op.value, np.ndarray):
            op.value = np.broadcast_to(np.zeros((), op.value.dtype), op.value.shape)


def is_asked(op: Op) -> bool:
    """Whether an operation has a rule that is recorded, but has not run with it: the sweep must run it."""
    rule = registry.lookup(op.fn)
    return rule is not None and rule.function is not None and not rule.pure


def direct_pull(op: FloatOp, active_leaves: Any, dz: float, pattern: int) -> Any:
    """The pullback of arithmetic on plain floats as one function ``pull(dz, op, cotangents)`` that accumulates too.

    It is kept in the op's signature until a rule changes.
    """
    if is_asked(op):
        return asking.direct(active_leaves)
    pulls = op.signature.pulls  # if another thread registers a rule from here on, these go
    expansion, _ = expansion_of(op, active_leaves, dz)
    if expansion is None:  # no derivative, as of ``//``
        expansion = Expansion(constant_tape(op), [], [])
    writer = Writer(expansion.tape)
    dz_name, z_name, *leaves = writer.inputs()
    lines = [
        f"def pull({dz_name}, op, cotangents):",
        "    leaves = op.args",
        f"    {z_name} = op.value",
    ]
    for i, (name, kind) in enumerate(zip(leaves, op.signature.kinds, strict=True)):
        lines.append(f"    {name} = leaves[{i}]" + (".value" if kind is Op else ""))
    lines += writer.statements()
    for i, d in zip(expansion.wanted, expansion.tape.result, strict=True):
        lines.append(f"    leaf, d = leaves[{i}], {writer.argument(d)}")
        lines.append("    have = cotangents.get(leaf)")
        lines.append("    cotangents[leaf] = d if have is None else have + d")
    pull = writer.run("\n".join(lines), "pull")
    if not expansion.momentary:
        pulls[pattern] = pull
    return pull


def constant_tape(op: FloatOp) -> Tape:
    """The tape of a pullback that gives nothing."""
    tape = Tape()
    tape.ops = [Input(name, None, tape) for name in ("dz", "z", "x0", "x1")]
    tape.result = []
    return tape


def plain(leaf: Any) -> Any:
    return leaf.value if isinstance(leaf, Op) else leaf


class Stage:
    """A tape of its own, on which a rule is run for the operands of ``op``.

    ``z`` stands for the value of the op and ``inputs`` are the leaves.
    """

    def __init__(self, op: Op, title: str) -> None:
        self.op = op
        self.tape = Tape(f"{title} of {getattr(op.fn, '__name__', 'op')}", op.site)
        rule = registry.lookup(op.fn)
        self.own = own = rule is None or is_own(rule)
        self.tracer = Tracer(self.tape, reads=None if own else Reads())
        self.tracer.modules = MODULES
        self.tracer.expanding = True
        if own and rule is not None:  # which has no effects of its own, but may be given functions
            self.tape.undo = []
        self.inputs: list[Op] = []
        self.objects: list[Any] = []  # among the arguments

    def operands(
        self, rule: registry.Rule, leaves: list[Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of the op, with new inputs of this tape for the leaves."""
        self.z = Input("z", self.op.value, self.tape)
        self.tape.ops.append(self.z)
        boxes = [self.tracer.input(f"x{i}", plain(x), "argument") for i, x in enumerate(leaves)]
        self.inputs = [box.op for box in boxes]
        count = operand_count(rule)
        queue = iter(boxes)
        args = tuple([refill(x, queue, i < count) for i, x in enumerate(self.op.args)])
        kwargs = {k: refill(x, queue, False) for k, x in self.op.kwargs.items()}
        self.objects = [x for x in (*args, *kwargs.values()) if is_object(x)]
        for x in self.objects:
            enter(self.tracer, x, type(x).__name__)  # what the rule reads there lies outside
        return args, kwargs

    def __enter__(self) -> Tracer:
        self.unheard = surroundings.unheard()
        self.unheard.__enter__()
        self.before, active.tracer = active.tracer, self.tracer
        return self.tracer

    def __exit__(self, *error: Any) -> None:
        active.tracer = self.before
        self.unheard.__exit__(None, None, None)
        take_back(self.tracer)

    def settle(self, value: Any) -> None:
        """Note what the rule looked at, and let the op's value stand for the rule's own computation of it."""
        guards = {g.args[0] for g in self.tape.ops if g.kind == "guard"}
        self.drawn = {i for i, x in enumerate(self.inputs) if x in guards and is_count(x.value)}
        self.decided = not guards <= {self.inputs[i] for i in self.drawn} or (
            not self.own and any(map(is_shaped_by_data, self.tape.ops))
        )
        replace_value(self.tape, value, self.z)

    def close(self, result: Any) -> bool:
        """End the tape with this result; says whether it holds for this run only."""
        self.tape.result = result
        self.drawn |= shaping(self.tape, self.inputs)
        if self.tracer.reads is not None:
            must_be_pure(self.op, self.tape)
        outside = {x: x.value for x in self.tape.inputs if x.role == "outside"}
        if outside:
            fix(self.tape, outside)
        reads = self.tracer.reads
        self.decided |= reads is not None and bool(reads.problems)  # what fails may be caught
        read = bool(outside) or bool(self.objects) or reads_data(reads)
        self.tracer.close()
        return read or self.decided


def is_shaped_by_data(op: Op) -> bool:
    """Whether the values of what a rule computes with decide a shape: what it asks for is no matter of types then."""
    return has_free_shape(op) and registry.lookup(op.fn) is not None


def pinned(leaves: list[Any], statics: Iterable[int]) -> tuple[Any, ...]:
    """The values of the leaves at these places that an expansion holds for; of other arrays the type says enough."""
    found = [(i, plain(leaves[i])) for i in sorted(statics)]
    return tuple([(i, None if is_large(x) else counted(x)) for i, x in found])


def is_large(value: Any) -> bool:
    return isinstance(value, np.ndarray) and not is_count(value)


def is_count(value: Any) -> bool:
    """Whether a value is one integer or one truth, as a number or as an array without axes."""
    if isinstance(value, np.ndarray):
        return not value.ndim and value.dtype.kind in "biu"
    return isinstance(value, (int, np.integer, np.bool_))


def counted(value: Any) -> Any:
    """Such a value as a guard or a key may hold it: no array, which somebody may write to."""
    return value.item() if isinstance(value, (np.ndarray, np.bool_)) else value


def shaping(tape: Tape, leaves: list[Op]) -> set[int]:
    """The integer leaves on whose values shapes depend: a rule asks for shapes as if they went by the types alone."""
    sizes: dict[Op, set[int]] = {
        x: {i} for i, x in enumerate(leaves) if isinstance(x.value, (int, np.integer))
    }
    found: set[int] = set()
    for op in needed(tape) if sizes else ():
        used = set().union(*[sizes[x] for x in op.operands() if x in sizes])
        if not used or op.kind != "call":
            continue
        if isinstance(op.value, (int, np.integer)):
            sizes[op] = used
        elif isinstance(op.value, np.ndarray) and goes_by_number(op, leaves):
            found |= used
    return found


def needed(tape: Tape) -> list[Op]:
    """The ops that the result of a tape is computed from."""
    wanted = set(ops_in(tape.result))
    found = []
    for op in reversed(tape.ops):
        if op in wanted:
            found.append(op)
            wanted.update(op.operands())
    return found[::-1]


def goes_by_number(op: Op, leaves: list[Op]) -> bool:
    """Whether the shape of a result goes by the values of integers, where the types of the leaves do not tell it.

    A slice is as long as what is written to it, unless that is one element along an axis.
    """
    if op.fn is operator.getitem:
        return has_slice(op.args[1]) and any(1 in np.shape(x.value) for x in leaves)
    return protocols.hashable(op.fn) and op.fn in BY_NUMBER


BY_NUMBER = frozenset((np.diagonal, np.diag, np.repeat, np.tile, np.arange, np.eye))


def has_slice(key: Any) -> bool:
    """Whether a variable is an end of a slice."""
    if isinstance(key, slice):
        return any(isinstance(x, Op) for x in (key.start, key.stop, key.step))
    return isinstance(key, tuple) and any(map(has_slice, key))


def must_be_pure(op: Op, tape: Tape) -> None:
    """Raise where somebody's rule is not what it was declared to be."""
    for x in tape.ops:
        if x.kind == "effect" or (
            x.kind == "call" and registry.lookup(x.fn) is None and is_draw(x.fn)
        ):
            what = "does something outside" if x.kind == "effect" else "asks for what changes"
            raise TraceError(
                f"{places.blame(op.site)}: the rule of {fn_name(op.fn)} is declared pure, but it {what} "
                f"({fn_name(x.fn)}, {x.site})\nleave out pure=True"
            )


def pulled_back(
    op: Op, rule: registry.Rule, leaves: list[Any], pattern: tuple[bool, ...], dz: Any
) -> tuple[Stage, Any, list[tuple[int, Any]]]:
    """Trace a rule and its pullback: the stage, the box of the cotangent, and the cotangents of active leaves."""
    stage = Stage(op, "pullback")
    cotangent = box_of(stage.tracer, "dz", dz)
    args, kwargs = stage.operands(rule, leaves)
    with stage as tracer:
        if is_own(rule):
            value, pullback = lowering.run(rule.function, args, kwargs)
            result = pullback(cotangent)
        else:
            value, pullback = calls.call(tracer, NOWHERE, rule.function, args, kwargs)
            result = calls.call(tracer, NOWHERE, pullback, (cotangent,), {})
    stage.settle(value)
    if not isinstance(result, tuple):
        raise TraceError(
            f"the pullback of the rule of {op.fn} must return a tuple\n"
            "it has one cotangent for each argument, and None where there is none: return (dx,)"
        )
    found = collect(bound(op, rule, result), op, rule, pattern)
    return stage, cotangent, [(i, operand(d, [])) for i, d in found if d is not None]


def expand(
    op: Op, rule: registry.Rule, leaves: list[Any], pattern: tuple[bool, ...], dz: Any
) -> tuple[Expansion, set[int]]:
    """Trace a rule and its pullback. Says also which integer leaves the rule looked at."""
    if rule.function is None:
        return asking.transposed(op, rule, leaves, pattern, dz)
    stage, cotangent, cotangents = pulled_back(op, rule, leaves, pattern, dz)
    forms: list[str | None] = []
    for _, out in cotangents:
        form = None
        if isinstance(out, Op) and out.fn is scatter:
            form = "scatter"
        elif (
            isinstance(out, Op)
            and out.fn is setitem
            and out.args[0] is op_of(cotangent)
            and len(out.args) == 3
        ):
            form = (
                "zeroed"
                if is_one_of(type(out.args[2]), (int, float)) and out.args[2] == 0
                else None
            )
        forms.append(form)
    momentary = stage.close(
        [out.args if form else out for (_, out), form in zip(cotangents, forms, strict=True)]
    )
    momentary = momentary or any(hasattr(x, "momentary") for x in op.args)
    wanted = [i for i, _ in cotangents]
    tape = pruned(simplified(stage.tape))
    return Expansion(tape, wanted, forms, momentary, stage.decided), stage.drawn


def is_own(rule: registry.Rule) -> bool:
    """Whether a rule is one of the package.

    Such a rule depends on nothing but its arguments, and takes None for the cotangent of an output that nobody uses.
    """
    return rule.function is not None and registry.is_ours(rule.function)


def rounds(op: Op, rule: registry.Rule) -> bool:
    """Whether an op makes whole numbers of what may be others: by these it has the derivative zero, as floor has.

    A rule of somebody else may say otherwise. A view as integers shows all bits of a number, what `as_integers` is
    given are integers, and an integer that is the largest of some numbers stands among them.
    """
    return is_whole(op.value) and op.fn not in EXACT and is_own(rule)


def is_whole(value: Any) -> bool:
    """Whether a value is an integer or an array of integers."""
    kind = type(value)
    if kind is int or kind is float:
        return kind is int
    return getattr(getattr(value, "dtype", None), "kind", "") in ("i", "u")


EXACT = frozenset((*methods("view"), as_integers, max, min))


def reads_data(reads: Reads | None) -> bool:
    """Whether a rule has read from outside something that is not code: a number, a flag, a table."""
    todo = [] if reads is None else list(reads.constants.values())
    while todo:
        place = todo.pop()
        if not isinstance(place.value, CODE) and not callable(place.value):
            if place.value is not MISSING and place.step not in SIGNATURE:
                return True
        todo += place.children.values()
    return False


CODE = (types.ModuleType, types.CellType)
SIGNATURE = frozenset(("constant", "defaults", "default", "kwdefaults", "kwdefault"))


def is_object(value: Any) -> bool:
    """Whether an argument is an object of somebody's class, whose attributes a rule may read: a method's ``self``."""
    kind = type(value)
    return not is_one_of(kind, BOXES) and has_dict(value) and not isinstance(value, FIXED_TYPES)


FIXED_TYPES: tuple[Any, ...] = (type, np.generic, type(np._NoValue), *ATOMS)


# What rules look up by name while they are traced: somebody may have put something else there for a while.
MODULES = {id(module): dict(vars(module)) for module in (math, cmath, operator, np, np.linalg)}


def op_of(value: Any) -> Any:
    return value.op if is_one_of(type(value), BOXES) else None


def box_of(tracer: Tracer, name: str, value: Any) -> Any:
    """An input of an expansion; a tuple of cotangents becomes a tuple of inputs, None where there is none."""
    if isinstance(value, (tuple, list)):
        op = Input(name, value, tracer.tape)
        tracer.tape.ops.append(op)
        return tuple(
            [
                None
                if part is None
                else box(tracer, append(tracer.tape, element, (op, i), {}, part, op.site), [])
                for i, part in enumerate(value)
            ]
        )
    return tracer.input(name, value, "argument") if value is not None else None


def fix(tape: Tape, values: dict[Any, Any]) -> None:
    """Put constants in the place of inputs."""
    tape.ops = [op for op in tape.ops if op not in values]
    for op in tape.ops:
        op.args = substitute(op.args, lambda x: values.get(x, x))
        if isinstance(op, KeywordOp):
            op.kwargs = substitute(op.kwargs, lambda x: values.get(x, x))  # type: ignore[misc]
    tape.result = substitute(tape.result, lambda x: values.get(x, x))


def replace_value(tape: Tape, value: Any, z: Input) -> None:
    """Let the given value of the primitive stand for the rule's own computation of it."""
    arrays: list[Any] = []
    made = operand(value, arrays)
    swap: dict[Op, Op] = {}
    if isinstance(made, Op):
        if made.kind == "call":
            swap[made] = z
    elif isinstance(made, tuple) and made and all(isinstance(x, Op) for x in made):
        sources = {x.args[0] for x in made if x.args}
        if len(sources) == 1 and made[0].kind == "call":
            source = sources.pop()
            if isinstance(source, Op) and source.kind == "call":
                swap[source] = z
    for op in tape.ops if swap else ():
        op.args = substitute(op.args, lambda x: swap.get(x, x))
        if isinstance(op, KeywordOp):
            op.kwargs = substitute(op.kwargs, lambda x: swap.get(x, x))  # type: ignore[misc]


def bound(op: Op, rule: registry.Rule, result: tuple[Any, ...]) -> tuple[Any, ...]:
    """Cotangents in the order of the op's own arguments: positional ones, then keywords.

    A derivative by an argument of which the rule says nothing is unknown.
    """
    signature = inspect.signature(rule.function) if rule.function is not None else None
    parameters = [*signature.parameters.values()] if signature is not None else []
    order = [p.name for p in parameters]

    def at(i: int) -> Any:
        if i < len(result):
            return result[i]
        return unknown(order[i] if i < len(order) else f"argument {i}")

    positional = [at(i) for i in range(len(op.args))]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        order = []  # the result has one cotangent for each of the positional arguments, and no more
    for key in op.kwargs:
        positional.append(at(order.index(key)) if key in order else unknown(key))
    return tuple(positional)


def collect(
    cotangents: Any, op: Op, rule: registry.Rule, pattern: tuple[bool, ...]
) -> list[tuple[int, Any]]:
    """The cotangent of each active leaf, by the leaf's number."""
    found: list[tuple[int, Any]] = []
    position = [0]
    count = operand_count(rule)

    def walk(tree: Any, d: Any, dynamic: bool) -> None:
        kind = type(tree)
        if isinstance(tree, Op) or (dynamic and (kind is float or kind is int or kind is complex)):
            if pattern[position[0]]:
                found.append((position[0], known_of(op, tree, d)))
            position[0] += 1
        elif kind is slice:
            for part in (tree.start, tree.stop, tree.step):
                walk(part, None, dynamic)
        elif kind is dict:
            for key, part in tree.items():
                walk(part, None if d is None else d[key], dynamic)
        elif isinstance(tree, (tuple, list)):
            for i, part in enumerate(tree):
                if type(d) is unknown:
                    walk(part, d, dynamic)
                elif is_one_of(type(d), BOXES):
                    walk(part, protocols.operate_index(d, i), dynamic)
                else:
                    walk(part, None if d is None or i >= len(d) else d[i], dynamic)

    for i, (tree, d) in enumerate(zip((*op.args, *op.kwargs.values()), cotangents, strict=True)):
        walk(tree, d, i < count and i < len(op.args))
    unlink(walk)
    return found
