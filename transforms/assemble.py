"""Assembly: the ops of a tape become the statements of a Python function, as fast as a reader would write them.

Words
-----
statement  one line of source; an op becomes one or two of them.
name       the local variable in which the value of an op lies; reused once the value is needed no more.
live       needed after the last of the ops that are written out.
storage    the memory of an array, shared with its views.
owned      storage that the program itself made and that nobody else can see: it may be written into.
steady     an op whose value has the same type and shape whenever its operands have; the others are checked.
miss       the statement that is executed where a guard fails.

The source holds for inputs of the types that were traced: Python type, or dtype, shape and strides.
"""

from __future__ import annotations

import itertools
import linecache
import math
import operator
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..rules.mutation import may_repeat, scatter, scatter_add, setitem
from ..rules.numpy_reductions import ties
from ..rules.words import with_article
from ..tracer.kinds import attribute, is_one_of, isinstance
from ..tracer.source import AS_IMPORTED, BUILTINS, INFIX, Text
from ..tracer.tape import FloatOp, Input, Op, Tape, element, ops_in, primal
from .kernels import (
    FLOATS,
    KERNELS,
    hashable,
    is_array,
    is_fresh,
    is_native,
    is_steady,
    is_view,
    shared_layout,
)
from .silence import LEAVING

AUGMENTED = {
    operator.add: "+=", operator.sub: "-=", operator.mul: "*=", operator.truediv: "/=",
    operator.iadd: "+=", operator.isub: "-=", operator.imul: "*=", operator.itruediv: "/=",
}  # fmt: skip
UFUNCS = {
    operator.add: np.add, operator.sub: np.subtract, operator.mul: np.multiply, operator.truediv: np.divide,
    operator.neg: np.negative,
}  # fmt: skip
PLAIN_TREES = (tuple, list, dict, slice)
LARGE = 1 << 16  # bytes from which on an array is worth a `del`


class Storage:
    """The memory of one array: the op that made it, how many ops still need it, and whether it is owned."""

    __slots__ = ("alive", "maker", "owned")

    def __init__(self, maker: Op | None, owned: bool, alive: int = 1) -> None:
        self.maker = maker
        self.owned = owned
        self.alive = alive


