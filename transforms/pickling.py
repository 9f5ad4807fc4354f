"""A run as something that can be pickled, and sent to another process.

Words
-----
table     a run as flat columns, with numbers in the place of ops: pickle would recurse along the tape itself.
kept      the ops that a sweep from the result back to the arguments goes through, and their operands.
known     a kept op that the sweep does not go through: all that is asked of it is its value.
hole      stands for an operand in the arguments of an op; the operands' numbers are listed beside, in order.
nameless  a function that another process cannot find by its name: a lambda, one made inside another function.
"""

from __future__ import annotations

import dataclasses
import importlib
import operator
import pickle
import sys
import types
from typing import Any, NamedTuple

import numpy as np

from ..rules.registry import NONDIFF, QUERY, lookup, register
from ..tracer.frames import native
from ..tracer.kinds import attribute, isinstance
from ..tracer.places import blame
from ..tracer.run import Run
from ..tracer.structure import Leaf, Tree, leaves, mapped, on_tape, sources
from ..tracer.tape import FloatOp, Input, Op, Signature, Site, Tape, append, fn_name, substitute
from ..tracer.traits import Path, Trait, lasting
from .reverse import dependents


class Table(NamedTuple):
    """What the reverse sweep needs of a run: the values of the kept ops, and a line for each call."""

    name: str
    site: Site
    untold: tuple[str, str] | None
    functions: list[Any]
    sites: list[Site]
    values: list[Any]
    lines: dict[int, tuple[Any, ...]]  # by number of the op: see `append_line`
    inputs: dict[int, tuple[str, str]]  # name and role
    callers: dict[int, str]
    args: list[Tree]
    kwargs: dict[str, Tree]
    self_tree: Tree | None
    result: Tree
    no_more: tuple[str, str] | None
    names: list[str]
    fixed: list[list[tuple[Path, Trait]]] | None


class Hole(Op):
    """The one object of this class stands for every operand."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "HOLE"


HOLE: Op = object.__new__(Hole)
HOLES = [(HOLE,) * count for count in range(4)]  # pickle writes the same tuple only once


# ------------------------------------------------------------------------------------------ to a table


def flattened(done: Run) -> Table:
    """The table of a run. Raises `pickle.PicklingError` for a function that cannot be sent."""
    through, kept = kept_ops(done)
    number = {op: i for i, op in enumerate(kept)}
    functions: dict[int, tuple[int, Any]] = {}
    sites: dict[Site, int] = {}
    lines: dict[int, tuple[Any, ...]] = {}
    for op in kept:
        if op in through:
            if id(op.fn) not in functions:
                functions[id(op.fn)] = len(functions), packed_function(op)
            fn = functions[id(op.fn)][0]
            site = sites.setdefault(op.site, len(sites))
            lines[number[op]] = (type(op) is FloatOp, fn, site, *arguments_of(op, number))
    callers = done.tape.callers

    def packed(tree: Tree) -> Tree:
        return packed_tree(tree, number)

    return Table(
        done.tape.name,
        done.tape.site,
        done.tape.untold,
        [fn for _, fn in functions.values()],
        list(sites),
        [op.value for op in kept],
        lines,
        {i: (op.name, op.role) for op, i in number.items() if isinstance(op, Input)},
        {number[op]: callers[op] for op in through if op in callers},
        [packed(tree) for tree in done.args],
        {key: packed(tree) for key, tree in done.kwargs.items()},
        None if done.self_tree is None else packed(done.self_tree),
        packed(done.result),
        done.tape.no_more or (FOR_ITS_OWN if is_partial(done.tape, through) else None),
        done.names,
        lasting(done.fixed),
    )


FOR_ITS_OWN = (
    "it was pickled, with no more than what its own sweep needs",
    "ask the pullback from which it was made for its tape",
)


def is_partial(tape: Tape, through: set[Op]) -> bool:
    """Whether a run has decided, looked at or computed anything that is not kept as it was."""
    return (tape.once or tape.ties) is not None or any(
        op.kind != "input" and op not in through for op in tape.ops
    )


def kept_ops(done: Run) -> tuple[set[Op], list[Op]]:
    """The calls that a sweep goes through, and all ops that it needs to know of in the order of the tape."""
    own = [] if done.self_tree is None else [done.self_tree]
    arguments = [*own, *done.args, *done.kwargs.values()]
    wrt = [op for tree in arguments for op in sources(tree)]
    steps, _ = dependents(done.tape.ops, wrt)
    through: set[Op] = set()
    kept: set[Any] = {leaf.op for leaf in leaves(done.result)}
    for op in reversed(steps):
        if op in kept and not has_no_derivative(op.fn):
            through.add(op)
            kept.update(op.operands())
    return through, [op for op in done.tape.ops if op in kept]


def has_no_derivative(fn: Any) -> bool:
    rule = lookup(fn)
    return rule is not None and rule.kind in (NONDIFF, QUERY)


def arguments_of(op: Op, number: dict[Op, int]) -> tuple[Any, ...]:
    """The numbers of an op's operands, its arguments with holes for these, and its keyword arguments if any."""
    operands: list[int] = []

    def hole(x: Op) -> Op:
        operands.append(number[x])
        return HOLE

    args = substitute(op.args, hole)
    if len(args) < len(HOLES) and all(x is HOLE for x in args):
        args = HOLES[len(args)]
    return (operands, args, substitute(op.kwargs, hole)) if op.kwargs else (operands, args)


