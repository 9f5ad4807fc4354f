"""``jacobian``, ``hessian`` and ``hvp``: all the partial derivatives of a function, or their product with a vector.

Words
-----
mode      ``forward``: one column for each number that goes in; ``reverse``: one row for each number that comes out.
units     the columns or rows to compute: the unit vectors of the space of the inputs, or of the results.
block     the part of the Jacobian that belongs to one leaf of the result and one leaf of an argument.
"""

# The first overload that fits is the most exact one.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, TypeVar, overload

import numpy as np

from ..rules.broadcasting import cast
from ..tracer import calls, places
from ..tracer.active import active
from ..tracer.arrays import append_saved
from ..tracer.errors import CotangentError, TraceError
from ..tracer.intrinsic import intrinsic
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.record import box_of
from ..tracer.run import Run, in_full
from ..tracer.session import Tracer
from ..tracer.structure import Fixed, Leaf, Tree, leaves, rebuild, sources
from ..tracer.tape import Input, Op, Tape, primal
from ..tracer.tracebacks import fold
from .api import forgiving, inner_run, note_decisions
from .argnums import (
    Argnums,
    by_position,
    checked_argnums,
    checked_aux,
    chosen,
    indices,
    leave_aux,
    options_text,
    refusing,
)
from .batch import Batch, one_of
from .cotangents import refuse_sealed_between
from .dispatch import written
from .fold.rows import JACOBIANS
from .forward import Pusher
from .gradients import check_argument, grad
from .pairs import Late
from .refused import no_jacobian
from .reverse import Recorded, sweep
from .simplify import pruned
from .tangents import Asked, Pushed, Transform, Whole, along, check_sequences
from .typed import A, Aux, D, N, P, R, S, V

FORWARD, REVERSE = "forward", "reverse"
T = TypeVar("T", bound=Sequence[Any])


class Jacobian(Transform):
    """The transform of `jacobian`."""

    __slots__ = ("argnums", "has_aux", "holomorphic", "mode")
    name = "jacobian"

    def __init__(
        self,
        f: Callable[..., Any],
        argnums: Argnums,
        mode: str | None,
        holomorphic: bool,
        has_aux: bool,
    ) -> None:
        if mode not in (None, FORWARD, REVERSE):
            raise TraceError(
                f'mode must be "forward", "reverse" or None, not {mode!r}\n'
                "without it the mode is taken that has fewer columns; jacfwd and jacrev say it by name"
            )
        self.argnums = checked_argnums(argnums)
        self.mode = mode
        self.holomorphic = holomorphic
        self.has_aux = checked_aux(has_aux)
        super().__init__(f, (self.argnums, mode, holomorphic, has_aux))

    def title(self) -> str:
        options = options_text(
            self.argnums, mode=self.mode, holomorphic=self.holomorphic, has_aux=self.has_aux
        )
        return written("jacobian", self.f, options)

    def inside(self, tracer: Tracer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        keys = chosen(self.f, self.argnums, len(args), kwargs)
        done, start, stop = inner_run(tracer, self.f, args, kwargs, self.mode == FORWARD)
        value = done.value
        if self.has_aux:
            leave_aux(self.f, done)
        if isinstance(done.result, Fixed):
            raise CotangentError(no_jacobian(self.f, value[0] if self.has_aux else value))
        asked = [done.argument(key) for key in keys]
        for key, tree in zip(keys, asked, strict=True):
            given = args[key] if isinstance(key, int) else kwargs[key]
            check_argument(self.f, key, tree, given)
        wrt = [op for tree in asked for op in sources(tree)]
        refuse_sealed_between(done.tape, tracer.tape.ops[start:stop], asked, done.result, wrt)
        blocks = Blocks(self, tracer, done, tracer.tape.ops[start:stop], asked)

        def rows(out: Leaf) -> Any:
            found = tuple([rebuild(tree, lambda x: blocks.block(out, x)) for tree in asked])
            return found if type(self.argnums) is tuple else found[0]

        found = rebuild(done.result, rows)
        return (found, value[1]) if self.has_aux else found

    def followed(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], Sequence[int], str, bool] | None:
        given = by_position(self.f, args, kwargs)
        if given is None:
            return None
        keys = indices(self.f, chosen(self.f, self.argnums, len(args), kwargs))
        single = type(self.argnums) is not tuple
        return given, keys, JACOBIANS[single, self.has_aux], self.has_aux


