"""``linearize``: the value of a function, and its derivative at that point as a linear function.

Words
-----
moving     an operation that depends on the tangents. All others are done once, with the function.
residual   a value that the moving operations need; copied where somebody outside could write to it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Literal, TypeVarTuple, overload

import numpy as np

from ..tracer.active import active
from ..tracer.entrances import entrance
from ..tracer.errors import TangentError, TraceError
from ..tracer.intrinsic import intrinsic
from ..tracer.kinds import isinstance
from ..tracer.reads import Reads
from ..tracer.run import Run, describe, run
from ..tracer.session import Tracer
from ..tracer.source import compiled
from ..tracer.structure import Leaf, Sealed, leaves, positions, rebuild
from ..tracer.tape import NOWHERE, Input, KeywordOp, Op, Tape, append, substitute
from ..tracer.tracebacks import fold
from .api import inner_run
from .argnums import checked_aux, leave_aux, options_text
from .cache import Entry
from .cotangents import refuse_sealed_between, shaped
from .direct import Direct, found, state_of
from .dispatch import written
from .fold.along import along
from .fold.deferred import DEFERRED, ROWS, SEVERAL, Deferred, Several
from .fold.multiplied import MAKERS, PULLBACK, Multiplied
from .fold.rows import MOST, along_several
from .forward import Pusher
from .loops import Miss
from .programs import Builder, Program, Unfit
from .pullbacks import revived
from .silence import ignoring, restore
from .simplify import pruned, simplified
from .skeleton import own_copy
from .tangents import pushed, tangent_seeds
from .typed import Aux, R

Ts = TypeVarTuple("Ts")


@overload
def linearize(
    f: Callable[[*Ts], tuple[R, Aux]], *primals: *Ts, has_aux: Literal[True]
) -> tuple[R, Callable[[*Ts], R], Aux]: ...
@overload
def linearize(
    f: Callable[[*Ts], R], *primals: *Ts, has_aux: Literal[False] = False
) -> tuple[R, Callable[[*Ts], R]]: ...
@intrinsic  # type: ignore[misc]
def linearize(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``f(*primals)``, and the linear function from tangents of the primals to that of the value.

    ``f`` is run once; ``f_jvp(*tangents)`` does nothing but the derivative, as often as it is called, and answers for
    the moment at which ``linearize`` was called. Tangents are as in `jvp`. With ``has_aux`` the function returns the
    pair ``(value, aux)``, of which the value alone is differentiated, and what comes back is ``(value, f_jvp, aux)``.

    >>> value, f_jvp = linearize(lambda x, y: x * y, 2.0, 3.0)
    >>> value, f_jvp(1.0, 0.0), f_jvp(0.0, 1.0)
    (6.0, 3.0, 2.0)
    """
    try:
        checked_aux(has_aux)
        value, f_jvp = answered(LinearizedAux if has_aux else Linearized, f, primals)
        return (value[0], f_jvp, value[1]) if has_aux else (value, f_jvp)
    except BaseException as error:
        fold(error)
        raise


def answered(
    kind: type[Linearized], f: Callable[..., Any], primals: tuple[Any, ...]
) -> tuple[Any, Callable[..., Any]]:
    """What ``f`` returns and its derivative: from inside a traced function, by a program, or by tracing."""
    if active.tracer is not None:
        return kind(f, ()).inside(primals, {})
    program = found(kind.table, f)
    if program is None:
        return kind(f, ()).dispatch(primals, {}, [], None)  # type: ignore[no-any-return]
    state = state_of(kind, f)
    answer: tuple[Any, Callable[..., Any]] = program.alone(state, *primals)
    if state.hits:
        program.hits += 1
    return answer


