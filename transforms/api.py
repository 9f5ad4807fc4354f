"""The functions that people call: ``pullback``, ``grad``, ``value_and_grad`` and ``trace``."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from ..rules.broadcasting import broadcast_like
from ..rules.linear import variable
from ..rules.words import with_article
from ..tracer import calls, meaning, places
from ..tracer.active import active
from ..tracer.arrays import apart, beside
from ..tracer.attributes import leaf as seen_by_trace
from ..tracer.attributes import noted, renewed, slot
from ..tracer.border import (
    ATOMS,
    PLAIN_KINDS,
    VIEWS,
    boxes_behind,
    callable_only,
    current_op,
    is_iterator,
    is_structure,
    join,
    part,
)
from ..tracer.box import BOXES, ArrayBox, Box
from ..tracer.boxing import captures
from ..tracer.closing import filled
from ..tracer.entrances import entrance
from ..tracer.errors import CotangentError, Refusal, TraceError
from ..tracer.frames import (
    SETS,
    Own,
    assign,
    gradient,
    items_in,
    items_of,
    made,
    native,
    option_of,
    parts_of,
    put,
    shown,
    valued,
)
from ..tracer.habits import ATTRIBUTES
from ..tracer.intrinsic import Made, behind, intrinsic
from ..tracer.kinds import is_one_of, isinstance, own_dict
from ..tracer.outline import Mirrored, Outline
from ..tracer.pairs import Pair
from ..tracer.record import box_of, known, operand
from ..tracer.rewrite import is_twin
from ..tracer.run import Run, keyword_names, run
from ..tracer.seals import NUMBERS, sealed
from ..tracer.session import Tracer
from ..tracer.slots import plain_of
from ..tracer.structure import (
    FIXED,
    Branch,
    Leaf,
    Sealed,
    Tree,
    attributes,
    is_differentiable,
    rebuild,
    sources,
)
from ..tracer.tape import NOWHERE, Input, Op, Site, Tape, append, free, ops_in, primal, substitute
from ..tracer.tracebacks import fold
from ..tracer.write_back import result_tree
from . import lowering
from .cache import entries
from .cotangents import alike, refuse_sealed, seeds_of, shaped
from .decisions import known_decisions
from .pickling import Table, flattened, restored
from .reverse import (
    Mirror,
    Numeric,
    Recorded,
    decisions,
    led_by_values,
    must_be_derivable,
    sweep,
)
from .shapes import may_stop
from .simplify import pruned, simplified

meaning.tools.package = f"{__package__}.tools"


class Pullback:
    """Carries cotangents of a result back to the arguments; see `pullback`.

    ``back.tape`` is the reverse program as a tape and ``back.source()`` the same as Python source. It can be
    pickled: what is sent is what the reverse sweep needs, and no longer refers to the function.
    """

    def __init__(self, done: Run) -> None:
        self.done = done

    def __call__(self, dy: Any) -> tuple[Any, ...]:
        try:
            return self.pull(checked_seeds(self.done, dy))
        except BaseException as error:
            fold(error)
            raise

    def pull(
        self, seeds: list[tuple[Op, Any]], keys: Collection[int | str] | None = None
    ) -> tuple[Any, ...]:
        """The gradients for checked seeds; of these arguments only, where they are given."""
        done = self.done
        if active.tracer is not None and (
            any(is_one_of(type(d), BOXES) for _, d in seeds) or has_pairs(done.tape)
        ):
            return record_sweep(active.tracer, done, done.tape.ops, seeds, keys)
        trees = trees_of(done, keys)
        wrt = [op for tree in trees for op in sources(tree)]
        found: dict[Op | None, Any] = dict(
            zip(wrt, self.swept(done.tape.ops, wrt, seeds), strict=True)
        )
        refuse_sealed(done.tape, trees, lambda op: found.get(op) is not None)
        return arranged(done, lambda leaf: shaped(leaf, found.get(leaf.op)))

    def __repr__(self) -> str:
        tape = self.traced
        place = f" ({tape.site})" if tape.site.filename else ""
        return f"<pullback of {tape.name}{place}>"

    @property
    def traced(self) -> Tape:
        """The tape of the forward run, which may have no values."""
        return self.done.tape

    @property
    def tape(self) -> Tape:
        """The program from the arguments and ``dy`` to the gradients."""
        from .tools.signature import parameters_of_run

        tape = reverse(self.done.tape, seed=False, value=False)
        tape.parameters = parameters_of_run(self.done, tape)
        return tape

    def source(self) -> str:
        return self.tape.source("back")

    if not TYPE_CHECKING:  # which would take any name for an attribute

        @entrance
        def __getattr__(self, name):
            """Tell what to write where something is asked of it that tensors of other libraries have."""
            advice = ATTRIBUTES.get(name)
            text = f"a pullback has no attribute {name!r}"
            if advice is not None:
                text += f": it is called, back(1.0), and returns the gradients\n{advice}"
            raise AttributeError(text, name=name, obj=self)

    def __reduce__(self) -> Any:
        return unpickled, (flattened(self.done),)

    def swept(self, ops: list[Op], wrt: list[Op], seeds: list[tuple[Op, Any]]) -> list[Any]:
        """The cotangents of ``wrt``, as plain values."""
        return sweep(ops, wrt, seeds, Numeric())


Pullback.__call__.__qualname__ = "back"
intrinsic(Pullback.__call__)


def unpickled(table: Table) -> Pullback:
    """The pullback that was pickled."""
    return Pullback(restored(table))


def checked_seeds(done: Run, dy: Any) -> list[tuple[Op, Any]]:
    """The cotangents of the leaves of the result; an error says whose result it is."""
    try:
        return seeds_of(done.result, dy)
    except CotangentError as error:
        tape = done.tape
        raise CotangentError(
            f"pullback of {tape.name} ({tape.site.place}): {error}\n"
            "a cotangent has the structure and the shapes of the value, and None is a zero: "
            "back(np.ones_like(value)) (docs/errors.md#cotangenterror)"
        ) from None


def has_pairs(tape: Tape) -> bool:
    """Whether a reverse sweep may run pullbacks that do more than to compute."""
    return any(type(op.fn) is Pair for op in tape.ops)


def trees_of(done: Run, keys: Collection[int | str] | None = None) -> list[Tree]:
    """The trees of all that has a gradient, or of these arguments."""
    if keys is not None:
        return [done.argument(key) for key in keys]
    own = [done.self_tree] if done.self_tree is not None else []
    return [*own, *done.args, *done.kwargs.values()]


def arranged(
    done: Run, leaf: Callable[[Leaf], Any], of_class: Callable[..., Any] = gradient
) -> tuple[Any, ...]:
    """Gradients in the order and the structure of the arguments (see `rebuild`)."""

    def built(tree: Tree) -> Any:
        return rebuild(tree, leaf, of_class)

    own = () if done.self_tree is None else (built(done.self_tree) or {},)
    named = ({k: built(tree) for k, tree in done.kwargs.items()},) if done.kwargs else ()
    return (*own, *map(built, done.args), *named)


def format_tape(tape: Tape, **options: Any) -> str:
    """The text of a tape (what writes it is imported when it is asked for)."""
    from .tools.listing import format_tape

    return format_tape(tape, **options)


meaning.format_tape = format_tape
PRINTING = frozenset(("depth", "flat", "values"))


@intrinsic
@entrance
def trace(
    f: Callable[..., Any],
    *args: Any,
    wrt_self: bool = False,
    primitives: Collection[Any] | Callable[..., bool] | None = None,
    **kwargs: Any,
) -> Tape:
    """The tape of ``f(*args, **kwargs)``: what it computed, in order.

    What functions among the arguments have captured is an input of the tape, as what the arguments hold. With
    ``wrt_self`` the attributes of ``f`` itself, or the variables in its closure, are inputs too, and have gradients in
    `reverse`; called, the tape takes them behind the arguments.

    ``primitives`` decides what is recorded as one operation instead of being looked into: a collection of
    callables, or a predicate of the callee, or of the callee and the tuple of its arguments, which are plain values.
    Without it, that is what has a rule. ``depth``, ``flat`` and ``values`` say how the tape is printed (see
    `Tape.format`), unless ``f`` has a parameter of that name, to which they go then.

    >>> print(trace(lambda x, y: x * y + x, 2.0, 3.0).source("f"), end="")  # doctest: +ELLIPSIS
    def f(x, y):
        \"\"\"<lambda> (...), traced for x: float, y: float.\"\"\"
        t3 = x * y
        t4 = t3 + x
        return t4
    """
    from .tools.signature import parameters_of

    options = {k: kwargs.pop(k) for k in PRINTING & kwargs.keys() - keyword_names(f)}
    done = run(
        f,
        args,
        kwargs,
        wrt_self=wrt_self,
        primitives=decided_by(primitives),
        outline=Outline,
        protect=True,
        full=True,
    )
    tape = done.tape
    for op in [op for tree in trees_of(done) for op in sources(tree)]:
        if isinstance(op, Input):  # also what a function among the arguments has captured
            op.role = "argument"
    tape.parameters = parameters_of(f, done, args, kwargs)
    tape.options = options
    if entries:
        tape.ways = known_decisions(f)
    return tape


def decided_by(primitives: Any) -> Callable[..., bool] | None:
    """What decides whether a call is recorded as one operation, if not the rules do."""
    if primitives is None:
        return None
    from .tools.primitives import chosen

    return chosen(primitives)


@entrance
def reverse(
    tape: Tape,
    wrt: str | None = None,
    seed: bool = True,
    value: bool = True,
    form: str = "final",
) -> Tape:
    """The tape that computes the value of ``tape`` and the gradients of its inputs.

    Its result is ``(value, (gradient, …))`` with one gradient for each input that has one; with ``wrt``, the name of
    an input, that one's gradient alone stands in the place of the tuple, and without ``value`` the gradient is all
    there is. With ``seed`` the cotangent of a scalar result is 1; otherwise, and for other results, it is an input
    named ``dy``.

    ``form`` says at which stage it is shown: ``"pairs"``, each operation with its pullback, which the reverse sweep
    calls; ``"naive"``, with what the pullbacks do written out, for all inputs, and nothing made simpler or left out;
    or ``"final"``, simplified and pruned.

    >>> tape = trace(lambda m, x, b: m * x + b, 2.0, 3.0, 1.0)
    >>> print(reverse(tape, wrt="x", value=False).source("slope"), end="")  # doctest: +ELLIPSIS
    def slope(m, x, b):
        \"\"\"gradient of <lambda> (...), traced for m: float, x: float, b: float.\"\"\"
        return m
    """
    must_be_derivable(tape, "reverse")
    if form not in FORMS:
        raise TraceError(
            f"form is one of {', '.join(map(repr, FORMS))}, not {form!r}\n"
            '"final" is simplified, "naive" is not, and "pairs" calls pullbacks (docs/tape.md)'
        )
    out = Tape(f"gradient of {tape.name}", tape.site)
    out.options = tape.options
    out.ops = list(tape.ops)
    inputs = [x for x in tape.inputs if x.role == "argument" and is_differentiable(x.value)]
    if wrt is not None and wrt not in [x.name for x in inputs]:
        raise TraceError(
            f"{tape.name} has no input named {wrt!r} with a derivative\nit has {[x.name for x in inputs]}"
        )
    asked: list[Op] = [x for x in inputs if wrt is None or x.name == wrt]
    seeds: list[tuple[Op, Any]] = []
    machine = Mirror(out, NOWHERE, Mirrored(out, tape.outline))
    results: list[Op] = [x for x in ops_in(tape.result) if is_differentiable(x.value)]
    taken = tape.named()
    for i, op in enumerate(results):
        unit = np.ones_like(op.value)[()]
        if seed and len(results) == 1 and isinstance(unit, (float, np.floating)):
            seeds.append((op, 1.0 if isinstance(unit, float) else unit))
        else:
            dy = Input(free("dy" if len(results) == 1 else f"dy{i + 1}", taken), unit, out)
            if type(op.value) is float:
                dy.value = 1.0
            out.ops.append(dy)
            seeds.append((op, dy))
    if form == "pairs":
        from .tools.forms import swept_by_pairs

        by_input, copies = swept_by_pairs(tape, inputs, seeds, out)
    else:
        copies = {}
        wanted: list[Op] = asked if form == "final" else [*inputs]
        by_input = dict(zip(wanted, sweep(tape.ops, wanted, seeds, machine), strict=True))
    for x, d in by_input.items():
        if isinstance(d, Op) and isinstance(x, Input) and d not in machine.forward:
            machine.outline.names[d] = f"d{x.name}"
    out.ops += decisions(machine.looked, out)
    out.hold_as(tape, led_by_values(machine.decided))
    found = [by_input[x] for x in asked]
    gradients: Any = tuple(
        [_zero(x) if d is None else d for x, d in zip(asked, found, strict=True)]
    )
    gradients = gradients if wrt is None else gradients[0]
    now = substitute(tape.result, lambda op: copies.get(op, op))
    out.result = (now, gradients) if value else gradients
    program = out
    if form == "final":
        stay = [*filter(may_stop, tape.ops)]
        program = pruned(simplified(out, keep=tape.ops), keep_guards=True, stay=stay)
    program.parameters = tape.parameters
    program.forward = out.forward or frozenset(tape.ops)
    for op in program.ops:
        if op not in program.forward:
            op.tape = program
    return program


FORMS = ("pairs", "naive", "final")


def _zero(op: Op) -> Any:
    return np.zeros_like(op.value)[()] if isinstance(op.value, (np.ndarray, np.generic)) else 0.0


# --------------------------------------------------------------------------------- inside a traced function


def inner_run(
    tracer: Tracer,
    f: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    forward: bool | Callable[[Run], Any] = False,
    primitives: Callable[..., bool] | None = None,
) -> tuple[Run, int, int]:
    """Run a function inside a traced one: its run, and where its ops begin and end on the tape.

    ``forward`` says that tangents are wanted, for rules that are run with the function; or it makes, of the run that
    is about to begin, what they get them from. ``primitives`` decides what is recorded as one operation.
    """
    done = Run(tracer.tape)
    seen = Variables(tracer)
    if tracer.loops is not None:
        tracer.loops.hold()  # the ops of every iteration are needed in a moment
    boxed = []
    for i, x in enumerate(args):
        traced, tree = as_variables(tracer, x, seen, f"argument {i}")
        boxed.append(traced)
        done.args.append(tree)
    named = {}
    for name, x in kwargs.items():
        named[name], done.kwargs[name] = as_variables(tracer, x, seen, name)
    start = len(tracer.tape.ops)
    before = tracer.forward, tracer.last, tracer.bodies, tracer.primitives
    tracer.forward, tracer.last, tracer.bodies = (
        forward(done) if callable(forward) else forward,
        False,
        [],
    )
    if primitives is not None:
        tracer.primitives = primitives
        if tracer.reads is not None:
            tracer.reads.problem("`primitives` decides, at each call, what is recorded")
    try:
        done.value = calls.call(tracer, places.user_site(), f, tuple(boxed), named)
        done.result = result_tree(tracer, done.value)
    finally:
        tracer.forward, tracer.last, tracer.bodies, tracer.primitives = before
        boxed, named, traced = [], {}, None
        seen.end()
    if tracer.loops is not None:
        tracer.loops.pin(start, "its derivative is taken inside the function")
    done.value = seen.stood_for(done.value, {})
    return done, start, len(tracer.tape.ops)


def inner_pullback(
    tracer: Tracer,
    f: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    wrt_self: bool,
    primitives: Callable[..., bool] | None = None,
) -> tuple[Any, Any]:
    """A pullback inside a traced function: it works on the same tape, so that it is differentiated in turn."""
    if wrt_self:
        raise TraceError(
            "wrt_self=True is not supported inside a traced function\npass the object as an argument"
        )
    with forgiving(tracer):
        done, start, stop = inner_run(tracer, f, args, kwargs, primitives=primitives)
    return done.value, InnerPullback(done, tracer, start, stop)


class forgiving:
    """Let the program catch what is refused in here: plain Python, where the inner call is traced, refuses it too."""

    __slots__ = ("before", "tracer")

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer

    def __enter__(self) -> None:
        self.before, self.tracer.refusal = self.tracer.refusal, None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        refusal, self.tracer.refusal = self.tracer.refusal, self.before
        if error is None and refusal is not None:
            raise refusal
        if error is not None and not isinstance(error, Refusal):
            self.tracer.refusal = refusal if self.before is None else self.before


class InnerPullback:
    """The pullback of a function that was called inside a traced one."""

    def __init__(self, done: Run, tracer: Tracer, start: int, stop: int) -> None:
        self.done, self.tracer, self.start, self.stop = done, tracer, start, stop
        self.last = tracer.tape.ops[stop - 1] if stop > start else None

    def __call__(self, dy: Any) -> tuple[Any, ...]:
        return self.pull(checked_seeds(self.done, dy))

    def pull(
        self, seeds: list[tuple[Op, Any]], keys: Collection[int | str] | None = None
    ) -> tuple[Any, ...]:
        """The gradients for checked seeds; of these arguments only, where they are given."""
        if active.tracer is not self.tracer:
            raise TraceError(
                "this pullback was made inside a traced function whose run has ended\n"
                "call it there, and let that function return what it gives"
            )
        if (
            self.last is not None
            and self.last not in self.tracer.tape.ops[self.stop - 1 : self.stop]
        ):
            raise TraceError(
                "this pullback was made inside a checkpointed function and is used outside of it\nreturn it"
            )
        ops = self.tracer.tape.ops[self.start : self.stop]
        with forgiving(self.tracer):
            return record_sweep(self.tracer, self.done, ops, seeds, keys)


intrinsic(InnerPullback.__call__)


def record_sweep(
    tracer: Tracer,
    done: Run,
    ops: list[Op],
    seeds: list[tuple[Op, Any]],
    keys: Collection[int | str] | None = None,
) -> tuple[Any, ...]:
    """Run the reverse sweep on the active tape."""
    site = places.user_site()
    trees = trees_of(done, keys)
    wrt = [op for tree in trees for op in sources(tree)]
    seeds = [(op, operand(d, [])) for op, d in seeds]
    machine = Recorded(tracer.tape, site)
    found: dict[Op | None, Any] = dict(zip(wrt, sweep(ops, wrt, seeds, machine), strict=True))
    asked = trees if keys is None else trees_of(done, keys)
    refuse_sealed(done.tape, asked, lambda op: found.get(op) is not None)
    note_decisions(tracer, machine)
    return arranged(done, lambda leaf: handed(tracer, leaf, found.get(leaf.op), site))


def note_decisions(tracer: Tracer, machine: Any) -> None:
    """Guard what a sweep on the active tape has depended on beside the values that are on the tape."""
    tracer.tape.ops += decisions(machine.looked, tracer.tape)
    if machine.momentary and tracer.reads is not None:
        tracer.reads.problem(f"the rule of {machine.momentary} depends on more than its arguments")


def handed(tracer: Tracer, leaf: Leaf, d: Any, site: Site) -> Any:
    """The derivative that a sweep on the active tape found, as the traced function gets to see it."""
    value = 0.0 if isinstance(leaf.value, (int, np.integer)) else leaf.value
    if not isinstance(d, Op):
        plain = shaped(Leaf(None, value), d)
        return known(tracer, plain, site) if isinstance(plain, np.ndarray) else plain
    box = box_of(tracer, d)
    if not alike(d.value, value):
        box = lowering.run(broadcast_like, (box, value), {})
        kind = type(value)
        if is_one_of(kind, (float, complex)) and type(box.value) is not kind:
            box = calls.call(tracer, site, kind, (box,), {})
    return box


def as_variables(
    tracer: Tracer, value: Any, seen: Variables, name: str, ints: bool = True
) -> tuple[Any, Tree]:
    """Give each leaf of an argument, ``ints`` among them or not, a variable of its own on the running tape."""
    kind = type(value)
    if type(plain_of(value)) is int and not ints:
        return value, FIXED
    if is_one_of(kind, BOXES) or kind is int or is_one_of(kind, NUMBERS):
        source = operand(value, [])
        plain = primal(source)
        op = append(tracer.tape, variable, (source,), {}, plain, places.user_site())
        if kind is ArrayBox:
            box: Box = seen.array(value, ArrayBox(plain, op, value.memory))
        else:
            box = Box(plain, op)
        return box, Leaf(op, plain) if is_differentiable(plain) else FIXED
    if (sealed := sealed_inside(tracer, value, name)) is not None:
        return value, sealed
    base = native(kind)
    if base is None or base in SETS:
        return as_object_variables(tracer, value, seen, name)
    if id(value) in seen.opening:
        return value, FIXED  # on a cycle it stands once
    seen.opening.add(id(value))
    items = list(items_of(value, base))
    pairs = [as_variables(tracer, x, seen, f"{name}[{shown(key)}]", ints) for key, x in items]
    seen.opening.discard(id(value))
    keys = items_in(parts_of(value))
    parts: dict[Any, Tree] = valued(keys, [t for _, t in pairs])
    inner = valued(keys, [x for x, _ in pairs])
    if kind is base or base is tuple:
        for key, x in (attributes(value) if kind is not base else {}).items():
            inner[Own(key)], parts[Own(key)] = as_variables(
                tracer, x, seen, f"{name}.{key}", ints=False
            )
        copy = made(kind, inner, option_of(value))
        if base is not tuple:
            seen.container(value, copy, items, inner)
        else:
            seen.fixed(value, copy)
        return copy, Branch(kind, parts)
    for (key, plain), (x, _) in zip(items, pairs, strict=True):
        if x is not plain:
            seen.item(value, key, plain, x)
    own_tree = as_object_variables(tracer, value, seen, name)[1]
    if isinstance(own_tree, Branch):
        parts.update({Own(key): part for key, part in own_tree.parts.items()})
    return value, Branch(kind, parts)


def sealed_inside(tracer: Tracer, value: Any, name: str) -> Tree | None:
    """The tree of an argument that is no structure, with what the run has read from it already; else None."""
    kind = type(value)
    if kind is types.FunctionType and is_twin(value.__code__):
        return captured_inside(tracer, value, set())
    if is_one_of(kind, (types.FunctionType, types.MethodType, functools.partial, Made)):
        found = captures(tracer, value, name, None)
        return captured_inside(tracer, value, set()) if found is None else found[1]
    if isinstance(value, frozenset | set):
        ops = held_inside(tracer, value)
        return (
            Sealed(f"{name}, {with_article(kind.__name__)}", "pass a list", ops) if ops else FIXED
        )
    if is_one_of(kind, VIEWS) or kind is types.GeneratorType or is_iterator(value):
        ops = held_inside(tracer, value)
        return Sealed(f"{name}, {with_article(kind.__name__)}", "make a list of it", ops)
    sealing = sealed(tracer, value, name)
    return None if sealing is None else sealing[1]


def held_inside(tracer: Tracer, value: Any) -> list[Op]:
    """The ops of what can be reached from an argument that is no structure."""
    ops = [box.op for box in boxes_behind(tracer, value, set())]
    tracer.dependence.want(ops)
    return ops


def captured_inside(tracer: Tracer, value: Any, memo: set[int]) -> Tree:
    """What a function that the run has made captures, as it is now."""
    kind = type(value)
    if is_one_of(kind, BOXES):
        if not is_differentiable(value.value) or type(value.value) is int:
            return FIXED
        op = current_op(value)
        tracer.dependence.want([op])
        return Leaf(op, value.value)
    if id(value) in memo or is_one_of(kind, PLAIN_KINDS):
        return FIXED
    memo.add(id(value))
    parts: dict[Any, Any] = {}
    if kind is types.FunctionType:
        named = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        parts = {name: cell.cell_contents for name, cell in named if filled(cell)}
        defaults = value.__defaults__ or ()
        last = value.__code__.co_varnames[: value.__code__.co_argcount]
        parts.update(zip(last[len(last) - len(defaults) :], defaults, strict=True))
        parts.update(value.__kwdefaults__ or {})
    elif kind is Made:
        return captured_inside(tracer, behind(value), memo)
    elif kind is types.MethodType:
        return captured_inside(tracer, value.__self__, memo)
    elif kind is functools.partial:
        parts = {**dict(enumerate(value.args)), **value.keywords, "func": value.func}
    elif native(kind) in SETS or not is_structure(value):
        return FIXED
    else:
        parts = parts_of(value)
    return Branch(kind, {key: captured_inside(tracer, x, memo) for key, x in parts.items()})


class Variables:
    """Where the arguments of an inner pullback hold variables, as long as the function runs.

    The function sees copies of the containers with variables in them, other boxes of the arrays, and variables for the
    attributes of objects. What is written to one of these is written to what it stands for, and the other way round.
    """

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        # An original, its copy, and by the id of what the copy began with: that, and what it stands for
        self.containers: list[tuple[Any, Any, dict[int, tuple[Any, Any]]]] = []
        self.tuples: dict[int, tuple[Any, Any]] = {}  # id of a copy: it, and its original
        self.arrays: list[tuple[ArrayBox, ArrayBox, bool]] = []
        self.opening: set[int] = set()
        self.objects: set[int] = set()
        self.undo: list[Callable[[], None]] = []  # puts an attribute back, if the function left it

    def container(
        self, original: Any, copy: Any, items: list[tuple[Any, Any]], inner: dict[Any, Any]
    ) -> None:
        """Note that the function finds ``copy`` in the place of ``original``."""
        begun = {
            id(x): (x, old) for x, (_, old) in zip(inner.values(), items, strict=False)
        }  # behind the items stand attributes
        self.containers.append((original, copy, begun))
        join(self.tracer, original, copy)

    def fixed(self, original: Any, copy: Any) -> None:
        """Note that the function finds ``copy`` in the place of a tuple, and that the two are one to it."""
        self.tuples[id(copy)] = copy, original
        known = self.tracer.originals.get(id(original))
        if known is None:
            join(self.tracer, original, copy)
        else:
            self.tracer.originals[id(copy)] = copy, known[1]

    def item(self, held: Any, key: Any, plain: Any, traced: Any) -> None:
        """Let the function find ``traced`` in an item of a collection of a class of its own."""
        base = native(type(held))
        base.__setitem__(held, key, traced)

        def undo() -> None:
            if dict(items_of(held, base)).get(key) is traced:
                base.__setitem__(held, key, plain)

        self.undo.append(undo)

    def array(self, original: ArrayBox, box: ArrayBox) -> ArrayBox:
        """Let the function find ``box`` in the place of an array: another way to its memory, which is written to."""
        self.arrays.append((original, box, beside(original, box)))
        return box

    def attribute(self, obj: Any, name: str, plain: Any, traced: Any) -> None:
        """Let the function find ``traced`` in an attribute; what lies outside keeps its plain value."""
        key = (slot(obj), name)
        overlay = self.tracer.overlay
        if id(obj) not in self.tracer.outside:
            put(obj, name, traced)

            def undo() -> None:
                if attributes(obj).get(name) is traced:
                    put(obj, name, plain)
        else:
            before = overlay.get(key)
            overlay[key] = (obj, plain, traced)
            renewed(self.tracer, obj)

            def undo() -> None:
                if overlay.get(key, (None, None, None))[2] is traced:
                    del overlay[key]
                    if before is not None:
                        overlay[key] = before
                    renewed(self.tracer, obj)

        self.undo.append(undo)

    def end(self) -> None:
        """From now on the copies hold no variables. What C code did to them alone is carried over.

        One that the function has put somewhere stays one with what it stands for.
        """
        for original, copy, begun in self.containers:
            part(self.tracer, original, copy)
            now, held = (
                [begun.get(id(x), (x, x))[1] for x in elements(c)] for c in (copy, original)
            )
            if isinstance(original, dict):
                if list(copy) != list(original) or not same(now, held):
                    original.clear()
                    assign(original, copy, now)
            elif not same(now, held):
                original.clear()
                original.extend(now)
        for original, copy, _ in self.containers:
            copy.clear()
            copy.update(original) if isinstance(copy, dict) else copy.extend(original)
        for (original, copy, _), count in zip(
            self.containers, references(self.containers), strict=True
        ):
            if count > UNHELD:
                join(self.tracer, original, copy)
        for copy, original in self.tuples.values():
            if id(copy) in self.tracer.joined:
                part(self.tracer, original, copy)
        for original, box, alone in reversed(self.arrays):
            apart(original, box, variable, alone)
        for undo in self.undo:
            undo()

    def stood_for(self, value: Any, memo: dict[int, Any]) -> Any:
        """A result, with the originals in the place of the copies that the function saw."""
        if id(value) in memo:
            return memo[id(value)]
        if id(value) in self.tuples:
            return self.tuples[id(value)][1]
        for original, copy, _ in self.containers:
            if value is copy:
                return original
        kind = type(value)
        if not (self.containers or self.tuples) or not is_one_of(kind, (list, tuple, dict)):
            return value
        memo[id(value)] = value
        held = {key: self.stood_for(x, memo) for key, x in items_of(value, kind)}
        if all(held[key] is x for key, x in items_of(value, kind)):
            return value
        if kind is tuple:
            return tuple(held.values())
        for key, x in held.items():
            value[key] = x
        return value


def references(containers: list[tuple[Any, Any, Any]]) -> list[int]:
    """How many references there are to each of the copies."""
    return [sys.getrefcount(x[1]) for x in containers]


UNHELD = references([([], [], {})])[0]  # of a copy that is in the list alone


def elements(container: Any) -> list[Any]:
    return list(container.values() if isinstance(container, dict) else container)


def same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def as_object_variables(tracer: Tracer, value: Any, seen: Variables, name: str) -> tuple[Any, Tree]:
    """The same for the attributes of an object."""
    if (
        is_one_of(type(value), ATOMS)
        or callable_only(value)
        or isinstance(value, (type, types.ModuleType))
        or id(value) in seen.objects
    ):
        return value, FIXED
    seen.objects.add(id(value))
    parts: dict[Any, Tree] = {}
    outside = id(value) in tracer.outside
    if outside and (own := own_dict(value)) is not None:
        noted(tracer, value, None, tuple(own), "names")
    for key, plain in attributes(value).items():
        if type(plain) is int:
            parts[key] = FIXED
            continue
        x = seen_by_trace(
            tracer, value, key, plain, outside, noted(tracer, value, key, plain, "own")
        )
        traced, parts[key] = as_variables(tracer, x, seen, f"{name}.{key}", ints=False)
        if traced is not x:
            seen.attribute(value, key, plain, traced)
    return value, Branch(type(value), parts)