class Hessian(Jacobian):
    """The transform of `hessian`: the Jacobian, by forward mode, of one by reverse mode, which ``f`` is here."""

    __slots__ = ()
    name = "hessian"

    @property
    def asked(self) -> Callable[..., Any]:
        first: Any = self.f
        return first.__self__.transform.f  # type: ignore[no-any-return]

    def title(self) -> str:
        return written("hessian", self.asked, options_text(self.argnums, has_aux=self.has_aux))


class Blocks:
    """The blocks of one Jacobian, from a run on the active tape."""

    def __init__(
        self, what: Jacobian, tracer: Tracer, done: Run, ops: list[Op], trees: list[Tree]
    ) -> None:
        self.what = what
        self.tracer = tracer
        self.site = places.user_site()
        self.outs = [x for x in leaves(done.result) if x.op is not None]
        self.ins = [x for tree in dict.fromkeys(trees) for x in leaves(tree)]
        self.ops = ops
        into, out = count(self.ins), count(self.outs)
        mode = what.mode or (FORWARD if into <= out else REVERSE)
        self.forward = mode == FORWARD
        self.check_complex()
        self.units = self.layout(self.ins if self.forward else self.outs)
        self.looked: dict[Op, None] = {}
        self.momentary = ""
        self.found = self.computed()
        note_decisions(tracer, self)

    def check_complex(self) -> None:
        """A derivative of complex numbers by complex numbers is one number only where it is declared so."""
        into = any(np.iscomplexobj(x.value) for x in self.ins)
        out = any(np.iscomplexobj(x.value) for x in self.outs)
        if self.what.holomorphic and not (into and out):
            raise TraceError(
                "holomorphic=True is for functions from complex numbers to complex numbers\n"
                f"{in_full(self.what.f)} is none here: leave it out (docs/errors.md#complex)"
            )
        if into and out and not self.what.holomorphic:
            raise TraceError(
                f"the Jacobian of {in_full(self.what.f)} takes complex numbers to complex numbers\n"
                "say holomorphic=True if the function is, or differentiate real and imaginary part "
                "(docs/errors.md#complex)"
            )

    def twice(self, leaf: Leaf) -> bool:
        """Whether a leaf needs the units 1 and i."""
        return np.iscomplexobj(leaf.value) and not self.what.holomorphic

    def layout(self, units: list[Leaf]) -> dict[int, tuple[int, int]]:
        """Where the columns of each leaf begin and end."""
        found, start = {}, 0
        for leaf in units:
            stop = start + int(np.size(leaf.value)) * (1 + self.twice(leaf))
            found[id(leaf)] = (start, stop)
            start = stop
        self.count = start
        return found

    def do(self, fn: Any, *args: Any, **kwargs: Any) -> Op:
        value = fn(*primal(args), **primal(kwargs))
        return append_saved(self.tracer.tape, fn, args, kwargs, value, self.site)

    def computed(self) -> dict[Op, Any]:
        """For each variable on the other side its derivatives by all units, along a leading axis."""
        sources, targets = (self.ins, self.outs) if self.forward else (self.outs, self.ins)
        wanted: list[Op] = list(dict.fromkeys(x.op for x in targets if x.op is not None))
        scratch = Tape()
        dummies: dict[int, Input] = {}
        seeds: list[tuple[Op, Any]] = []
        for leaf in sources:
            value = type_of(leaf)(0) if number(leaf.value) else np.zeros_like(leaf.value)
            if isinstance(leaf.value, np.generic):
                value = value[()]
            dummy = Input("unit", value, scratch)
            dummies[id(leaf)] = dummy
            scratch.ops.append(dummy)
            assert leaf.op is not None
            seeds.append((leaf.op, dummy))
        try:
            with forgiving(self.tracer):
                found, momentary = self.swept(scratch, seeds, wanted)
        except Late:  # a pullback that must run in this run, once for each column
            return self.one_by_one(seeds, wanted)
        if momentary:
            return self.one_by_one(seeds, wanted)
        scratch.result = found
        batch = Batch(self.tracer.tape, self.site, self.count)
        unit = self.do(np.eye, self.count) if self.count else None
        for leaf in sources:
            batch.columns[dummies[id(leaf)]] = self.unit_vectors(leaf, unit)
        batch.run(pruned(scratch).ops)
        return {
            op: batch.full(d) if isinstance(d, Op) else d
            for op, d in zip(wanted, found, strict=True)
        }

    def swept(
        self, tape: Tape, seeds: list[tuple[Op, Any]], wanted: list[Op]
    ) -> tuple[list[Any], str]:
        """One sweep for one column."""
        if self.forward:
            machine: Any = Pusher(tape, self.site)
            found = machine.sweep(self.ops, seeds, wanted)
        else:
            machine = Recorded(tape, self.site)
            found = sweep(self.ops, wanted, seeds, machine)
        self.looked.update(machine.looked)
        self.momentary = self.momentary or machine.momentary
        return found, machine.momentary

    def unit_vectors(self, leaf: Leaf, unit: Op | None) -> Op:
        """The columns of one leaf: ones in its own block, zeros elsewhere."""
        start, stop = self.units[id(leaf)]
        kind = kind_of(leaf)
        shape = (self.count, *np.shape(leaf.value))
        if unit is None or start == stop:
            return self.do(np.zeros, shape, kind)
        if self.twice(leaf):
            half = (start + stop) // 2
            real = self.do(operator.getitem, unit, (slice(None), slice(start, half)))
            turned = self.do(operator.getitem, unit, (slice(None), slice(half, stop)))
            part = self.do(operator.add, real, self.do(operator.mul, turned, 1j))
        elif stop - start == self.count:
            part = unit
        else:
            part = self.do(operator.getitem, unit, (slice(None), slice(start, stop)))
        if part.value.dtype != kind:
            part = self.do(cast, part, kind)
        return self.do(np.reshape, part, shape)

    def one_by_one(self, seeds: list[tuple[Op, Any]], wanted: list[Op]) -> dict[Op, Any]:
        """A sweep for each column, where a rule decides by the values of tangents or cotangents."""
        sources = self.ins if self.forward else self.outs
        eye = self.do(np.eye, self.count)
        columns = [self.unit_vectors(leaf, eye) for leaf in sources]
        rows: dict[Op, list[Any]] = {op: [] for op in wanted}
        for i in range(self.count):
            now = [
                (op, self.do(*one_of(c, i, unit.value)))
                for (op, unit), c in zip(seeds, columns, strict=True)
            ]
            for op, d in zip(wanted, self.swept(self.tracer.tape, now, wanted)[0], strict=True):
                rows[op].append(d)
        return {op: self.stacked(op, parts) for op, parts in rows.items()}

    def stacked(self, op: Op, parts: list[Any]) -> Any:
        if all(d is None for d in parts):
            return None
        zero = np.zeros_like(op.value)
        return self.do(np.stack, [zero if d is None else d for d in parts])

    def block(self, out: Leaf, into: Leaf) -> Any:
        """The derivatives of one leaf of the result by one leaf of an argument."""
        shape = (*np.shape(out.value), *np.shape(into.value))
        plain = number(out.value) and number(into.value)
        kind = np.result_type(kind_of(out), kind_of(into))
        mine, other = (into, out) if self.forward else (out, into)
        whole = None if other.op is None or mine.op is None else self.found.get(other.op)
        if whole is None:
            zero = np.zeros(shape, kind)[()]
            return zero.item() if plain else zero
        if not isinstance(whole, Op):  # the same number for all columns
            whole = self.do(np.full, (self.count, *np.shape(other.value)), whole)
        start, stop = self.units[id(mine)]
        if self.twice(mine):
            half = (start + stop) // 2
            real, turned = self.rows(whole, start, half), self.rows(whole, half, stop)
            part = self.do(operator.sub, real, self.do(operator.mul, turned, 1j))
        else:
            part = self.rows(whole, start, stop)
        if part.value.dtype != kind:
            part = self.do(cast, part, kind)
        if self.forward and np.ndim(out.value):
            side = int(np.size(into.value)), int(np.size(out.value))
            part = self.do(np.transpose, self.do(np.reshape, part, side))
        part = self.do(np.reshape, part, shape)
        if not shape:
            part = self.do(operator.getitem, part, ())
        box = box_of(self.tracer, part)
        return calls.call(self.tracer, self.site, type_of(out, into), (box,), {}) if plain else box

    def rows(self, whole: Op, start: int, stop: int) -> Op:
        if (start, stop) == (0, self.count):
            return whole
        return self.do(operator.getitem, whole, slice(start, stop))