class Assembly(Text):
    """Writes the operations of a tape as the statements of a Python function.

    ``namespace`` collects what the source refers to by name, and ``taken`` lists names that it must not use.
    """

    def __init__(self, namespace: dict[str, Any], taken: Iterable[str] = ()) -> None:
        for name, module in AS_IMPORTED.items():
            namespace.setdefault(name, module)
        super().__init__(namespace, taken)
        self.spare: list[str] = []  # names given back, the last one on top
        self.bound: set[Op] = set()  # their names are somebody else's
        self.storage: dict[Op, Storage] = {}
        self.elements: dict[Op, list[str]] = {}  # of values that lie in several variables
        self.anew: dict[Op, Collection[int]] = {}  # which of them lie in memory of their own
        self.methods: dict[Any, Any] = {}  # of ufuncs, by ufunc and name
        self.checked: list[Op] = []  # the op of each statement that may miss, in order
        self.scalars: dict[Any, str] = {}  # numbers as arrays, by dtype and number
        self.counter = itertools.count(1)
        self.asked: Mapping[
            Op, Collection[int]
        ] = {}  # by loop, which results are; all if not there
        self.straight: set[Op] = set()  # see `kernels`
        self.unsized: set[Op] = set()  # arrays that may have other sizes than their values
        self.remote: list[Op] = []  # computed by other functions than those in C
        # Whether it writes a kept program, whose call is traced where a `Miss` leaves it.
        self.kept = False

    def fork(self) -> Assembly:
        """A copy of the state, for a branch; what the source refers to by name stays common."""
        branch = Assembly.__new__(Assembly)
        branch.namespace, branch.known, branch.taken = self.namespace, self.known, self.taken
        branch.latest, branch.counter, branch.scalars = self.latest, self.counter, self.scalars
        branch.methods = self.methods
        branch.asked = self.asked
        branch.straight = self.straight.copy()
        branch.unsized = self.unsized
        branch.checked, branch.remote, branch.kept = self.checked, self.remote, self.kept
        branch.elements = self.elements.copy()
        branch.anew = self.anew.copy()
        branch.names = self.names.copy()
        branch.spare = self.spare.copy()
        branch.bound = self.bound.copy()
        copies: dict[Storage, Storage] = {}
        branch.storage = {}
        for op, s in self.storage.items():
            if s not in copies:
                copies[s] = Storage(s.maker, s.owned, s.alive)
            branch.storage[op] = copies[s]
        return branch

    def share(self, other: Assembly) -> None:
        """Write into the same function as another assembly, with names of its own."""
        self.namespace, self.known, self.taken = other.namespace, other.known, other.taken
        self.latest = other.latest
        self.counter, self.scalars, self.methods = other.counter, other.scalars, other.methods
        self.kept = other.kept

    def bind(self, op: Op, name: str) -> None:
        """The value of ``op`` already lies in the variable ``name``, which is not reused and not written into."""
        self.names[op] = name
        self.taken.add(name)
        self.bound.add(op)

    def expression(self, tree: Any) -> str:
        """The text of a nested structure of ops and constants."""
        return self.argument(tree)

    def argument(self, tree: Any) -> str:
        if isinstance(tree, Op):
            return self.names[tree]
        if not is_one_of(type(tree), PLAIN_TREES) and isinstance(tree, (tuple, list, dict)):
            if any(True for _ in ops_in(tree)) and not hasattr(tree, "_make"):
                raise TypeError(
                    f"{with_article(type(tree).__name__)} of variables cannot be written as source"
                )
            if hasattr(tree, "_make"):
                return f"{self.function(type(tree))}._make({super().argument(tuple(tree))})"
            return self.named(tree, "c")
        return super().argument(tree)

    def function(self, fn: Any) -> str:
        """A callable by a name of its own: a look-up of ``np.add.reduce`` would cost as much as a small sum."""
        name = attribute(fn, "__name__", type(fn).__name__)
        owner = attribute(fn, "__self__")
        if isinstance(owner, np.ufunc):
            fn = self.methods.setdefault((owner, name), fn)  # made anew each time it is asked for
            name = f"{owner.__name__}_{name}"
        elif BUILTINS.get(name) is fn:
            return str(name)
        return self.named(fn, name)

    def callee(self, fn: Any) -> str:
        return self.function(LEAVING.get(fn, fn) if hashable(fn) else fn)

    # ------------------------------------------------------------------------------------------ statements

    def emit(
        self, ops: Sequence[Op], live: Collection[Op], miss: str, indent: int = 1
    ) -> list[str]:
        """The statements for the calls and guards among ``ops``, in order.

        Ops in ``live`` keep their names to the end; the others give them back at their last use. Effects and inputs
        are skipped. A guard that fails executes the statement ``miss``.
        """
        kept = set(live)
        operands = [op.args if type(op) is FloatOp else op.operands() for op in ops]
        nested = nested_ops(ops, operands, kept, self.bound)
        last = last_uses(ops, operands, kept, nested)
        pad = "    " * indent
        names, spare, bound = self.names, self.spare, self.bound
        lines: list[str] = []
        for i, op in enumerate(ops):
            kind = op.kind
            if kind == "guard":
                lines.append(f"{pad}if {self.failure(op)}: {miss}")
                self.checked.append(op)
                self.release(last.get(i, ()), pad, lines)
                continue
            if kind != "call":
                continue
            dying = last.get(i, ())
            symbol = INFIX.get(op.fn) if type(op) is FloatOp else None
            if symbol is not None:
                # Most ops of long tapes are such: written without ado.
                a, b = op.args
                left = names[a] if issubclass(type(a), Op) else self.operand(a)
                right = names[b] if issubclass(type(b), Op) else self.operand(b)
                if op in nested:
                    names[op] = f"({left} {symbol} {right})"
                    continue
                for x in dying:
                    if x not in bound and x is not op and x not in nested:
                        spare.append(names[x])
                if spare:
                    name = spare.pop()
                else:
                    name = f"t{next(self.counter)}"
                    while name in self.taken:
                        name = f"t{next(self.counter)}"
                names[op] = name
                lines.append(f"{pad}{name} = {left} {symbol} {right}")
                if symbol == "**" and not is_steady(op):
                    lines.append(f"{pad}if {self.unexpected(op)}: {miss}")
                    self.checked.append(op)
                if op in dying:
                    spare.append(name)
                continue
            if op in nested:
                text = self.call(op)
                names[op] = text if op.fn in MATH else f"({text})"
                continue
            self.statement(op, dying, pad, lines)
            if not is_steady(op):
                lines.append(f"{pad}if {self.unexpected(op)}: {miss}")
                self.checked.append(op)
            if op in dying:
                self.release((op,), pad, lines)
        return lines

    def statement(self, op: Op, dying: Sequence[Op], pad: str, lines: list[str]) -> None:
        """Write one call."""
        write = WRITES.get(op.fn) if hashable(op.fn) else None
        write = write or WRITES.get(type(op.fn))
        if write is not None and not op.kwargs:
            write(self, op, dying, pad, lines)
            return
        if op.fn is element and op.args[0] in self.elements:
            self.names[op] = self.elements[op.args[0]][op.args[1]]
            anew = op.args[1] in self.anew.get(op.args[0], ())
            self.storage[op] = Storage(op if anew else None, anew)
            return
        target = self.target(op, dying)
        if target is not None:
            self.in_place(op, target, pad, lines)
            self.release([x for x in dying if x is not op and x is not target], pad, lines)
            return
        text = self.call(op)
        self.note_storage(op)
        given_back = self.release([x for x in dying if x is not op], pad, None)
        name = self.names[op] = self.new_name()
        lines.append(f"{pad}{name} = {text}")
        lines += [f"{pad}del {x}" for x in given_back if x != name]

    def call(self, op: Op) -> str:
        """The expression that computes an op."""
        kernel = KERNELS.get(op.fn) if hashable(op.fn) else None
        text = kernel(self, op) if kernel is not None else None
        if text is None and not is_native(op.fn):
            self.remote.append(op)
        return text if text is not None else super().expression(op)

    def new_name(self) -> str:
        if self.spare:
            return self.spare.pop()
        name = f"t{next(self.counter)}"
        while name in self.taken:
            name = f"t{next(self.counter)}"
        return name

    def release(self, ops: Iterable[Op], pad: str, lines: list[str] | None) -> list[str]:
        """Give back the names of ``ops``; says which of them hold large arrays, or deletes these."""
        large = []
        for op in ops:
            kept = self.storage.get(op)
            if kept is not None:
                kept.alive -= 1
            if op in self.bound or op in self.elements:
                continue
            name = self.names[op]
            self.spare.append(name)
            if type(op.value) is np.ndarray and op.value.nbytes >= LARGE:
                large.append(name)
        if lines is not None:
            lines += [f"{pad}del {name}" for name in large]
        return large

    # ---------------------------------------------------------------------------------------------- guards

    def failure(self, op: Op) -> str:
        """The condition under which a guard fails: exact, NaN equals nothing and -0.0 is not 0.0."""
        name, value = self.argument(op.args[0]), op.value
        if value is True:
            return f"not {name}"
        if value is False:
            return name
        if value is None:
            return f"{name} is not None"
        if type(value) is float and value == 0:
            return f"{name} != 0.0 or math.copysign(1.0, {name}) != {math.copysign(1.0, value)}"
        if is_one_of(type(value), (int, float, str, bytes)):
            return f"{name} != {self.constant(value, 'c')}"
        return f"not {self.function(same)}({name}, {self.constant(value, 'c')})"

    def unexpected(self, op: Op) -> str:
        """The condition under which the value of an op is not of the type, dtype or shape that it had."""
        name, value = self.names[op], op.value
        if type(value) is not np.ndarray:
            condition = f"type({name}) is not {self.function(type(value))}"
            return (
                f"{condition} or len({name}) != {len(value)}"
                if isinstance(value, tuple)
                else condition
            )
        dtype = self.constant(value.dtype, "dtype")
        return (
            f"type({name}) is not {self.function(np.ndarray)} or {name}.shape != {value.shape!r}"
            f" or {name}.dtype != {dtype}"
        )

    # -------------------------------------------------------------------------------------------- in place

    def note_storage(self, op: Op) -> None:
        """Remember in whose memory the value of an op lies."""
        value = op.value
        if isinstance(value, (float, int, complex, np.generic)):
            return
        if is_fresh(op):
            self.storage[op] = Storage(op, True)
            return
        sources = {
            self.storage[x]: None for x in op.operands() if x in self.storage
        }  # ordered, unlike a set
        if is_view(op) and len(sources) == 1 and isinstance(op.args[0], Op):
            (source,) = sources
            source.alive += 1
            self.storage[op] = source
            return
        for source in sources:
            source.owned = False
        self.storage[op] = Storage(None, False)

    def disposable(self, x: Any, dying: Sequence[Op]) -> bool:
        """May the array of ``x`` be written into? Nobody may need it, or a view of it, any more."""
        if not isinstance(x, Op) or x not in dying or x in self.bound:
            return False
        kept = self.storage.get(x)
        return kept is not None and kept.owned and kept.alive == 1 and kept.maker is x

    def target(self, op: Op, dying: Sequence[Op]) -> Op | None:
        """The operand into whose array the result may be written, if there is one."""
        value = op.value
        if type(value) is not np.ndarray or value.size < 2 or not value.ndim or op.kwargs:
            return None
        fn = UFUNCS.get(op.fn) if hashable(op.fn) else None
        fn = op.fn if fn is None else fn
        if fn is ties:
            x = op.args[0]
            return x if self.disposable(x, dying) and shared_layout(x.value, value) else None
        if not isinstance(fn, np.ufunc) or fn.nout != 1 or fn.nin != len(op.args) or fn.signature:
            return None
        for x in op.args:
            if self.disposable(x, dying) and shared_layout(x.value, value):
                return x
        return None

    def in_place(self, op: Op, target: Op, pad: str, lines: list[str]) -> None:
        """Write an elementwise operation whose result goes into the array of one of its operands."""
        name = self.names.pop(target)
        self.names[target] = self.names[op] = name
        self.storage[op] = Storage(op, True)
        symbol = AUGMENTED.get(op.fn)
        if op.fn is ties:  # there only if that is easy
            texts = [self.argument(x) for x in op.args]
            lines.append(f"{pad}{name} = {self.function(ties)}({', '.join(texts)}, out={name})")
            return
        texts = self.operands(op)
        if symbol is not None and op.args[0] is target:
            lines.append(f"{pad}{name} {symbol} {texts[1]}")
            return
        fn = UFUNCS.get(op.fn, op.fn)
        out = f"out={name}" if fn in (np.maximum, np.minimum) else name  # NumPy asks for it
        lines.append(f"{pad}{self.function(fn)}({', '.join(texts)}, {out})")

    def operands(self, op: Op) -> list[str]:
        return [self.argument(x) if isinstance(x, Op) else self.scalar(x, op) for x in op.args]

    def scalar(self, x: Any, op: Op) -> str:
        """A number that is an operand of ``op``, as an array without axes if the result is an array of that kind."""
        value = op.value
        if (
            type(value) is not np.ndarray
            or not is_one_of(type(x), (float, int))
            or value.dtype not in FLOATS
        ):
            return self.operand(x)
        if any(isinstance(y, Op) and y.value.dtype != value.dtype for y in op.args if is_array(y)):
            return self.operand(x)
        exact = value.dtype.type(x)
        if not math.isfinite(exact) or (exact != x and value.dtype == FLOATS[0]):
            return self.operand(x)
        key = value.dtype, repr(exact)
        name = self.scalars.get(key)
        if name is None:
            name = self.scalars[key] = self.fresh(f"n{x!r}".replace("-", "m").replace(".0", ""))
            self.namespace[name] = np.array(exact)
        return name

    def write_setitem(self, op: Op, dying: Sequence[Op], pad: str, lines: list[str]) -> None:
        """A pure write: into the array itself if nobody needs its old version, else into a copy."""
        x, index, value = op.args
        where, what = self.index(index), self.argument(value)
        name = self.written(op, x, dying, pad, lines)
        lines.append(f"{pad}{name}[{where}] = {what}")
        self.release([y for y in dying if y is not op and self.names[y] != name], pad, lines)

    def write_scatter_add(self, op: Op, dying: Sequence[Op], pad: str, lines: list[str]) -> None:
        x, index, d = op.args
        where, what = self.index(index), self.argument(d)
        place = self.argument(index)
        name = self.written(op, x, dying, pad, lines)
        if may_repeat(primal(index)):
            lines.append(f"{pad}{self.function(np.add.at)}({name}, {place}, {what})")
        else:
            lines.append(f"{pad}{name}[{where}] += {what}")
        self.release([y for y in dying if y is not op and self.names[y] != name], pad, lines)

    def write_scatter(self, op: Op, dying: Sequence[Op], pad: str, lines: list[str]) -> None:
        d, index, shape, dtype = op.args
        where, what = self.index(index), self.argument(d)
        name = self.names[op] = self.new_name()
        self.storage[op] = Storage(op, True)
        kind = "" if dtype == np.dtype(float) else f", {self.constant(np.dtype(dtype), str(dtype))}"
        lines.append(f"{pad}{name} = {self.function(np.zeros)}({self.argument(shape)}{kind})")
        if may_repeat(primal(index)):
            add_at = self.function(np.add.at)
            lines.append(f"{pad}{add_at}({name}, {self.argument(index)}, {what})")
        else:
            lines.append(f"{pad}{name}[{where}] = {what}")
        self.release([y for y in dying if y is not op], pad, lines)

    def written(self, op: Op, x: Any, dying: Sequence[Op], pad: str, lines: list[str]) -> str:
        """The name of an array that holds what ``x`` holds and may be written into."""
        value = op.value
        if (
            self.disposable(x, dying)
            and type(x.value) is type(value) is np.ndarray
            and x.value.dtype == value.dtype
            and not any(x is y for y in ops_in(op.args[1:]))
        ):
            name = self.names[x]
        else:
            name = self.new_name()
            made = type(x.value if isinstance(x, Op) else x) is np.ndarray
            copy = f"{self.operand(x)}.copy('K')" if made else f"np.array({self.argument(x)})"
            lines.append(f"{pad}{name} = {copy}")
        self.names[op] = name
        self.storage[op] = Storage(op, True)
        return name