class Linearized(Direct):
    """Answers calls of `linearize`."""

    __slots__ = ()
    has_aux = False

    def title(self) -> str:
        return written("linearize", self.f, options_text(has_aux=self.has_aux))

    def traced(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], reads: Reads | None, drawn: list[Any]
    ) -> tuple[Any, Run]:
        done = run(self.f, args, kwargs, protect=True, forward=True, reads=reads, drawn=drawn)
        if self.has_aux:
            leave_aux(self.f, done)
        own = own_copy(done, reads)
        value = done.value
        own.close()
        return (value, Linear(own, own.tape.ops)), done

    def roll(self, entry: Any, done: Run) -> None:
        """Leave the loops as they are: tangents are carried along the operations of each round."""

    def build(self, done: Run) -> Program:
        name = getattr(self.f, "__name__", "f")
        return LinearBuilder(done, name, self.entry().names).build_linear(KeptLinear)

    def folded(
        self, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], drawn: list[Any]
    ) -> Any:
        keys = range(len(args))
        return self.by_region(entry, self.f, args, keys, LINEAR, drawn, self.has_aux)

    def inside(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Callable[..., Any]]:
        tracer = active.tracer
        assert tracer is not None
        done, start, stop = inner_run(tracer, self.f, args, kwargs, forward=True)
        if self.has_aux:
            leave_aux(self.f, done)
        return done.value, Linear(done, tracer.tape.ops[start:stop], tracer)


class LinearizedAux(Linearized):
    """The same of functions that return an aux beside their value."""

    __slots__ = ()
    has_aux = True


class Linear:
    """The derivative of a function at one point; see `linearize`."""

    def __init__(self, done: Run, ops: list[Op], tracer: Tracer | None = None) -> None:
        self.done = done
        self.ops = ops
        self.tracer = tracer
        self.functions: dict[Any, Callable[..., Any] | None] = {}  # by the leaves with a tangent

    def __repr__(self) -> str:
        tape = self.traced
        place = f" ({tape.site})" if tape.site.filename else ""
        return f"<derivative of {tape.name}{place}>"

    @property
    def traced(self) -> Tape:
        """The tape of the run, which may have no values."""
        return self.done.tape

    @entrance
    def __call__(self, *tangents: Any) -> Any:
        return self.answer(self.seeds(self.done, tangents))

    def seeds(self, done: Run, tangents: tuple[Any, ...]) -> list[tuple[Op, Any]]:
        """The leaves of the arguments with their tangents."""
        title = f"jvp({done.tape.name})"
        if len(tangents) != len(done.args):
            raise TangentError(
                f"{title}: there are {len(done.args)} primals, but {len(tangents)} tangents\n"
                "give one tangent for each argument"
            )
        return tangent_seeds(active.tracer, done, tangents, title)

    def answer(self, seeds: list[tuple[Op, Any]]) -> Any:
        """The tangent of the result."""
        done = self.done
        if self.tracer is not None and active.tracer is not self.tracer:
            raise TraceError(
                "this function was made inside a traced function whose run has ended\n"
                "call it there, and let that function return what it gives"
            )
        if active.tracer is not None and (
            self.tracer is not None or any(isinstance(t, Op) for _, t in seeds)
        ):
            return pushed(active.tracer, done, self.ops, seeds)
        key = tuple([op for op, _ in seeds])
        if key not in self.functions:
            refuse_sealed_between(done.tape, self.ops, [], done.result, key)
            self.functions[key] = self.compiled(seeds)
        function = self.functions[key]
        with np.errstate(all="ignore"):
            found = (
                self.swept(Tape(), seeds)[0]
                if function is None
                else function(*[t for _, t in seeds])
            )
        known = dict(zip(self.wanted(), found, strict=True))
        return rebuild(done.result, lambda leaf: shaped(leaf, known.get(leaf.op)))

    def wanted(self) -> list[Any]:
        return list(dict.fromkeys(x.op for x in leaves(self.done.result) if x.op is not None))

    def swept(self, tape: Tape, seeds: list[tuple[Op, Any]]) -> tuple[list[Any], str]:
        """The tangents of the results, as values; and whose rule decided by the values of tangents."""
        pusher = Pusher(tape, self.done.tape.site, fixed=True)
        found = pusher.sweep(self.ops, seeds, self.wanted())
        return [t.value if isinstance(t, Op) else t for t in found], pusher.momentary

    def compiled(self, seeds: list[tuple[Op, Any]]) -> Callable[..., Any] | None:
        """The sweep as a function of the tangents; None where it holds for these tangents only."""
        tape = Tape("f_jvp", self.done.tape.site)
        tape.ops = [Input(f"t{i}", t, tape) for i, (_, t) in enumerate(seeds)]
        inputs = list(tape.ops)
        pusher = Pusher(tape, tape.site, fixed=True)
        given = [(op, t) for (op, _), t in zip(seeds, inputs, strict=True)]
        tape.result = pusher.sweep(self.ops, given, self.wanted())
        if pusher.momentary:
            return None
        moving = moving_of(tape.ops, inputs)

        def fixed(x: Op) -> Any:
            return x if x in moving else x.value

        tape.ops = [op for op in tape.ops if op in moving]
        for op in tape.ops:
            op.args = substitute(op.args, fixed)
            if isinstance(op, KeywordOp):
                op.kwargs = substitute(op.kwargs, fixed)  # type: ignore[misc]
            a = op.args[0] if op.fn is np.linalg.solve else None
            if isinstance(a, np.ndarray) and a.ndim == 2:
                op.fn, op.args = solved, (Solver(a), op.args[1])
        tape.result = substitute(tape.result, fixed)
        return compiled(pruned(simplified(tape)), "f_jvp")