def count(parts: list[Leaf]) -> int:
    return sum(int(np.size(leaf.value)) for leaf in parts)


def number(value: Any) -> bool:
    """Whether a value is a number of Python's own."""
    return is_one_of(type(value), (int, float, complex))


def type_of(*parts: Leaf) -> type:
    return complex if any(type(x.value) is complex for x in parts) else float


def kind_of(leaf: Leaf) -> Any:
    """The dtype of a leaf's derivatives."""
    value = leaf.value
    return value.dtype if isinstance(value, (np.ndarray, np.generic)) else np.dtype(type_of(leaf))


@overload
def jacobian(
    f: Callable[Concatenate[V, P], N],
    argnums: Literal[0] = 0,
    mode: str | None = None,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[V, P], V]: ...
@overload
def jacobian(
    f: Callable[Concatenate[D, P], R],
    argnums: Literal[0] = 0,
    mode: str | None = None,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[D, P], R]: ...
@overload
def jacobian(
    f: Callable[Concatenate[S, V, P], N],
    argnums: Literal[1],
    mode: str | None = None,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[S, V, P], V]: ...
@overload
def jacobian(
    f: Callable[Concatenate[S, D, P], R],
    argnums: Literal[1],
    mode: str | None = None,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[S, D, P], R]: ...