WRITES: dict[Any, Callable[..., None]] = {
    setitem: Assembly.write_setitem,
    scatter: Assembly.write_scatter,
    scatter_add: Assembly.write_scatter_add,
}


def nested_ops(
    ops: Sequence[Op],
    operands: Sequence[Iterable[Any]],
    live: Collection[Op],
    bound: Collection[Op],
) -> dict[Op, int]:
    """The operations on plain floats that get no statement of their own, and the last place where each stands.

    It stands inside the statement of its only user: CPython writes the result of an operation into the object of an
    operand that has no name. Measured, that is a sixth to a third of the time of a long program. Arithmetic that is
    needed a second time much later is computed again then, if its operands are still there: keeping it costs more.
    """
    uses: dict[Op, int] = {}
    first: dict[Op, int] = {}
    last: dict[Op, int] = {}
    for i, given in enumerate(operands):
        for x in given:
            if x in uses:
                uses[x] += 1
            elif issubclass(type(x), Op):
                uses[x] = 1
                first[x] = i
            last[x] = i
    nested: dict[Op, int] = {}
    depth: dict[Op, int] = {}
    for i, op in enumerate(ops):
        count = uses.get(op, 0)
        if not 0 < count <= 2 or op in live:
            continue
        near, far = first[op], last[op]
        if near - i > NEAR:
            continue
        if type(op) is FloatOp and op.fn in NESTS:
            if type(ops[near]) is not FloatOp and (count > 1 or not is_inner(ops[near])):
                continue
        elif count > 1 or not is_inner(op) or not takes_inner(ops[near], op):
            continue
        deep = 1 + max([depth.get(x, 0) for x in op.args])
        if deep > DEEP:
            continue
        if count == 2:
            if (
                far - near <= NEAR
                or type(ops[near]) is not FloatOp
                or type(ops[far]) is not FloatOp
            ):
                continue
            for x in op.args:
                there = x in bound or x in live or (last[x] >= far and x not in nested)
                if isinstance(x, Op) and not there:
                    break
            else:
                nested[op], depth[op] = far, deep
            continue
        nested[op], depth[op] = far, deep
    for op in reversed(list(nested)):
        nested[op] = nested.get(ops[nested[op]], nested[op])
    return nested


