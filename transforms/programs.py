"""Programs: what a traced run comes down to, as one Python function that answers for later calls.

Words
-----
program    guards, the operations of forward and reverse sweep, effects, result: assembled to one function.
fused      the tape of a forward run with the reverse sweep recorded behind it.
drawn      what impure operations of a program gave; a run that is traced after a miss takes it over.
miss       a guard that fails, or an exception: nothing has been done to the outside yet, and the call is traced.

What a program does to the outside (effects, writes to arrays and variables) it does at the very end, when nothing can
fail any more, so that a miss half-way neither repeats nor loses anything.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import linecache
import operator
import sys
import types
import warnings
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from ..rules.broadcasting import expand
from ..rules.mutation import scatter, scatter_add, setitem
from ..rules.words import with_article
from ..tracer.arrays import kept_copy
from ..tracer.attributes import put, put_own
from ..tracer.border import ATOMS
from ..tracer.cached import answers
from ..tracer.dying import is_seen_dying
from ..tracer.errstate import CHANGES, is_balanced
from ..tracer.frames import Own, gradient, is_namedtuple, made, native, valued
from ..tracer.kinds import are_quiet, attribute, flags_of, has, is_one_of, isinstance, static
from ..tracer.lifetimes import unlink
from ..tracer.outcome import Made, ops_of
from ..tracer.places import IMPORTING
from ..tracer.plain_calls import plain_call
from ..tracer.purity import is_draw, is_pure
from ..tracer.reads import HEAP_TYPE, MISSING, Place
from ..tracer.record import ORDERED
from ..tracer.rewrite import tuples_in_code
from ..tracer.run import Run
from ..tracer.source import AS_IMPORTED, BUILTINS
from ..tracer.structure import Branch, Leaf, Tree, has_leaf, leaves, sources
from ..tracer.tape import (
    NOWHERE,
    External,
    FloatOp,
    Input,
    Op,
    Site,
    Tape,
    element,
    fn_name,
    ops_in,
    primal,
)
from ..tracer.tracebacks import fold
from . import silence
from .assemble import WRITES, Assembly
from .columns import Column
from .cotangents import refuse_sealed, shaped
from .gather import gathered
from .guards import Guard, GuardWriter, guard_of, reason, seen
from .kernels import (
    SAFE,
    STEADY,
    hashable,
    is_fresh,
    is_plain_product,
    is_steady,
    is_straight,
    is_whole,
    may_raise,
)
from .loop_source import asked_results, is_finite
from .loops import LoopFunction, Miss
from .pairs import settled
from .reverse import Recorded, decisions, sweep
from .rewrites import optimised
from .silence import QUIET, restore, silent, usual, watched
from .skeleton import copied, stub

LAYOUT_OPS = ORDERED | {
    *(setitem, scatter_add, np.reshape, np.ravel, np.ndarray.reshape, np.ndarray.ravel)
}
CONSTANTS = (np.generic, np.dtype, float, complex, type, type(np._NoValue))
# What is as good as another one that is equal, or can only have been there before.
PLAIN_VALUES = ATOMS - {
    *(type, types.FunctionType, types.MethodType, types.MethodWrapperType, types.GeneratorType),
    *(property, staticmethod, classmethod),
}
LITERALS = frozenset((int, bool, float, complex, str, bytes, type(None), type(Ellipsis)))
RESERVED = (
    "self drawn error errors fold missed result rest named program quiet seen".split()
)  # names in programs
PAD = "        "  # before the statements of a program
numbers = itertools.count(1)
STEADY.update((silent, *CHANGES))


def write_silence(to: Assembly, op: Op, dying: Any, pad: str, lines: list[str]) -> None:
    lines.append(f"{pad}{QUIET} = True")


WRITES[silent] = write_silence


class Unfit(Exception):
    """Why a run cannot be made a program."""


class Program:
    """An assembled run.

    ``code`` is the function's code object, ``namespace`` what it refers to by name, ``parameters`` the names of its
    parameters behind ``self``. ``reasons`` says for a line of the source why it was left there, ``guards`` what is made
    sure of there, and ``integers`` which integer from outside is guarded there. ``forward`` and ``reverse`` count the
    operations, ``loops`` those of the forward ones that are rolled loops.
    """

    def __init__(self, name: str) -> None:
        self.number = next(numbers)
        self.name = name
        self.source = ""
        self.lines: list[str] = []  # of the source, while it is written
        self.files: list[str] = []  # the names under which tracebacks find it
        self.code: types.CodeType | None = None
        self.namespace: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.keywords: tuple[str, ...] = ()
        self.trusts = (
            ""  # the name by which it asks whether it may leave NumPy's error state as it is
        )
        self.positional = False  # whether it takes no keywords
        self.aux = False  # whether the function gives an aux beside its value
        self.simple = True  # takes its arguments by the names of the function's own parameters
        self.reasons: dict[int, str] = {}
        self.guards: dict[int, Guard] = {}
        self.integers: dict[int, Any] = {}
        self.loops = 0
        self.in_loops: list[
            tuple[str, str]
        ] = []  # decisions of rolled loops, and how they came out
        self.decisions = 0  # of a region: how many places it may go more than one way from
        self.growth: list[tuple[int, int, int]] = []  # of a region: see `Known`
        self.forward = 0
        self.reverse = 0
        self.hits = 0
        self.seconds = 0.0  # that building it took
        self.cost = 0.0  # of a call that it answers
        self.dropped = False  # by the cache, which no longer counts it
        self.leaf: type | None = None  # of a pullback: of what type the one number is that it gives
        self.quiet = False  # whether no warning can come out of ``back``
        self.back: Callable[..., Any] | None = (
            None  # of a pullback: from residuals and cotangents to gradients
        )
        self.skeleton: Run | None = None
        self.impure: set[Op] = set()  # of the skeleton: what was drawn
        self.seeds = 0  # how many leaves the result has

    def __del__(self, shown: dict[str, Any] = linecache.cache) -> None:
        for filename in self.files:
            shown.pop(filename, None)

    def drop(self) -> None:
        """Let go of what only a program that is kept needs; who has it in hand may still run it."""
        self.dropped = True

    def fits(self, kwargs: dict[str, Any]) -> bool:
        """Whether the program can be called with these keywords."""
        if self.positional:
            return not kwargs
        if self.back is not None:
            return tuple(kwargs) == self.keywords  # in this order, as are the gradients
        return not self.simple or all(key in self.parameters for key in kwargs)

    def trusted(self, error: BaseException, scope: dict[str, Any]) -> bool:
        """Whether to run again: NumPy may have warned in the reverse sweep. From now on it is watched, in ``scope``."""
        if not self.trusts or not silence.is_from_reverse(error):
            return False
        scope[self.trusts] = self.namespace[self.trusts] = None
        return True

    @functools.cached_property
    def alone(self) -> Any:
        """The program as a function of its own."""
        assert self.code is not None
        made = types.FunctionType(self.code, self.namespace)
        made.__defaults__ = (MISSING,) * len(self.parameters)
        return made

    def given(self, drawn: Iterable[Any]) -> types.FunctionType:
        """The same, of a program that draws nothing but is given what was ``drawn``."""
        if not drawn:
            return self.alone
        left = iter(drawn)

        def serve(log: list[Any], fn: Any, *args: Any, **kwargs: Any) -> Any:
            asked, value = next(left)
            if asked != fn:
                raise Miss
            log.append((fn, value))
            return value

        space = {key: serve if x is draw else x for key, x in self.namespace.items()}
        made = types.FunctionType(self.code, space)  # type: ignore[arg-type]
        made.__defaults__ = self.alone.__defaults__
        return made


def draw(drawn: list[Any], fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Make an impure call, and keep what it gave in case the program is left.

    A cache that would have to ask its body is not called: what the body does may come before what has been read.
    """
    if type(fn) is functools._lru_cache_wrapper and not answers(fn, args, kwargs):
        raise Miss
    value = plain_call(fn, args, kwargs)
    drawn.append((fn, value))
    return value