intrinsic(Linear.__call__)


class KeptLinear(Linear):
    """One whose sweep is a program."""

    def __init__(
        self,
        program: Program,
        inputs: tuple[Any, ...],
        residuals: tuple[Any, ...],
        drawn: Any,
    ) -> None:
        self.program = program
        self.inputs = inputs
        self.residuals = residuals
        self.drawn = drawn
        self.tracer = None
        self.functions = {}

    @functools.cached_property
    def done(self) -> Run:  # type: ignore[override]
        return revived(self.program, self.inputs, self.drawn)

    @property
    def ops(self) -> list[Op]:  # type: ignore[override]
        return self.done.tape.ops

    @property
    def traced(self) -> Tape:
        skeleton = self.program.skeleton
        return self.done.tape if skeleton is None else skeleton.tape

    def __call__(self, *tangents: Any) -> Any:
        try:
            return self.along(tangents)
        except BaseException as error:
            fold(error)
            raise

    def along(self, tangents: tuple[Any, ...]) -> Any:
        """The tangent of the result."""
        program = self.program
        given = tangents
        if program.leaf is not float or len(given) != program.seeds or {*map(type, given)} != FLOAT:
            assert program.skeleton is not None
            seeds = self.seeds(program.skeleton, tangents)
            if len(seeds) != program.seeds or any(isinstance(t, Op) for _, t in seeds):
                return self.answer(self.seeds(self.done, tangents))
            given = tuple([t for _, t in seeds])
        before = None if program.quiet else ignoring()
        try:
            assert program.back is not None
            return program.back(self.inputs, self.residuals, *given)
        except Miss:  # a value of another type than in the traced run
            pass
        finally:
            if before is not None:
                restore(before)
        return self.answer(self.seeds(self.done, tangents))


intrinsic(KeptLinear.__call__)
FLOAT = {float}


class Steep(Linear):
    """The derivative of one number, by its gradient, which a folded program gives."""

    def __init__(self, *given: Any) -> None:
        self.back = RunForward(*given)
        self.value, self.gradients = self.back.value, self.back.gradients
        self.tracer = None
        self.functions = {}

    @property
    def done(self) -> Run:  # type: ignore[override]
        return self.back.done

    @property
    def ops(self) -> list[Op]:  # type: ignore[override]
        return self.done.tape.ops

    @property
    def traced(self) -> Tape:
        return Tape(*describe(self.back.f))

    def __reduce__(self) -> Any:
        return Linear, (self.done, self.ops)

    def along(self, tangents: tuple[Any, ...]) -> Any:
        return along(self.value, self.gradients, tangents)

    def __call__(self, *tangents: Any) -> Any:
        if len(tangents) == len(self.gradients):
            try:
                return self.along(tangents)
            except Miss:
                pass
        try:
            return self.answer(self.seeds(self.done, tangents))
        except BaseException as error:
            fold(error)
            raise


class SteepSeveral(Steep):
    """The same of several numbers, each by its gradient, which a folded program gives as it is asked for."""

    def __init__(self, *given: Any) -> None:
        self.back = self.several = DeferredForward(*given)
        self.value = self.back.value
        self.gradients = self.back.args
        self.tracer = None
        self.functions = {}

    @property
    def before(self) -> Any:
        """What `Deferred.gives_what` looks at."""
        return self.several.before

    def along(self, tangents: tuple[Any, ...]) -> Any:
        return along_several(self.value, self.several.row, tangents)


class RunForward(Multiplied):
    """A pullback whose function is run for forward mode, where more is asked."""

    asked = "linearize"
    how: ClassVar[dict[str, Any]] = {"forward": True}