class Like(NamedTuple):
    """All that counts of an array whose gradient or cotangent is to come."""

    dtype: Any
    shape: tuple[int, ...]


def packed_tree(tree: Tree, number: dict[Op, int]) -> Tree:
    """A tree with numbers for ops, and without the contents of arrays; what the sweep does not reach has no op."""

    def leaf(x: Leaf) -> Leaf:
        value = x.value
        like = Like(value.dtype, value.shape) if isinstance(value, np.ndarray) else value
        return Leaf(number.get(x.op), like)  # type: ignore[arg-type]

    return mapped(tree, leaf, number.get, kind_of)


def kind_of(kind: type) -> type:
    """The class of a branch, where gradients are of that class; those of other objects are dicts."""
    same = native(kind) is not None or dataclasses.is_dataclass(kind)
    return kind if same or kind is types.MappingProxyType else object


class Packed(NamedTuple):
    """A nameless function with its rule, pickled by value."""

    content: bytes


def packed_function(op: Op) -> Any:
    """The function of an op, as pickle can send it."""
    fn = op.fn
    if has_name(fn):
        return fn
    together = fn, lookup(fn)
    try:
        return Packed(pickle.dumps(together))
    except Exception as error:
        try:
            import cloudpickle
        except ImportError:
            raise pickle.PicklingError(
                f"{blame(op.site)}: {fn_name(fn)} cannot be pickled, because another process could not find it by "
                "its name; define it at the top of a module, or install cloudpickle"
            ) from error
        return Packed(cloudpickle.dumps(together))


def has_name(fn: Any) -> bool:
    """Whether another process finds a function by its name."""
    if attribute(fn, "__module__") == "__main__" and not hasattr(
        sys.modules["__main__"], "__file__"
    ):
        return False  # typed in at a prompt or in a notebook
    try:
        return pickle.loads(pickle.dumps(fn)) == fn
    except Exception:
        return False


# ---------------------------------------------------------------------------------------- from a table


def restored(table: Table) -> Run:
    """The run that a table describes, with all that the reverse sweep asks for."""
    done = Run(Tape(table.name, table.site))
    tape = done.tape
    tape.untold = table.untold
    functions = [unpacked_function(fn) for fn in table.functions]
    for i, value in enumerate(table.values):
        line = table.lines.get(i)
        if line is None:
            name, role = table.inputs.get(i, ("known", "outside"))
            tape.ops.append(Input(name, value, tape, role))
        else:
            append_line(tape, line, functions, table.sites, value)
    tape.no_more = table.no_more
    done.names, done.fixed = table.names, table.fixed
    tape.callers = {tape.ops[i]: text for i, text in table.callers.items()}

    def leaf(x: Leaf) -> Leaf:
        op = None if x.op is None else tape.ops[x.op]  # type: ignore[call-overload]
        like = x.value
        return Leaf(
            op,
            np.broadcast_to(np.zeros((), like.dtype), like.shape) if type(like) is Like else like,
        )

    def tree_of(tree: Tree) -> Tree:
        return mapped(tree, leaf, lambda i: tape.ops[i])  # type: ignore[call-overload]

    done.args = [tree_of(tree) for tree in table.args]
    done.kwargs = {key: tree_of(tree) for key, tree in table.kwargs.items()}
    done.self_tree = None if table.self_tree is None else tree_of(table.self_tree)
    done.result = tree_of(table.result)
    tape.result = on_tape(done.result)
    return done


def append_line(
    tape: Tape, line: tuple[Any, ...], functions: list[Any], sites: list[Site], value: Any
) -> None:
    """Put a call on the tape, with ops in the holes of its arguments."""
    plain, fn, site, operands, args, *keywords = line
    queue = iter(operands)

    def operand(hole: Op) -> Op:
        return tape.ops[next(queue)]

    args = substitute(args, operand)
    if plain:
        kinds = [Op if isinstance(x, Op) else type(x) for x in args]
        signature = Signature.of(functions[fn], *kinds)
        tape.ops.append(FloatOp(functions[fn], args, value, sites[site], tape, signature))
    else:
        options = substitute(keywords[0], operand) if keywords else {}
        append(tape, functions[fn], args, options, value, sites[site])


def unpacked_function(fn: Any) -> Any:
    if type(fn) is not Packed:
        return fn
    function, rule = pickle.loads(fn.content)
    if rule is not None and lookup(function) is None:
        register([function], rule)
    return function


# -------------------------------------------------------------------------------- decorated functions


def place_of(decorated: Any, f: Any) -> tuple[str, str] | None:
    """The module and the name of ``f``, if ``decorated`` has taken its place there, as a decorator does."""
    module, name = attribute(f, "__module__"), attribute(f, "__qualname__", "")
    if module not in sys.modules or (module == "__main__" and is_by_value()):
        return None
    try:
        return (module, name) if at_place(module, name) == decorated else None
    except AttributeError:
        return None


def is_by_value() -> bool:
    """Whether cloudpickle is at work, or its copy in joblib: what stands in a script, pickle sends by its name."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").endswith("cloudpickle"):
            return True
        frame = frame.f_back
    return False


def at_place(module: str, name: str) -> Any:
    """What the module has under that name."""
    return operator.attrgetter(name)(importlib.import_module(module))