draw.impure = True  # type: ignore[attr-defined]


class Builder:
    """Writes the program of one run."""

    def __init__(self, done: Run, name: str, used: set[str]) -> None:
        assert done.reads is not None and done.outcome is not None
        self.done = done
        self.name = name
        self.used = used  # names of other programs: a function may go from one program to another
        self.reads = done.reads
        self.outcome = done.outcome
        self.program = Program(name)
        self.assembly = Assembly(self.program.namespace, taken={*self.used, *RESERVED})
        self.assembly.kept = True
        self.wanted: dict[Place, list[Input]] = {}
        self.straight: set[Place] = (
            set()
        )  # arrays of which it matters that they are (see `kernels`)
        self.in_order = False  # whether they must have the strides that they have
        self.effects: list[Op] = []
        self.exposed: set[Op] = set()
        self.repeated: list[
            Op
        ] = []  # forward operations that the sweep does again: to the bit as well
        self.names: dict[Place, str] = {}
        self.tape = Tape(done.tape.name, done.tape.site)
        self.seen_constants: dict[int, str] = {}
        self.tuples: dict[int, str] = {}  # id of a tuple of constants: the variable it is in
        self.making: list[str] = []  # the statements that make these

    # What a program may not do

    def check(self, effects: list[Op]) -> None:
        """Raise Unfit where a program could not do what the run did."""
        if self.reads.problems:
            raise Unfit(self.reads.problems[0])
        if self.done.tape.once is not None:
            raise Unfit(self.done.tape.once)
        if not is_balanced(self.done.tape.ops):
            raise Unfit("NumPy's error state is changed for good")
        done_before = unknown_before = False
        known = set(self.done.tape.ops)
        for op in self.done.tape.ops:
            if not known.issuperset(op.operands()):
                raise Unfit(f"a value of another run is used ({op.site})")
            if op.kind == "effect":
                done_before = True
                unknown_before |= not is_plain_effect(op)
            elif op in self.reads.impure and (
                unknown_before or (done_before and not is_draw(op.fn))
            ):
                raise Unfit(f"{fn_name(op.fn)} ({op.site}) may see what was done before it")

    def constant_of(self, value: Any, site: Any) -> None:
        """A constant on the tape must be the same thing at every call."""
        if is_one_of(type(value), ATOMS) or isinstance(value, CONSTANTS):
            owner = attribute(value, "__self__")
            if owner is not None and not isinstance(owner, (types.ModuleType, type)):
                self.reads.pin(owner)
            return
        if self.reads.of(value) is not None:
            self.reads.pin(value)
        elif not callable(value) and not isinstance(value, (tuple, list, dict, slice)):
            raise Unfit(f"{with_article(type(value).__name__)} made by the run is used ({site})")

    def lasts(self, value: Any) -> bool:
        """Whether what the outside is handed is the very same at every call: a value, or an object that was there."""
        kind = type(value)
        if kind is types.BuiltinFunctionType:
            return isinstance(value.__self__, (types.ModuleType, type, type(None)))
        if is_one_of(kind, PLAIN_VALUES) or (
            isinstance(value, CONSTANTS) and not isinstance(value, type)
        ):
            return True
        if isinstance(value, type) and not value.__flags__ & HEAP_TYPE:
            return True
        found = [x for x in self.reads.all() if x.value is value and x.step != "constant"]
        for place in found:
            place.pinned = True
        return bool(found)

    # Writing

    def constant(self, value: Any, hint: str) -> str:
        """The name of a constant of the program."""
        known = self.seen_constants.get(id(value))
        if known is None:
            if vars(builtins).get(hint, self) is value:
                return hint
            if is_thing(value) and is_seen_dying(value):
                named = with_article(type(value).__name__)
                raise Unfit(
                    f"{named}, which has a method __del__ or is watched by a weak reference, would live as long as the "
                    "program"
                )
            known = self.seen_constants[id(value)] = self.assembly.fresh(hint)
            self.program.namespace[known] = value
        return known

    def text(self, tree: Any) -> str:
        """The expression of a template."""
        if isinstance(tree, Place):
            return self.names[tree]
        if isinstance(tree, Made):
            kind, parts = self.constant(tree.kind, tree.kind.__name__), self.text(tree.parts)
            option = "" if tree.option is None else f", {self.text(tree.option)}"
            return f"{self.constant(made, 'made')}({kind}, {parts}{option})"
        if isinstance(tree, External):
            place = self.reads.of(tree.value)
            if place is None and id(tree.value) not in self.reads.constants:
                raise Unfit(f"nobody knows where {tree.name} comes from, which is handed outside")
            return self.names[place] if place is not None else self.constant(tree.value, tree.name)
        if type(tree) is tuple:
            return self.tuple_text(tree)
        if type(tree) is list:
            return "[" + ", ".join(map(self.text, tree)) + "]"
        if isinstance(tree, tuple) and hasattr(tree, "_make"):
            return self.named_tuple(type(tree), map(self.text, tree))
        if type(tree) is dict:
            return self.keyed(tree, [self.text(x) for x in tree.values()])
        place = self.reads.of(tree)
        if place is not None:
            return self.names[place]
        if isinstance(tree, (tuple, list, dict)):
            raise Unfit(f"{with_article(type(tree).__name__)} made by the run is kept outside")
        return self.assembly.expression(tree)

    @functools.cached_property
    def in_code(self) -> set[int]:
        return {id(x) for x in tuples_in_code()}

    def tuple_text(self, tree: tuple[Any, ...]) -> str:
        """The expression of a tuple: one from outside or of the user's code is that very one, any other is new."""
        place = self.reads.of(tree)
        if place is not None:
            return self.names[place]
        if id(tree) in self.tuples:
            return self.tuples[id(tree)]
        if id(tree) in self.in_code and tree:
            return self.constant(tree, "pair")
        parts = [self.text(x) for x in tree]
        fixed = bool(tree) and is_fixed(tree)
        if fixed and not (type(tree[0]) is tuple and tree[0]):
            parts[0] = self.constant(tree[0], "part")  # the compiler makes one of constants alone
        text = "(" + "".join(x + ", " for x in parts) + ")"
        if fixed:
            name = self.tuples[id(tree)] = self.assembly.fresh("pair")
            self.making.append(f"{name} = {text}")
            return name
        return text

    def named_tuple(self, kind: type, parts: Iterable[str]) -> str:
        """A tuple of a class of its own, whatever its ``__new__`` takes."""
        name = self.constant(kind, kind.__name__)
        new = self.constant(tuple.__new__, "new_tuple")
        return f"{new}({name}, ({''.join(x + ', ' for x in parts)}))"

    def keyed(self, keys: dict[Any, Any], values: list[str]) -> str:
        """The expression of a dict; keys with a hash of the user's are not asked for it."""
        if are_quiet(keys):
            items = zip(keys, values, strict=True)
            return "{" + ", ".join(f"{self.key(k)}: {x}" for k, x in items) + "}"
        known = self.constant(dict.fromkeys(keys), "keys")
        return f"{self.constant(valued, 'valued')}({known}, [{', '.join(values)}])"

    def key(self, key: Any) -> str:
        return repr(key) if is_one_of(type(key), (str, int, bool)) else self.constant(key, "key")

    def mention(self, tree: Any) -> None:
        """Note the places that a template needs."""
        if isinstance(tree, Place):
            self.wanted.setdefault(tree, [])
        elif isinstance(tree, Made):
            self.mention((tree.parts, tree.option))
        elif isinstance(tree, External):
            self.mention_object(tree.value)
        elif isinstance(tree, dict):
            for x in tree.values():
                self.mention(x)
        elif isinstance(tree, (tuple, list)):
            self.mention_object(tree)
            for x in tree:
                self.mention(x)
        elif not isinstance(tree, Op):
            self.mention_object(tree)

    def mention_object(self, value: Any) -> None:
        place = self.reads.of(value)
        if place is not None:
            self.wanted.setdefault(place, [])

    def gradient(self, tree: Tree, found: dict[Any, Any]) -> str:
        """The expression of an argument's gradient, of the argument's structure."""
        if isinstance(tree, Leaf):
            return self.leaf(tree, found.get(tree.op))
        if not isinstance(tree, Branch):
            return "None"
        kind, keys = tree.kind, tree.parts
        values = [self.gradient(part, found) for part in keys.values()]
        if kind is list:
            return "[" + ", ".join(values) + "]"
        if kind is tuple:
            return "(" + "".join(x + ", " for x in values) + ")"
        if is_namedtuple(kind) and not any(type(k) is Own for k in keys):
            return self.named_tuple(kind, values)
        text = self.keyed(keys, values)
        if kind is dict:
            return text
        if native(kind) is None and not has(kind, "__dataclass_fields__"):
            found_of = zip(keys.items(), values, strict=True)
            kept = [f"{k!r}: {x}" for (k, part), x in found_of if has_leaf(part)]
            return "{" + ", ".join(kept) + "}" if kept else "None"
        differentiable = self.constant([has_leaf(x) for x in keys.values()], "has")
        made = self.constant(gradient, "gradient")
        return f"{made}({self.constant(kind, kind.__name__)}, {text}, {differentiable})"

    def leaf(self, leaf: Leaf, d: Any) -> str:
        """The gradient of one leaf, in its kind, shape and dtype, and held by nobody else."""
        value = leaf.value
        if d is None:
            if isinstance(value, np.ndarray):
                dtype = self.constant(value.dtype, f"dtype_{value.dtype.name}")
                return f"{self.constant(np.zeros, 'zeros')}({value.shape!r}, {dtype})"
            return (
                self.constant(shaped(leaf, None), "zero")
                if isinstance(value, np.generic)
                else repr(shaped(leaf, None))
            )
        plain = d.value if isinstance(d, Op) else d
        text = self.assembly.expression(d)
        if type(plain) is type(value):
            if not isinstance(value, np.ndarray):
                return text
            if plain.shape == value.shape and plain.dtype == value.dtype:
                return text if self.is_own(d) else f"{text}.copy()"
        elif is_one_of(type(value), (int, float)) and type(plain) is float:
            return text
        blank = Leaf(None, stub(value))  # only its type is needed
        return f"{self.constant(shaped, 'shaped')}({self.constant(blank, 'leaf')}, {text})"

    def is_own(self, op: Any) -> bool:
        """Whether the array of an op was made by the program and is in nobody else's hands."""
        if not isinstance(op, Op) or op.kind != "call" or op in self.exposed:
            return False
        self.exposed.add(op)
        value = op.value
        return value.base is None and not any(x.value is value for x in op.operands())

    def fused(
        self, wrt: list[Op], seeds: list[tuple[Op, Any]]
    ) -> tuple[Tape, dict[Op, Any], Op | None]:
        """The tape with its reverse sweep, and the cotangents of ``wrt``."""
        forward = self.done.tape.ops
        tape = Tape(self.done.tape.name, self.done.tape.site)
        quiet = Op(silent, (), None, NOWHERE, tape)
        turn = next((i for i, op in enumerate(forward) if op.fn is silent), None)
        if turn is not None:  # the sweep is a part of the run
            del forward[turn]
            tape.ops = forward.copy()
            if not any(map(may_warn, forward)):
                return tape, {}, None
            tape.ops.insert(turn, quiet)
            return tape, {}, quiet
        tape.ops = [*forward, *[d for _, d in seeds if isinstance(d, Input)]]
        tape.ops.append(quiet)
        start = len(tape.ops)
        found, looked = self.swept(tape, wrt, seeds)
        guards = decisions(looked, tape)
        if not set(forward).issuperset(looked):
            raise Unfit("the sweep depends on the value of an integer that it computes")
        tape.ops[len(forward) : len(forward)] = guards
        forward += guards  # decisions of the run, like its own
        start += len(guards)
        if not any(map(may_warn, tape.ops)):
            del tape.ops[start - 1]
            return tape, found, None
        return tape, found, quiet

    def swept(
        self, tape: Tape, wrt: list[Op], seeds: list[tuple[Op, Any]]
    ) -> tuple[dict[Op, Any], Iterable[Op]]:
        """Put the sweep on the tape: what is found, and on the values of which integers that depends."""
        machine = Recorded(tape, NOWHERE)
        found = dict(zip(wrt, sweep(self.done.tape.ops, wrt, seeds, machine), strict=True))
        if machine.momentary:
            raise Unfit(f"the rule of {machine.momentary} depends on more than its arguments")
        self.repeated = machine.repeated
        return found, machine.looked

    def best(
        self, wrt: list[Op], seeds: list[tuple[Op, Any]]
    ) -> tuple[Tape, dict[Op, Any], Op | None, Input | None]:
        """The fused tape as it will be run; the cotangents of ``wrt``, and the marks of silence and of draws."""
        done, outcome = self.done, self.outcome
        self.effects = [op for op in done.tape.ops if op.kind == "effect"]
        self.check(self.effects)
        tape, found, quiet = self.fused(wrt, seeds)
        drawn = Input("drawn", None, tape)
        impure = [self.redrawn(op, drawn) for op in list(self.reads.impure)]
        commits = (
            [(op.args, op.kwargs) for op in self.effects],
            [op for _, op in outcome.arrays],
            [template for _, template in outcome.cells],
        )
        tape.result = (
            ops_of(outcome.template),
            [found[op] for op in wrt],
            [list(ops_of(x)) for x in commits],
            impure,
            quiet,
        )
        stay = [op for op in done.tape.ops if may_end(op)]
        keep = [*done.tape.ops, *self.repeated, *impure, *([quiet] if quiet is not None else [])]
        tape = gathered(optimised(tape, keep, stay), stay)
        if quiet is not None and not any(map(may_warn, tape.ops[tape.ops.index(quiet) :])):
            tape.ops.remove(quiet)
        found = dict(zip(wrt, tape.result[1], strict=True))
        self.exposed = set(ops_in(tape.result[0])) | set(ops_in(tape.result[2]))
        return tape, found, quiet, drawn if impure else None

    def demand(self, ops: Iterable[Op], drawn: Input | None) -> None:
        """Note the places whose values the program needs; raises Unfit for what it could not find again."""
        outcome = self.outcome
        ops = list(ops)
        self.straight = straight_places(ops)
        pure: set[Any] = set()
        for op in ops:
            if type(op) is FloatOp:
                continue  # arithmetic on numbers
            for x in constants_in(op.args):
                self.constant_of(x, op.site)
            if op.kwargs:
                for x in constants_in(op.kwargs):
                    self.constant_of(x, op.site)
            if op.kind == "call":
                fn = op.fn if hashable(op.fn) else None
                if fn is None or fn not in pure:
                    self.constant_of(op.fn, op.site) if not is_pure(op.fn) else pure.add(fn)
            elif isinstance(op, Input) and op is not drawn:
                if op.place is None:
                    raise Unfit(f"nobody knows where {op.name} comes from")
                self.wanted.setdefault(op.place, []).append(op)
        self.mention(outcome.template)
        for place, _ in (*outcome.arrays, *outcome.cells):
            self.wanted.setdefault(place, [])
        if self.reads.in_rows:
            places = [
                x for x in map(looked_at, self.wanted) if x.check == "array" and x.value.ndim > 1
            ]
            self.straight.update(x for x in places if x.value.flags.c_contiguous)
            self.in_order |= not self.straight.issuperset(places)
        for op in self.effects:
            self.mention((op.args, op.kwargs))
            for x in constants_in((op.args, op.kwargs)):
                self.constant_of(x, op.site)
                if not self.lasts(x):
                    kind = type(x).__name__
                    raise Unfit(f"{with_article(kind)} made by the run is kept outside ({op.site})")

    def build(
        self, keys: Collection[int | str], seeds: list[tuple[Op, Any]], answer: str
    ) -> Program:
        """Write the program, with the gradients of these arguments.

        ``answer`` is the format of what it returns: ``{value}``, ``{aux}``, ``{gradients}``.
        """
        if not keys:  # all derivatives have been taken in the run
            settled(self.done)
        done, template = self.done, self.outcome.template
        trees = [done.argument(key) for key in keys]
        wrt = [op for tree in trees for op in sources(tree)]
        tape, found, quiet, drawn = self.best(wrt, seeds)
        refuse_sealed(done.tape, trees, lambda op: found.get(op) is not None)
        self.demand(tape.ops, drawn)

        def result() -> str:
            gradients = [self.gradient(tree, found) for tree in trees]
            parts = template if type(template) is tuple and len(template) == 2 else (None, None)
            return answer.format(
                value=self.text(template),
                aux=self.text(parts[1]) if "{aux}" in answer else "",
                gradients="".join(g + ", " for g in gradients),
                gradient=gradients[0] if gradients else "",
            )

        live = set(ops_in(tape.result))
        self.write(tape.ops, live, result, drawn, quiet, found=found)
        self.assembly.taken = set()  # all names are chosen
        return self.program

    def build_pullback(self, make_back: Callable[..., Any]) -> Program:
        """Write a program that returns the value and ``make_back(program, inputs, residuals, drawn)``.

        ``program.back`` is then a function of the residuals and of one cotangent for each leaf of the result.
        """
        done, program = self.done, self.program
        results = [leaf for leaf in leaves(done.result) if leaf.op is not None]
        trees = [*done.args, *done.kwargs.values()]
        wrt = [op for tree in trees for op in sources(tree)]
        seeds = self.seeded([(leaf.op, leaf.value) for leaf in results])

        def gradients(found: dict[Op, Any]) -> str:
            texts = [self.gradient(tree, found) for tree in done.args]
            named = {k: self.gradient(tree, found) for k, tree in done.kwargs.items()}
            if named:
                texts.append("{" + ", ".join(f"{k!r}: {x}" for k, x in named.items()) + "}")
            return "(" + "".join(x + ", " for x in texts) + ")"

        def split() -> None:
            fused, found, quiet, drawn = self.best(wrt, seeds)
            refuse_sealed(done.tape, trees, lambda op: found.get(op) is not None)
            first = set(complete(done.tape.ops))
            self.write_parts(make_back, fused, first, seeds, drawn, quiet, found, gradients)

        self.in_parts(split)
        if len(results) == 1 and results[0] is done.result:
            kind = type(results[0].value)
            program.leaf = kind if is_one_of(kind, (float, np.float64)) else None
        return program

    def seeded(self, values: list[tuple[Any, Any]]) -> list[tuple[Op, Any]]:
        """For each op a variable for a derivative that will be given, of the kind that belongs to its value."""
        return [
            (op, Input(f"d{i}", cotangent_like(value), self.done.tape))
            for i, (op, value) in enumerate(values)
        ]

    def in_parts(self, split: Callable[[], None]) -> None:
        """Write a program of two parts, and give it what the user's derivative may be made again from."""
        done, program = self.done, self.program
        impure = list(self.reads.impure)
        try:
            split()
        finally:  # the user's derivative lives on these ops
            for op in impure:
                if op.fn is draw:
                    op.args, op.fn = op.args[2:], op.args[1]
        program.skeleton, copies = copied(done, lambda old, new: stub(old.value))
        program.impure = {copies[op] for op in impure}

    def write_parts(
        self,
        make: Callable[..., Any],
        fused: Tape,
        before: set[Op],
        seeds: list[tuple[Op, Any]],
        drawn: Input | None,
        quiet: Any,
        found: dict[Op, Any],
        answer: Callable[[dict[Op, Any]], str],
    ) -> None:
        """Write the two parts: the function itself with the operations of ``before``, and ``program.back``."""
        done, program = self.done, self.program
        forward = done.tape.ops = complete(done.tape.ops)
        first = [op for op in fused.ops if op in before]
        quiet = quiet if quiet in before else None
        then = [
            op for op in fused.ops if op not in before and op.kind == "call" and op.fn is not silent
        ]
        if any(type(op.fn) is LoopFunction and op.fn.picks for op in then):
            raise Unfit("how much a loop of the sweep picks of an array depends on its values")
        needed = {x: None for op in then for x in op.operands() if x in before or x is drawn}
        needed.update({op: None for op in ops_in(list(found.values())) if op in before})
        inputs = [op for op in forward if isinstance(op, Input)]
        residuals = [op for op in needed if not isinstance(op, Input)]
        self.demand([*first, *inputs], drawn)
        self.in_hand = in_hand(self.exposed)
        kept = self.constant(make, "kept")
        me = self.constant(program, f"program_{program.number}")

        def result() -> str:
            groups = [
                "(" + "".join(self.protected(op) + ", " for op in group) + ")"
                for group in (inputs, residuals)
            ]
            log = "drawn" if drawn is not None else "()"
            return f"({self.text(self.outcome.template)}, {kept}({me}, {groups[0]}, {groups[1]}, {log}))"

        last = {*ops_in(fused.result[0]), *ops_in(fused.result[2]), *ops_in(fused.result[3])}
        live = {*last, *residuals, *inputs, *([quiet] if quiet is not None else [])}
        self.write(first, live, result, drawn, quiet or strictly(first), then)
        program.reverse = len(then)
        program.quiet = not any(map(may_warn, then))
        program.seeds = len(seeds)
        program.back = self.write_back(
            inputs, residuals, [d for _, d in seeds], then, found, answer
        )

    def protected(self, op: Op) -> str:
        """The value of an op, in a copy if somebody outside could write to it."""
        text = self.assembly.expression(op)
        if isinstance(op.value, (list, tuple)) and has_array(op.value):
            made = op.args[0] if op.fn is element else op
            if isinstance(made, Op) and made not in self.in_hand and collects_own(made):
                return text
            return f"{self.constant(copies_of, 'copies_of')}({text})"
        if not isinstance(op.value, np.ndarray):
            return text
        shared = isinstance(op, Input) or not is_fresh(op) or op in self.in_hand
        if not shared:
            return text
        if not text.isidentifier():
            return f"{self.constant(kept_copy, 'kept_copy')}({text})"
        return f"({text}.copy('K') if {text}.flags.forc else {self.constant(kept_copy, 'kept_copy')}({text}))"

    def write_back(
        self,
        inputs: list[Input],
        residuals: list[Op],
        dys: list[Input],
        ops: list[Op],
        found: dict[Op, Any],
        answer: Callable[[dict[Op, Any]], str],
    ) -> Callable[..., Any]:
        """The function from residuals and given derivatives to those that are asked for."""
        self.assembly = assembly = Assembly(self.program.namespace, taken=self.used)
        assembly.kept = True
        self.seen_constants = {}
        self.exposed = {*inputs, *residuals, *dys}
        name = assembly.fresh("back")
        parameters = [assembly.fresh(op.name) for op in dys]
        lines = [f"def {name}(inputs, residuals, {', '.join(parameters)}):"]
        for op, parameter in zip(dys, parameters, strict=True):
            assembly.bind(op, parameter)
        for source, group in (("inputs", inputs), ("residuals", residuals)):
            names = [assembly.fresh(getattr(op, "name", "r")) for op in group]
            for residual, own in zip(group, names, strict=True):
                assembly.bind(residual, own)
            if group:
                lines.append(f"    {', '.join(names)}, = {source}")
        lines += assembly.emit(ops, set(ops_in(list(found.values()))), self.miss)
        lines += self.doubt(ops, found, "    ")
        lines.append(f"    return {answer(found)}")
        source = "\n".join(lines) + "\n"
        self.program.source += "\n\n" + source
        code = self.compiled(source)
        return types.FunctionType(code, self.program.namespace)

    def redrawn(self, op: Op, drawn: Input) -> Op:
        """Turn an impure call into one that keeps what it gave."""
        op.args, op.fn = (drawn, op.fn, *op.args), draw
        return op

    def write(
        self,
        ops: list[Op],
        live: set[Op],
        answer: Callable[[], str],
        drawn: Input | None,
        quiet: Any,
        later: Iterable[Op] = (),
        found: dict[Op, Any] | None = None,
    ) -> None:
        """Write guards, operations, effects and the result; the operations ``later`` are done elsewhere.

        The gradients are what was ``found``, if they are computed here.
        """
        program = self.program
        roots = self.opening(drawn is not None, quiet is not None)
        guards = GuardWriter(
            self.reads, self.constant, self.assembly.fresh, self.wanted, self.layout
        )
        guards.straight = self.straight
        self.guard(guards, guards.write(roots))
        self.guard_writes(guards)
        at = len(program.lines)
        if quiet is not None:
            program.lines.append(f"        errors = {self.watching}")
        self.bind(drawn)
        own = set(self.done.tape.ops)
        calls = [op for op in ops if op.kind == "call" and op is not quiet]
        program.loops = sum(isinstance(op.fn, LoopFunction) and op in own for op in calls)
        program.in_loops = [found for op in self.done.tape.ops for found in decisions_in(op.fn)]
        program.forward = sum(op in own for op in calls)
        program.reverse = len(calls) - program.forward
        self.assembly.asked = asked_results([*ops, *later])
        self.operate(ops, live)
        for line in self.doubt(ops, found or {}, PAD):
            program.lines.append(line)
            program.reasons[len(program.lines)] = "a gradient is not finite"
        if program.lines[-1] == "    try:":
            program.lines.append("        pass")
        program.lines.append("    except Exception as error:")
        if quiet is not None:
            program.lines.append(f"{PAD}if errors is not None: {self.restored}")
        program.lines += [f"{PAD}missed = error", "    else:"]
        self.answer(answer, quiet is not None)
        if quiet is not None and self.may_trust:
            self.trust(at)
        self.ending(drawn is not None)

    def doubt(self, ops: Iterable[Op], found: dict[Op, Any], pad: str) -> list[str]:
        """The statement that leaves the program where zeros that stand for no influence may have made NaN, if any."""
        if not any(type(op.fn) is LoopFunction and op.fn.family.gaps for op in ops):
            return []
        gradients = [x for x in dict.fromkeys(found.values()) if isinstance(x, Op)]
        is_number = self.constant(is_finite, "is_finite")
        tests = " and ".join([f"{is_number}({self.assembly.expression(x)})" for x in gradients])
        return [f"{pad}if not ({tests or True}): {self.miss}"]

    @property
    def watching(self) -> str:
        """The expression from which on NumPy's errors are watched; it tells what was before."""
        text = f"{self.constant(watched, 'watched')}()"
        if usual is None:
            return text
        names = ("state", "usual_state", "set_state", "watched_state")
        get, state, put, other = map(self.constant, usual, names)
        return f"{put}({other}) if {get}() is {state} else {text}"

    @property
    def may_trust(self) -> bool:
        """Whether the program may leave NumPy's error state as it is: it can be run again, and is C code alone."""
        outcome = self.outcome
        return (
            silence.guarded is not None
            and not (self.effects or outcome.arrays or outcome.cells or self.reads.impure)
            and not any(map(may_warn, self.assembly.remote))
        )

    def trust(self, at: int) -> None:
        """Let the statement at a line leave NumPy's error state as it is, if it is the usual one."""
        assert usual is not None
        program = self.program
        program.trusts = self.assembly.fresh("trusted_state")
        program.namespace[program.trusts] = usual[1]
        none = self.constant((None,), "nothing")
        first = f"({self.constant(warnings, 'warnings')}.filters or {none})[0]"
        asked = f"{self.constant(usual[0], 'state')}() is {program.trusts}"
        asked += f" and {first} is {self.constant(silence.guarded, 'guarded')}"
        other = f"{self.constant(watched, 'watched')}()"
        program.lines[at] = f"{PAD}errors = None if {asked} else {other}"

    @property
    def miss(self) -> str:
        """The statement by which a program is left."""
        return f"raise {self.constant(Miss, 'Miss')}"

    @property
    def layout(self) -> bool:
        """Whether it matters how arrays lie in memory."""
        return (
            self.in_order
            or self.done.tape.layout
            or any(
                op.fn in LAYOUT_OPS or "order" in op.kwargs
                for op in self.done.tape.ops
                if type(op) is not FloatOp and hashable(op.fn)
            )
        )

    def roots(self) -> dict[Place, str]:
        """The expressions of the places where everything begins."""
        reads = self.reads
        assert reads.function is not None
        found = dict(zip(reads.arguments, self.program.parameters, strict=False))
        found.update({p: f"named[{k!r}]" for k, p in reads.keywords.items()})
        return {**found, reads.function: "self.f"}

    def opening(self, draws: bool, quiets: bool) -> dict[Place, str]:
        """Write the first lines; says by which expressions the roots are found."""
        program = self.program
        program.parameters, header, first = self.signature()
        program.keywords = tuple(self.reads.keywords)
        program.simple = "**named" not in header
        program.lines = [header]
        if draws:
            program.lines.append("    drawn = []")
        if quiets:
            program.lines.append("    errors = None")
        program.lines.append("    try:")
        # A debugger wants to see the user's lines.
        first[-1] += f" or {self.constant(sys.gettrace, 'gettrace')}() is not None"
        program.lines += [f"        if {text}: {self.miss}" for text in first]
        return self.roots()

    def guard(self, guards: GuardWriter, statements: Iterable[tuple[str, Place | None]]) -> None:
        """Write guards on places, and note what each line is for."""
        program, lines = self.program, self.program.lines
        for text, place in statements:
            lines.append(f"{PAD}if {text}: {self.miss}" if place is not None else PAD + text)
            if place is not None:
                program.reasons[len(lines)] = reason(place)
                program.guards[len(lines)] = guard_of(place, guards.names[place])
                if place.check == "value" and type(place.value) is int:
                    program.integers[len(lines)] = place.path
        self.names = guards.names

    def guard_writes(self, guards: GuardWriter) -> None:
        """Write guards against things that have become one, where one of them is written to."""
        lines = self.program.lines
        frozen = [
            (place, f"not {self.names[place]}.flags.writeable") for place, _ in self.outcome.arrays
        ]
        apart = guards.apart(self.written_places(), bool(self.outcome.arrays))
        for text, why in (*((text, f"{place} is read-only") for place, text in frozen), *apart):
            lines.append(f"{PAD}if {text}: {self.miss}")
            self.program.reasons[len(lines)] = why

    def bind(self, drawn: Input | None) -> None:
        """Tell the assembly in which variables the inputs lie."""
        if drawn is not None:
            self.assembly.bind(drawn, "drawn")
        for place, inputs in self.wanted.items():
            if place in self.names:
                for op in inputs:
                    self.assembly.bind(op, self.names[place])
                if looked_at(place) in self.straight:
                    self.assembly.straight.update(inputs)

    def operate(self, ops: list[Op], live: set[Op]) -> None:
        """Write operations, and note what each line that may leave the program is for."""
        program, lines = self.program, self.program.lines
        emitted = self.assembly.emit(ops, live, self.miss, 2)
        left = iter(self.assembly.checked)
        miss = self.miss
        for line in emitted:
            lines.append(line)
            if line.endswith(miss):
                op = next(left)
                program.reasons[len(lines)] = decision(op)
                program.guards[len(lines)] = decided(op)
                if op.kind == "guard" and type(op.value) is int:
                    program.integers[len(lines)] = ("decision", op.site)

    @property
    def restored(self) -> str:
        return f"{self.constant(restore, 'restore')}(errors)"

    def answer(self, answer: Callable[[], str], quiets: bool) -> None:
        """Write effects and the result."""
        lines = self.program.lines
        if quiets:
            lines.append(f"{PAD}if errors is not None: {self.restored}")
        commits = self.commits()
        result = answer()
        lines += [PAD + text for text in self.making]
        lines.append(
            f"{PAD}self.hits += 1.0"
        )  # CPython takes memory for an int, but has floats to hand
        if commits:
            lines.append(f"{PAD}result = {result}")
            lines += [PAD + text for text in commits]
            lines.append(f"{PAD}return result")
        else:
            lines.append(f"{PAD}return {result}")

    def ending(self, draws: bool) -> None:
        """Write the last line, which is reached where the program was left, and compile it all."""
        program = self.program
        given = "(" + "".join(p + ", " for p in program.parameters) + ")"
        named = "{}" if program.simple else "named"
        me = self.constant(program, f"program_{program.number}")
        log = "drawn" if draws else "()"
        program.lines += [
            f"    try: return self.missed({me}, missed, {log}, {given}, rest, {named})",
            "    except BaseException as error: fold(error); raise",
        ]
        program.source = "\n".join(program.lines) + "\n"
        program.lines = []
        program.code = self.compiled(program.source)
        program.namespace["__builtins__"] = builtins
        program.namespace["fold"] = fold
        program.namespace["__name__"] = silence.MODULE

    def signature(self) -> tuple[list[str], str, list[str]]:
        """The names of the parameters, the ``def`` line, and the first statements, which check what was passed."""
        reads, f = self.reads, self.done.reads.function.value  # type: ignore[union-attr]
        missing = self.constant(MISSING, "missing")
        name = self.assembly.fresh(self.program.name)
        self.program.name = name
        count = len(reads.arguments)
        code: Any = attribute(f, "__code__")
        first_own = type(f) is types.MethodType
        simple = (
            is_one_of(type(f), (types.FunctionType, types.MethodType))
            and not code.co_flags & 0xC
            and not code.co_kwonlyargcount
            and not reads.keywords
            and not {*RESERVED, *BUILTINS, *AS_IMPORTED, *self.used}.intersection(
                code.co_varnames[first_own : code.co_argcount]
            )
        )
        if simple:
            names = list(code.co_varnames[first_own : code.co_argcount])
            self.assembly.taken.update(names)
            extra = names[count:]
            first = [f"{n} is not {missing}" for n in extra]
            first.append("rest")
            header = ", ".join(["self", *[f"{n}={missing}" for n in names], "*rest"])
            return names, f"def {name}({header}):", first
        names = [f"x{i}" for i in range(count)]
        self.assembly.taken.update(names)
        header = ", ".join(["self", *[f"{n}={missing}" for n in names], "/", "*rest", "**named"])
        first = [f"rest or len(named) != {len(reads.keywords)}"]
        return names, f"def {name}({header}):", first

    def written_places(self) -> list[Place]:
        """The containers and objects outside that the program writes to."""
        targets = [op.args[0] for op in self.effects if op.args]
        found = [self.reads.of(x.value if isinstance(x, External) else x) for x in targets]
        found += [place for place, _ in self.outcome.cells]
        return [place for place in dict.fromkeys(found) if place is not None]

    def commits(self) -> list[str]:
        """What is done to the outside when all is computed."""
        lines = []
        for op in self.effects:
            if op.fn is setattr or op.fn is put_own:
                obj, name, value = op.args
                owner = (
                    self.text(obj)
                    if self.reads.of(obj) is not None
                    else self.constant(obj, "owner")
                )
                store = self.constant(*((put, "put") if op.fn is setattr else (put_own, "put_own")))
                lines.append(f"{store}({owner}, {name!r}, {self.text(value)})")
            elif op.fn is operator.setitem:
                target, key, value = op.args
                lines.append(f"{self.text(target)}[{self.text(key)}] = {self.text(value)}")
            else:
                given = [self.text(x) for x in op.args]
                if op.kwargs:
                    given.append(f"**{self.text(op.kwargs)}")
                lines.append(
                    f"{self.constant(op.fn, fn_name(op.fn).replace('.', '_'))}({', '.join(given)})"
                )
        writes = []
        copyto = self.constant(np.copyto, "copyto") if self.outcome.arrays else ""
        for place, final in self.outcome.arrays:
            writes.append(f"{copyto}({self.names[place]}, {self.assembly.expression(final)})")
        for place, template in self.outcome.cells:
            writes.append(f"{self.names[place]}.cell_contents = {self.text(template)}")
        return [*writes, *lines] if self.outcome.first else [*lines, *writes]

    def compiled(self, source: str) -> types.CodeType:
        """The code of a function; tracebacks show its source as long as the program lives."""
        program = self.program
        filename = f"<wengert {program.name} {next(numbers)}> {IMPORTING}"
        try:
            module = compile(source, filename, "exec")
        except SyntaxError as error:
            if "too many nested" not in error.msg:
                raise
            raise Unfit("its result is nested too deep for the source of a program") from None
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        program.files.append(filename)
        self.used.update(program.namespace)
        return next(x for x in module.co_consts if isinstance(x, types.CodeType))