class DeferredForward(Deferred, RunForward):
    """The same of several numbers."""

    def row(self, *seeds: Any) -> tuple[Any, ...]:
        """The gradients for these cotangents of the leaves; raises `Miss`."""
        found = self.swept_back(seeds)
        if found is None:
            raise Miss
        return found


intrinsic(Steep.__call__)
LINEAR = PULLBACK.replace("{multiplied}", "{steep}")
MAKERS.update(steep=Steep, steep_several=SteepSeveral)
ROWS.add(LINEAR)
SEVERAL[LINEAR] = Several(DEFERRED.replace("{deferred}", "{steep_several}"), MOST)


class LinearBuilder(Builder):
    """Writes the program of one run with the forward sweep behind it."""

    def swept(
        self, tape: Tape, wrt: list[Op], seeds: list[tuple[Op, Any]]
    ) -> tuple[dict[Op, Any], Iterable[Op]]:
        pusher = Pusher(tape, NOWHERE)
        found = dict(zip(wrt, pusher.sweep(self.done.tape.ops, seeds, wrt), strict=True))
        if pusher.momentary:
            raise Unfit(f"the rule of {pusher.momentary} depends on more than its arguments")
        self.repeated = pusher.recorder.repeated
        return found, pusher.looked

    def build_linear(self, make: Callable[..., Any]) -> Program:
        """Write a program that returns the value and ``make(program, inputs, residuals, drawn)``.

        ``program.back`` is then a function of the residuals and of one tangent for each leaf of the arguments.
        """
        done, program = self.done, self.program
        if any(
            isinstance(x, Sealed) for tree in (done.result, *done.args) for x in positions(tree)
        ):
            raise Unfit(
                "a derivative by what is in an argument, or of what is in the result, is missing"
            )
        into = [leaf for tree in done.args for leaf in leaves(tree) if leaf.op is not None]
        seeds = self.seeded([(leaf.op, leaf.value) for leaf in into])
        wrt = list(dict.fromkeys(x.op for x in leaves(done.result) if x.op is not None))

        def split() -> None:
            fused, found, quiet, drawn = self.best(wrt, seeds)
            share_factors(fused, [d for _, d in seeds])
            moving = moving_of(fused.ops, [d for _, d in seeds])
            first = {*fused.ops} - moving
            self.write_parts(
                make,
                fused,
                first,
                seeds,
                drawn,
                quiet,
                found,
                lambda found: self.gradient(done.result, found),
            )

        self.in_parts(split)
        if all(isinstance(tree, Leaf) and type(tree.value) is float for tree in done.args):
            program.leaf = float
        return program


def moving_of(ops: Iterable[Op], tangents: Iterable[Op]) -> set[Op]:
    """The tangents, and the operations that depend on them."""
    moving = set(tangents)
    for op in ops:
        if op.kind == "call" and not moving.isdisjoint(op.operands()):
            moving.add(op)
    return moving


def share_factors(tape: Tape, tangents: list[Op]) -> None:
    """Let the systems of equations whose matrix does not move have its factors, from where it is known."""
    moving = moving_of(tape.ops, tangents)
    ops, tape.ops = tape.ops, []
    for op in ops:
        a = op.args[0] if op.kind == "call" and op.fn is np.linalg.solve else None
        if op in moving and isinstance(a, Op) and a not in moving and np.ndim(a.value) == 2:
            factors = append(tape, Solver, (a,), {}, Solver(a.value), op.site)
            op.fn, op.args = solved, (factors, op.args[1])
        tape.ops.append(op)


class Solver:
    """``np.linalg.solve`` with one matrix: a large one is factorised once, however many systems there are.

    NumPy gives no factorisation away, so this takes SciPy; where that is not installed, each system costs one.
    """

    def __init__(self, a: Any) -> None:
        self.a = a

    @functools.cached_property
    def factors(self) -> Any:
        if len(self.a) < LARGE:
            return None
        try:
            from scipy.linalg import lu_factor
        except ImportError:
            return None
        return lu_factor(self.a, check_finite=False)


def solved(a: Solver, b: Any) -> Any:
    """The solution of a system of equations."""
    if a.factors is None or np.ndim(b) > 2:
        return np.linalg.solve(a.a, b)
    from scipy.linalg import lu_solve

    return lu_solve(a.factors, b, check_finite=False)


LARGE = 50  # rows; below, a factorisation costs less than what is around it