def is_inner(op: Op) -> bool:
    """Whether an operation gives a float, or a decision, from plain numbers, and does nothing else."""
    if op.kind != "call" or op.kwargs or not is_one_of(type(op.value), (float, bool)):
        return False
    if not all(is_one_of(type(x.value if isinstance(x, Op) else x), (float, int)) for x in op.args):
        return False
    fn = op.fn if hashable(op.fn) else None
    if fn in COMPARES:
        return True
    return type(op.value) is float and (
        fn is operator.neg or (fn in MATH and fn not in KERNELS and is_steady(op))
    )


def takes_inner(user: Op, op: Op) -> bool:
    """Whether the statement of a user mentions an operand once, and where it may be a longer expression."""
    if type(op.value) is bool:
        return user.kind == "guard"
    return type(user) is FloatOp or is_inner(user)


COMPARES = frozenset((operator.lt, operator.le, operator.gt, operator.ge))
MATH = frozenset(fn for fn in vars(math).values() if callable(fn))
NESTS = frozenset((operator.add, operator.sub, operator.mul, operator.truediv))
NEAR, DEEP = 20, 6  # statements between an operation and its user, operations inside one another


def last_uses(
    ops: Sequence[Op], operands: Sequence[Iterable[Any]], live: set[Op], nested: dict[Op, int]
) -> dict[int, list[Op]]:
    """For each place among ``ops``, the variables that are needed there for the last time."""
    last: dict[Op, int] = {}
    for i, op in enumerate(ops):
        at = nested.get(op)
        if at is None:
            at = i
            if op.kind == "call":
                last[op] = i
            elif op.kind == "effect":
                live.update(operands[i])
        for x in operands[i]:
            if issubclass(type(x), Op) and last.get(x, -1) < at:
                last[x] = at
    dying: dict[int, list[Op]] = {}
    for op, i in last.items():
        if op not in live and op not in nested:
            dying.setdefault(i, []).append(op)
    return dying