def looked_at(place: Place) -> Place:
    """The place on which the guard is that looks at the array of a place."""
    return place.origin if place.check == "same" and place.origin is not None else place


def straight_places(ops: Iterable[Op]) -> set[Place]:
    """Where arrays come from that are factors of products which are cheaper if all their factors are straight."""
    found: set[Place] = set()

    def look(ops: Iterable[Op], meaning: dict[Op, Any]) -> None:
        """Look at operations in which some ops stand for others outside."""

        def sources(x: Any) -> Any:
            while isinstance(x, Op) and x.fn is operator.getitem and is_whole(x.args[1]):
                x = x.args[0]
            return meaning.get(x, x)

        for op in ops:
            if type(op.fn) is LoopFunction:
                _, starts, invariants, _ = op.fn.split(op.args)
                for v in op.fn.family.variants:
                    outside = dict(zip(v.invariants, map(sources, invariants), strict=True))
                    outside.update(zip(v.carried, map(sources, starts), strict=True))
                    look(v.ops, outside)
            elif is_plain_product(op):
                factors = [sources(x) for x in op.args]
                inputs = [x for x in factors if isinstance(x, Input) and x.place is not None]
                places = {looked_at(x.place) for x in inputs if x.place is not None}
                if all(is_straight(x, inputs) for x in factors) and all(
                    p.check == "array" and p.value.flags.c_contiguous for p in places
                ):
                    found.update(places)

    look(ops, {})
    unlink(look)
    return found


