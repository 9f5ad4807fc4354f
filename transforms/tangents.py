"""``jvp``: a function and its derivative along a direction.

Words
-----
primals   the arguments at which a function is differentiated.
tangents  the direction: for each of them the derivative of it along the direction, of its structure.
whole     a transform that is traced together with the function that it works on, and answered by one run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from types import FunctionType, MethodType
from typing import Any, Literal, overload

from ..rules.broadcasting import broadcast_like
from ..rules.words import with_article
from ..tracer import places
from ..tracer.active import active
from ..tracer.box import BOXES
from ..tracer.errors import CotangentError, TangentError
from ..tracer.intrinsic import Intrinsic, Made, intrinsic
from ..tracer.kinds import MISSING, is_one_of, isinstance
from ..tracer.reads import Reads
from ..tracer.record import operand
from ..tracer.run import Run, must_be_callable
from ..tracer.session import Tracer
from ..tracer.structure import Leaf, leaves, rebuild
from ..tracer.tape import Op
from ..tracer.tracebacks import fold
from . import lowering
from .api import handed, inner_run, note_decisions
from .argnums import leave_aux
from .cache import Entry, entry_of, key_of
from .cotangents import refuse_sealed_between, seeds_of
from .direct import Direct, found, state_of
from .dispatch import Caller, Dispatcher, traced_run, written
from .fold.along import ALONG, ALONG_AUX
from .forward import Pusher
from .programs import Builder, Program
from .typed import Aux, R


class Transform(Intrinsic):
    """What becomes of a function ``f``: it works on the tape of the run that it is called in."""

    __slots__ = ("f", "options")
    name = ""

    def __init__(self, f: Callable[..., Any], options: tuple[Any, ...] = ()) -> None:
        must_be_callable(f)
        self.f = f
        self.options = options

    def program_key(self) -> Hashable:
        return (type(self).__name__, *self.options, key_of(self.f))

    @property
    def asked(self) -> Callable[..., Any]:
        """The function that a person has asked this of."""
        return self.f

    def title(self) -> str:
        """How a person would write it."""
        return written(self.name, self.f)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        assert active.tracer is not None
        return self.inside(active.tracer, args, kwargs)

    def inside(self, tracer: Tracer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def followed(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], Sequence[int], str, bool] | None:
        """What `Dispatcher.by_region` is asked with: arguments of ``f``, by which of them, a format and the aux."""
        return None


class Once(Caller):
    """Answers one call of a transform."""

    __slots__ = ()

    @property
    def transform(self) -> Transform:
        return self.f.__self__  # type: ignore[attr-defined, no-any-return]

    def title(self) -> str:
        return self.transform.title()

    def entry(self) -> Entry:
        return entry_of(self.program_key(), self.transform.f, self.title)

    def traced(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], reads: Reads | None, drawn: list[Any]
    ) -> tuple[Any, Run | None]:
        done = traced_run(self.f, args, kwargs, reads=reads, drawn=drawn)
        return done.value, done

    def build(self, done: Run) -> Program:
        return Builder(done, self.transform.name, self.entry().names).build([], [], "{value}")


class Whole(Once, Dispatcher):
    """The state behind a function that a transform has made."""

    __slots__ = ()

    def __init__(self, transform: Transform) -> None:
        super().__init__(
            transform.__call__, transform.name, transform.options, inner=transform.asked
        )

    def anew(self) -> tuple[Any, ...]:
        transform = self.transform
        return whole_of, (type(self), type(transform), transform.f, transform.options)

    def inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.f(*args, **kwargs)

    def folded(
        self, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], drawn: list[Any]
    ) -> Any:
        f = self.transform.f
        known = None
        if type(f) in (FunctionType, MethodType):
            known = self.transform.followed(args, kwargs)
        if known is None:
            return MISSING
        given, keys, answer, aux = known
        return self.by_region(entry, f, given, keys, answer, drawn, aux)


def whole_of(
    state: Callable[[Transform], Whole], kind: Callable[..., Transform], f: Any, options: Any
) -> Made:
    """A function that is unpickled."""
    return state(kind(f, *options)).made()


# --------------------------------------------------------------------------------------------------- jvp


class Pushed(Transform):
    """The transform of `jvp`; its option is whether the function returns an aux beside its value."""

    __slots__ = ()
    name = "jvp"

    def __init__(self, f: Callable[..., Any], has_aux: bool = False) -> None:
        super().__init__(f, (has_aux,))

    def inside(self, tracer: Tracer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        primals, tangents = args
        pusher = Pusher(tracer.tape, places.user_site())

        def begin(done: Run) -> Pusher:
            pusher.tangents.update(tangent_seeds(tracer, done, tangents, self.title()))
            return pusher

        done, start, stop = inner_run(tracer, self.f, tuple(primals), {}, begin)
        value, ops = done.value, tracer.tape.ops[start:stop]
        if not self.options[0]:
            return value, pushed(tracer, done, ops, [], pusher)
        leave_aux(self.f, done)
        return value[0], pushed(tracer, done, ops, [], pusher), value[1]


class Asked(Once, Direct):
    """Answers one call of a transform along a direction."""

    __slots__ = ()

    @property
    def asked(self) -> Callable[..., Any]:
        return self.transform.f


class AskedJvp(Asked):
    __slots__ = ()
    has_aux = False

    def followed(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        primals: tuple[Any, ...] = args[0]
        return primals

    def folded(
        self, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], drawn: list[Any]
    ) -> Any:
        f, keys = self.transform.f, range(len(args[0]))
        answer = ALONG_AUX if self.has_aux else ALONG
        return self.by_region(entry, f, args, keys, answer, drawn, self.has_aux)


class AskedJvpAux(AskedJvp):
    __slots__ = ()
    has_aux = True


def along(
    kind: type[Asked],
    f: Any,
    transform: Transform,
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
) -> Any:
    """Answer a call."""
    state = state_of(kind, transform.__call__)
    program = found(kind.table, f)
    if program is None:
        return state.dispatch((primals, tangents), {}, [], None)
    answer = program.alone(state, primals, tangents)
    if state.hits:
        program.hits += 1
    return answer


@overload
def jvp(
    f: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    f: Callable[..., tuple[R, Aux]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[R, R, Aux]: ...
@intrinsic
def jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """The value of ``f(*primals)`` and its derivative along ``tangents``: the Jacobian times a vector.

    Returns ``(value, tangent)``. There is one tangent for each primal, of its structure, shapes and kind; ``None``
    stands for zero, and is the tangent of strings, bools and integer arrays. The tangent of the value has the value's
    structure. The cost is a small multiple of that of ``f``, however many results it has. With ``has_aux`` the function
    returns the pair ``(value, aux)``, of which the value alone is differentiated, and what comes back is
    ``(value, tangent, aux)``.

    Raises `TangentError` for tangents that do not fit, `NoRuleError` where a callable without a rule is in the way,
    `TraceError` for what cannot be traced, and whatever ``f`` itself raises.

    >>> jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 0.5))
    (6.0, 4.0)
    """
    try:
        check_sequences(primals, tangents, "jvp")
        if active.tracer is not None:
            return Pushed(f, has_aux)(primals, tangents)
        kind = AskedJvpAux if has_aux else AskedJvp
        return along(kind, f, Pushed(f, has_aux), tuple(primals), tuple(tangents))
    except BaseException as error:
        fold(error)
        raise


def check_sequences(primals: Any, tangents: Any, transform: str) -> None:
    if type(primals) is type(tangents) is tuple and len(primals) == len(tangents):
        return
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise TangentError(
                f"{name} must be a tuple with one entry for each argument, not {with_article(type(given).__name__)}\n"
                f"write {transform}(f, (x,), (v,)), or for two arguments {transform}(f, (x, y), (v, w))"
            )
    if len(primals) != len(tangents):
        raise TangentError(
            f"there are {len(primals)} primals, but {len(tangents)} tangents\n"
            f"give one tangent for each argument: {transform}(f, (x, y), (v, w))"
        )


def tangent_seeds(
    tracer: Tracer | None, done: Run, tangents: Sequence[Any], title: str
) -> list[tuple[Op, Any]]:
    """Pair each differentiable leaf of the arguments with its tangent."""
    seeds: list[tuple[Op, Any]] = []
    try:
        for i, (tree, t) in enumerate(zip(done.args, tangents, strict=True)):
            seeds += seeds_of(tree, t, f"tangent {i}")
    except CotangentError as error:
        raise TangentError(
            f"{title}: {error}\n"
            "a tangent has the structure and the shapes of its primal, and None is a zero (docs/errors.md#tangenterror)"
        ) from None
    if tracer is None:
        return seeds
    return [(op, tangent_op(tracer, op.value, t)) for op, t in seeds]


def tangent_op(tracer: Tracer, value: Any, t: Any) -> Any:
    """A tangent as the tape holds it, of the kind and the dtype of the value."""
    if is_one_of(type(t), BOXES):
        like = 0.0 if type(value) is int else value
        t = lowering.run(broadcast_like, (t, like), {})
    return operand(t, [])


def pushed(
    tracer: Tracer,
    done: Run,
    ops: list[Op],
    seeds: list[tuple[Op, Any]],
    pusher: Pusher | None = None,
) -> Any:
    """Run the forward sweep on the active tape; the tangent of the result."""
    site = places.user_site()
    pusher = Pusher(tracer.tape, site) if pusher is None else pusher
    moving = [*pusher.tangents, *[op for op, _ in seeds]]
    refuse_sealed_between(done.tape, ops, [], done.result, moving)
    wanted = list(dict.fromkeys(x.op for x in leaves(done.result) if x.op is not None))
    found = dict(zip(wanted, pusher.sweep(ops, seeds, wanted), strict=True))
    note_decisions(tracer, pusher)

    def tangent(leaf: Leaf) -> Any:
        t = None if leaf.op is None else found[leaf.op]
        return handed(tracer, leaf, t, site)

    return rebuild(done.result, tangent)