def same(value: Any, known: Any) -> bool:
    """Is a value the one that a guard expects, in type and to the bit? NaN is never expected again."""
    if type(value) is not type(known):
        return False
    if isinstance(known, np.ndarray):
        return bool(
            value.dtype == known.dtype
            and value.shape == known.shape
            and np.array_equal(value, known)
            and (known.dtype.kind not in "fc" or value.tobytes() == known.tobytes())
        )
    if isinstance(known, (float, complex, np.inexact)):
        return bool(value == known) and repr(value) == repr(known)
    if isinstance(known, (tuple, list)):
        return len(value) == len(known) and all(map(same, value, known))
    return bool(value == known)


# ---------------------------------------------------------------------------------------------- functions

numbers = itertools.count(1)


def define(source: str, name: str, namespace: dict[str, Any], title: str = "") -> Any:
    """The function ``name`` that the source defines; tracebacks show its lines as long as it exists."""
    filename = f"<wengert {title or name} {next(numbers)}>"
    exec(compile(source, filename, "exec"), namespace)
    function = namespace.pop(name)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    weakref.finalize(function, linecache.cache.pop, filename, None).atexit = False
    return function


def assembled(tape: Tape, name: str = "f") -> Any:
    """The tape as a Python function of its inputs; it returns the tape's result, or None where a guard fails.

    >>> from wengert import reverse, trace
    >>> assembled(reverse(trace(lambda x, y: x * y, 2.0, 3.0)))(5.0, 7.0)
    (35.0, (7.0, 5.0))
    """
    namespace: dict[str, Any] = {}
    return define(source_of(tape, name, namespace), name, namespace, tape.name)


def source_of(tape: Tape, name: str, namespace: dict[str, Any], given: Collection[Op] = ()) -> str:
    """The source of `assembled`; the values of the ops ``given`` are parameters as well, after the inputs."""
    assembly = Assembly(namespace, (name,))
    parameters = []
    for op in (*tape.inputs, *given):
        parameters.append(assembly.fresh(op.name if isinstance(op, Input) else "given"))
        assembly.bind(op, parameters[-1])
    body = assembly.emit(
        [op for op in tape.ops if op not in given], set(ops_in(tape.result)), "return None"
    )
    result = assembly.expression(tape.result)
    return "\n".join([f"def {name}({', '.join(parameters)}):", *body, f"    return {result}", ""])