def cotangent_like(value: Any) -> Any:
    """A cotangent of the kind that belongs to a value."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.ones_like(value)[()] if isinstance(value, np.generic) else np.ones_like(value)
    return 1.0 + 0j if isinstance(value, complex) else 1.0


def in_hand(results: Iterable[Op]) -> set[Op]:
    """The ops whose memory somebody outside holds: results, and what they are views of."""
    found: set[Op] = set()
    todo = list(results)
    while todo:
        op = todo.pop()
        if op not in found:
            found.add(op)
            if not is_fresh(op):
                todo.extend(op.operands())
    return found


def has_array(value: Any) -> bool:
    """Whether there is an array in lists and tuples."""
    if isinstance(value, (list, tuple)):
        return any(map(has_array, value))
    return isinstance(value, np.ndarray)


def copies_of(value: Any) -> Any:
    """Lists and tuples with copies of their arrays."""
    if isinstance(value, (list, tuple)):
        found = [copies_of(x) for x in value]
        return tuple(found) if isinstance(value, tuple) else found
    return kept_copy(value) if isinstance(value, np.ndarray) else value


def collects_own(made: Op) -> bool:
    """Whether a loop has made the arrays that it hands out and collects, so that they are nobody else's."""
    if type(made.fn) is not LoopFunction:
        return False
    family = made.fn.family
    items = [x for v in family.variants for x in v.following]
    items += [x for _, row in family.collected for x in row.values()]
    return all(is_fresh(x) for x in items if isinstance(x, Op) and has_array(x.value))