@overload
def jacobian(
    f: Callable[P, R],
    argnums: Argnums = 0,
    mode: str | None = None,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[P, Any]: ...
@overload
def jacobian(
    f: Callable[Concatenate[V, P], tuple[N, Aux]],
    argnums: Literal[0] = 0,
    mode: str | None = None,
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[V, P], tuple[V, Aux]]: ...
@overload
def jacobian(
    f: Callable[Concatenate[D, P], tuple[R, Aux]],
    argnums: Literal[0] = 0,
    mode: str | None = None,
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[D, P], tuple[R, Aux]]: ...
@overload
def jacobian(
    f: Callable[Concatenate[S, V, P], tuple[N, Aux]],
    argnums: Literal[1],
    mode: str | None = None,
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[S, V, P], tuple[V, Aux]]: ...
@overload
def jacobian(
    f: Callable[Concatenate[S, D, P], tuple[R, Aux]],
    argnums: Literal[1],
    mode: str | None = None,
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[S, D, P], tuple[R, Aux]]: ...
@overload
def jacobian(
    f: Callable[P, tuple[R, Aux]],
    argnums: Argnums = 0,
    mode: str | None = None,
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[P, tuple[Any, Aux]]: ...
@intrinsic
@refusing
def jacobian(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    mode: str | None = None,
    holomorphic: bool = False,
    has_aux: bool = False,
) -> Callable[..., Any]:
    """The function that returns the Jacobian of ``f`` with respect to the arguments that ``argnums`` names.

    For an array ``x`` and a result ``y`` it is an array of the shape ``y.shape + x.shape``. For structures it is the
    structure of the result with, in the place of each leaf, the structure of the argument, or for several argnums a
    tuple of these. An argnum is a number or the name of a parameter, as in `grad`.

    In the mode ``"forward"`` there is a column for each number that goes in, in ``"reverse"`` a row for each that
    comes out; ``None`` takes what is fewer. The function is run once, and all columns are computed as one.

    Of a real function of complex numbers the entries are the gradients that `grad` gives. A function from complex to
    complex numbers must be declared ``holomorphic``; the entries are its complex derivatives.

    With ``has_aux`` the function returns ``(value, aux)``; the Jacobian is that of the value, and what comes back is
    the pair ``(jacobian, aux)``.

    Raises `TraceError` for a mode or argnums that do not exist, and what `jvp` and `pullback` raise.

    >>> import numpy as np
    >>> jacobian(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0]))
    array([[3., 0., 1.],
           [0., 3., 2.]])
    """
    return Whole(Jacobian(f, argnums, mode, holomorphic, has_aux)).made()


@overload
def jacfwd(
    f: Callable[Concatenate[V, P], N],
    argnums: Literal[0] = 0,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[V, P], V]: ...
@overload
def jacfwd(
    f: Callable[Concatenate[D, P], R],
    argnums: Literal[0] = 0,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[D, P], R]: ...
@overload
def jacfwd(
    f: Callable[Concatenate[S, V, P], N],
    argnums: Literal[1],
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[S, V, P], V]: ...
@overload
def jacfwd(
    f: Callable[Concatenate[S, D, P], R],
    argnums: Literal[1],
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[S, D, P], R]: ...
@overload
def jacfwd(
    f: Callable[P, R],
    argnums: Argnums = 0,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[P, Any]: ...
@overload
def jacfwd(
    f: Callable[Concatenate[V, P], tuple[N, Aux]],
    argnums: Literal[0] = 0,
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[V, P], tuple[V, Aux]]: ...
@overload
def jacfwd(
    f: Callable[Concatenate[D, P], tuple[R, Aux]],
    argnums: Literal[0] = 0,
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[D, P], tuple[R, Aux]]: ...
@overload
def jacfwd(
    f: Callable[Concatenate[S, V, P], tuple[N, Aux]],
    argnums: Literal[1],
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[S, V, P], tuple[V, Aux]]: ...
@overload
def jacfwd(
    f: Callable[Concatenate[S, D, P], tuple[R, Aux]],
    argnums: Literal[1],
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[S, D, P], tuple[R, Aux]]: ...
@overload
def jacfwd(
    f: Callable[P, tuple[R, Aux]],
    argnums: Argnums = 0,
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[P, tuple[Any, Aux]]: ...
@intrinsic
@refusing
def jacfwd(
    f: Callable[..., Any], argnums: Argnums = 0, holomorphic: bool = False, has_aux: bool = False
) -> Callable[..., Any]:
    """`jacobian` in forward mode: a column for each number that goes in.

    >>> import numpy as np
    >>> jacfwd(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0])).tolist()
    [[3.0, 0.0, 1.0], [0.0, 3.0, 2.0]]
    """
    return Whole(Jacobian(f, argnums, FORWARD, holomorphic, has_aux)).made()


@overload
def jacrev(
    f: Callable[Concatenate[V, P], N],
    argnums: Literal[0] = 0,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[V, P], V]: ...
@overload
def jacrev(
    f: Callable[Concatenate[D, P], R],
    argnums: Literal[0] = 0,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[D, P], R]: ...
@overload
def jacrev(
    f: Callable[Concatenate[S, V, P], N],
    argnums: Literal[1],
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[S, V, P], V]: ...
@overload
def jacrev(
    f: Callable[Concatenate[S, D, P], R],
    argnums: Literal[1],
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[S, D, P], R]: ...
@overload
def jacrev(
    f: Callable[P, R],
    argnums: Argnums = 0,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> Callable[P, Any]: ...
@overload
def jacrev(
    f: Callable[Concatenate[V, P], tuple[N, Aux]],
    argnums: Literal[0] = 0,
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[V, P], tuple[V, Aux]]: ...
@overload
def jacrev(
    f: Callable[Concatenate[D, P], tuple[R, Aux]],
    argnums: Literal[0] = 0,
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[D, P], tuple[R, Aux]]: ...
@overload
def jacrev(
    f: Callable[Concatenate[S, V, P], tuple[N, Aux]],
    argnums: Literal[1],
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[S, V, P], tuple[V, Aux]]: ...
@overload
def jacrev(
    f: Callable[Concatenate[S, D, P], tuple[R, Aux]],
    argnums: Literal[1],
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[S, D, P], tuple[R, Aux]]: ...
@overload
def jacrev(
    f: Callable[P, tuple[R, Aux]],
    argnums: Argnums = 0,
    holomorphic: bool = False,
    *,
    has_aux: Literal[True],
) -> Callable[P, tuple[Any, Aux]]: ...
@intrinsic
@refusing
def jacrev(
    f: Callable[..., Any], argnums: Argnums = 0, holomorphic: bool = False, has_aux: bool = False
) -> Callable[..., Any]:
    """`jacobian` in reverse mode: a row for each number that comes out.

    >>> import numpy as np
    >>> jacrev(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0])).tolist()
    [[3.0, 0.0, 1.0], [0.0, 3.0, 2.0]]
    """
    return Whole(Jacobian(f, argnums, REVERSE, holomorphic, has_aux)).made()


@overload
def hessian(
    f: Callable[Concatenate[V, P], N], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Callable[Concatenate[V, P], V]: ...
@overload
def hessian(
    f: Callable[Concatenate[D, P], N],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[D, P], N]: ...
@overload
def hessian(
    f: Callable[Concatenate[S, V, P], N],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[S, V, P], V]: ...
@overload
def hessian(
    f: Callable[Concatenate[S, D, P], N],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[S, D, P], N]: ...
@overload
def hessian(
    f: Callable[P, N], argnums: Argnums = 0, has_aux: Literal[False] = False
) -> Callable[P, Any]: ...
@overload
def hessian(
    f: Callable[Concatenate[V, P], tuple[N, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[V, P], tuple[V, Aux]]: ...
@overload
def hessian(
    f: Callable[Concatenate[D, P], tuple[N, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[D, P], tuple[N, Aux]]: ...
@overload
def hessian(
    f: Callable[Concatenate[S, V, P], tuple[N, Aux]],
    argnums: Literal[1],
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[S, V, P], tuple[V, Aux]]: ...
@overload
def hessian(
    f: Callable[Concatenate[S, D, P], tuple[N, Aux]],
    argnums: Literal[1],
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[S, D, P], tuple[N, Aux]]: ...
@overload
def hessian(
    f: Callable[P, tuple[N, Aux]], argnums: Argnums = 0, *, has_aux: Literal[True]
) -> Callable[P, tuple[Any, Aux]]: ...
@intrinsic
@refusing
def hessian(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that returns the second derivatives of ``f`` with respect to the arguments ``argnums``.

    It is the Jacobian of the Jacobian, forward over reverse. For a number that depends on an array ``x`` it is an
    array of the shape ``x.shape + x.shape``; structures are those of `jacobian`, twice. With ``has_aux`` the function
    returns ``(value, aux)``, and what comes back is the pair ``(hessian, aux)``.

    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    first = Whole(Jacobian(f, argnums, REVERSE, False, has_aux)).made()
    return Whole(Hessian(first, argnums, FORWARD, False, has_aux)).made()


@overload
def hvp(
    f: Callable[..., N],
    primals: tuple[A],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> A: ...
@overload
def hvp(
    f: Callable[..., N], primals: T, tangents: Sequence[Any], has_aux: Literal[False] = False
) -> T: ...
@overload
def hvp(
    f: Callable[..., tuple[N, Aux]],
    primals: tuple[A],
    tangents: Sequence[Any],
    *,
    has_aux: Literal[True],
) -> tuple[A, Aux]: ...
@overload
def hvp(
    f: Callable[..., tuple[N, Aux]], primals: T, tangents: Sequence[Any], *, has_aux: Literal[True]
) -> tuple[T, Aux]: ...
@intrinsic
def hvp(
    f: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> Any:
    """The Hessian of ``f``, which must return a real number, times a vector; the Hessian is never formed.

    It is the derivative of the gradient along ``tangents``, by forward over reverse: a small multiple of the cost of
    ``f``. For one primal the product has its structure; for several it is a tuple with one entry for each. With
    ``has_aux`` the function returns ``(value, aux)``, and what comes back is the pair ``(product, aux)``.

    Raises what `jvp` and `grad` raise.

    >>> import numpy as np
    >>> hvp(lambda x: x[0] ** 2 * x[1], (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
    array([4., 2.])
    """
    try:
        check_sequences(primals, tangents, "hvp")
        transform = Product(f, len(primals), has_aux)
        if active.tracer is not None:
            return transform(primals, tangents)
        kind = AskedHvpAux if has_aux else AskedHvp
        return along(kind, f, transform, tuple(primals), tuple(tangents))
    except BaseException as error:
        fold(error)
        raise


class AskedHvp(Asked):
    __slots__ = ()


class AskedHvpAux(Asked):
    __slots__ = ()


class Product(Transform):
    """The transform of `hvp`; its options are the number of the primals, and whether there is an aux."""

    __slots__ = ()
    name = "hvp"

    def __init__(self, f: Callable[..., Any], count: int, has_aux: bool) -> None:
        super().__init__(f, (count, has_aux))

    def inside(self, tracer: Tracer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        count, has_aux = self.options
        slope = grad(self.f, 0 if count == 1 else tuple(range(count)), has_aux)
        _, *found = Pushed(slope, has_aux).inside(tracer, args, kwargs)
        return tuple(found) if has_aux else found[0]