def complete(ops: Iterable[Op]) -> list[Op]:
    """The operations, and before each what was gathered for it since."""
    found: dict[Op, None] = {}
    for op in ops:
        add_with_operands(op, found)
    return list(found)


def add_with_operands(op: Op, found: dict[Op, None]) -> None:
    for x in op.operands():
        if x not in found:
            add_with_operands(x, found)
    found[op] = None


def strictly(ops: Iterable[Op]) -> Any:
    """Whether NumPy might warn about one of these operations."""
    return True if any(map(may_warn, ops)) else None


def decision(op: Op) -> str:
    """In words, what it means that a program was left at this op."""
    place = f"{op.site.place}, in {op.site.function}"
    if op.kind == "guard":
        return f"another decision at {place} (it was {op.value!r})"
    return f"a value of another type or shape at {place}"


def decided(op: Op) -> Guard:
    """What is made sure of at this op."""
    if op.kind == "guard":
        return Guard(decision_at(op.site), repr(op.value), "decision")
    fn = op.args[1] if op.fn is draw else op.fn
    return Guard(f"the value of {fn_name(fn)} {where(op.site)}", seen("type", op.value))


def decisions_in(fn: Any) -> Iterable[tuple[str, str]]:
    """The decisions that a rolled loop takes, and how they came out."""
    loop = getattr(fn, "__self__", fn)  # or what it comes to where it is careful
    for choice in loop.family.choices() if isinstance(loop, LoopFunction) else ():
        if isinstance(choice.subject, Op):
            for outcome, _ in choice.branches:
                yield decision_at(choice.subject.site), repr(outcome)


def decision_at(site: Site) -> str:
    """What a decision is called, by which those of kept programs are found."""
    return f"the decision {where(site)}"


def where(site: Site) -> str:
    return f"in {site.function} ({site.place})"


def is_thing(value: Any) -> bool:
    """Whether something is an object of a class of the user's, and none of Wengert's."""
    kind = type(value)
    if not flags_of(kind) & HEAP_TYPE or isinstance(value, (type, types.ModuleType)):
        return False
    return not str(static(kind, "__module__")).startswith("wengert.")


def constants_in(tree: Any) -> Iterable[Any]:
    """The constants in a nested argument."""
    todo = [tree]
    while todo:
        tree = todo.pop()
        kind = type(tree)
        if issubclass(kind, Op):
            continue
        if issubclass(kind, (tuple, list)):
            todo += tree
        elif issubclass(kind, dict):
            todo += tree.values()
        elif not issubclass(kind, (External, slice)):
            yield tree


def may_end(op: Op) -> bool:
    """Whether an operation of the forward run may raise, warn or give another type: it stays, needed or not."""
    if type(op) is FloatOp:
        return op.fn not in SAFE
    if op.kind != "call":
        return False
    if op.fn is element and type(primal(op.args[0])) is Column:
        return False
    if type(op.fn) is LoopFunction:  # with decisions in it
        return True
    return may_warn(op) or not is_steady(op) or may_raise(op)


# These move numbers about, and warn only of a cast.
MOVES = frozenset(
    (operator.getitem, element, setitem, scatter, np.reshape, np.transpose, np.zeros, np.positive)
    + (np.copy, np.full, np.swapaxes, np.expand_dims, np.squeeze, np.ravel, np.broadcast_to, expand)
    + (np.ndarray.reshape, np.ndarray.transpose, np.ndarray.copy, np.concatenate, np.stack)
)


def may_warn(op: Op) -> bool:
    """Whether NumPy might warn about an operation, or it changes whether it does."""
    if type(op) is FloatOp:
        return False
    known = hashable(op.fn)
    if known and op.fn in CHANGES:
        return True
    if op.kind != "call" or op.fn is silent:
        return False
    if known and op.fn in MOVES:
        return casts(op)
    values = op.value if isinstance(op.value, tuple) else (op.value,)
    return any(isinstance(x, (np.ndarray, np.generic)) for x in values)


def casts(op: Op) -> bool:
    """Whether numbers are moved to where not all of them have room."""
    if "dtype" in op.kwargs:
        return op.fn is not np.zeros
    moved = op.args[2:3] if op.fn is setitem else op.args[1:2] if op.fn is np.full else ()
    return any(not has_room(getattr(op.value, "dtype", None), x) for x in moved)


def has_room(dtype: Any, value: Any) -> bool:
    """Whether all values of a variable's type, or this constant, are numbers of a dtype."""
    if dtype is None or isinstance(value, Op):
        return dtype is not None and np.can_cast(np.asarray(value.value).dtype, dtype, "safe")
    try:
        with np.errstate(all="raise"):
            np.asarray(value).astype(dtype)
    except (FloatingPointError, TypeError, ValueError):
        return False
    return True


def is_fixed(tree: Any) -> bool:
    """Whether nothing but constants is in a tuple."""
    return all(map(is_fixed, tree)) if type(tree) is tuple else is_one_of(type(tree), LITERALS)


def is_plain_effect(op: Op) -> bool:
    """Whether an effect writes to a container, a variable, or an object of a Python class, or prints."""
    if op.fn is setattr or op.fn is put_own:
        return bool(type(op.args[0]).__flags__ & HEAP_TYPE) or isinstance(
            op.args[0], (type, types.ModuleType, types.FunctionType)
        )
    return op.fn is print or (bool(op.args) and isinstance(op.args[0], External))
