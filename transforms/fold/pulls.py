"""Pullbacks of single ops, as the rules of the engine come down to them, as expressions."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from ...rules.operators import finite_power
from ...rules.words import with_article
from ...tracer.errors import NoRuleError
from ...tracer.fold.region import Constant, Op
from ...tracer.tape import NOWHERE, Input, Tape, ops_in
from ...tracer.tape import Op as TapeOp
from ..expand import Expansion, expansion_of
from .plain import persists
from .ways import Unemittable
from .writer import Writer

Place = int | str  # of an operand among those of an op, or
GIVEN, ITSELF = "d", "z"  # the cotangent that comes in, and the value of the op itself, or
LIKE = "like"  # with the position of an operand: something of its shape
SLOT = re.compile("µ\\w+?µ")  # what stands in a form for a name
EXAMPLES = {float: (1.5, 0.5), int: (2, 1), bool: (True, True)}
NUMBERS = (float, int, bool)


def example(
    op: Op, wanted: Collection[int], which: int = 0
) -> tuple[TapeOp, list[TapeOp], set[Any]]:
    """The op on a tape of its own with an example for each operand: the op, its inputs, and those of ``wanted``.

    ``wanted`` are positions among the operands.
    """
    tape = Tape()
    args: list[Any] = []
    inputs: list[TapeOp] = []
    active: set[Any] = set()
    for i, x in enumerate(op.args):
        if isinstance(x, Op):
            if x.type not in EXAMPLES:
                raise Unemittable(f"{op.fn} of {with_article(x.type.__name__)}")
            entry = Input("x", EXAMPLES[x.type][which], tape)
            inputs.append(entry)
            args.append(entry)
            if i in wanted:
                active.add(entry)
        else:
            args.append(x.value if isinstance(x, Constant) else x)
    value = EXAMPLES[op.type][which] if op.type in EXAMPLES else None
    return TapeOp(op.fn, tuple(args), value, NOWHERE, tape), inputs, active


class Form(NamedTuple):
    """What the pullback of an operation comes to, with slots in the place of names.

    ``reads`` are the operands whose values it needs, by their positions (that of the op's own value is `ITSELF`; see
    `LIKE`), and ``statements`` come before the ``results``: the expressions that operands get, by their positions.
    Those of ``fresh`` are arrays that nobody else holds, and of those of ``places`` all is zero but what stands at an
    index: there are the texts of both. Those of ``spread`` are one number all over, of which there is the text.
    """

    reads: list[Place]
    statements: list[tuple[str, str]]
    results: list[tuple[int, str]]
    fresh: set[int]
    places: dict[int, tuple[str, str]]
    spread: dict[int, str]


class Given(NamedTuple):
    """What an operand gets: its position, an expression, and the fields of the `Form` that are about it."""

    position: int
    text: str
    fresh: bool
    place: tuple[str, str] | None
    number: str | None


class Pulls:
    """Writes what a cotangent comes to at the operands of an op."""

    def __init__(
        self, writer: Writer, value: Callable[[Any], str], like: Callable[[Any], str]
    ) -> None:
        self.writer = writer
        self.value = value  # the source text of an operand's value in the reverse part
        self.like = like  # that of something of its shape
        self.forms: dict[Any, Form] = {}

    def write(self, op: Op, dz: str, add: Callable[[str], None]) -> list[tuple[Op, str]]:
        """The operands that get a cotangent out of ``dz``, each with its text; ``add`` takes statements."""
        writer = self.writer
        args = [*map(writer.resolve, op.args)]
        wanted = tuple([i for i, x in enumerate(args) if writer.active(x)])
        key = (op.fn, op.type, wanted, *[x.type if type(x) is Op else described(x) for x in args])
        form = self.forms.get(key)
        if form is None:
            form = self.forms[key] = self.form(Op(None, op.fn, tuple(args), op.type, None), wanted)
        return [(args[x.position], x.text) for x in self.filled(form, op, dz, add)]

    def filled(self, form: Form, op: Op, dz: str, add: Callable[[str], None]) -> list[Given]:
        """The results of a form for an op whose value has the cotangent ``dz``."""
        names = {slot(GIVEN): dz}
        for place in form.reads:
            if isinstance(place, int):
                names[slot(place)] = self.value(op.args[place])
            elif place == ITSELF:
                names[slot(place)] = self.value(op)
            else:
                names[slot(place)] = self.like(op.args[int(place[len(LIKE) :])])

        def text_of(text: str) -> str:
            return SLOT.sub(lambda found: names[found[0]], text)

        for name, text in form.statements:
            names[name] = self.writer.fresh("q")
            add(f"{names[name]} = {text_of(text)}")
        found = []
        for i, text in form.results:
            at = form.places.get(i)
            whole = None if at is None else (text_of(at[0]), text_of(at[1]))
            number = text_of(form.spread[i]) if i in form.spread else None
            found.append(Given(i, text_of(text), i in form.fresh, whole, number))
        return found

    def form(self, op: Op, wanted: Collection[int]) -> Form:
        """How the rule comes down."""
        form = Form([], [], [], set(), {}, {})
        expansion, leaves, inputs = expanded(op, wanted)
        if expansion is None:
            return form
        self.writer.opaque |= not persists(expansion.tape, expansion.tape.inputs[0])
        spots = dict(
            zip(inputs, [i for i, x in enumerate(op.args) if isinstance(x, Op)], strict=True)
        )
        sources, constants = entries_of(expansion.tape, leaves, spots)
        steps = Steps(self.writer, sources, constants, form)
        results = steps.write(expansion.tape)
        form.results.extend(zip([spots[leaves[i]] for i in expansion.wanted], results, strict=True))
        return form


def entries_of(
    tape: Tape, leaves: Iterable[Any], places: Mapping[Any, Place]
) -> tuple[dict[Any, Place], dict[Any, Any]]:
    """What the inputs of an expansion are: places of operands, or constants."""
    given, z, *entries = tape.inputs
    sources: dict[Any, Place] = {given: GIVEN, z: ITSELF}
    constants: dict[Any, Any] = {}
    for entry, leaf in zip(entries, leaves, strict=True):
        if isinstance(leaf, TapeOp):
            sources[entry] = places[leaf]
        else:
            constants[entry] = leaf
    return sources, constants


def described(x: Any) -> Any:
    """A constant operand, as it stands for the form of a pullback."""
    return x if isinstance(x, Constant) else x.type if isinstance(x, Op) else (type(x), repr(x))


def slot(place: Place) -> str:
    """What stands in a form for the value of an operand, or for another name."""
    return f"µ{place}µ"


def expanded(op: Op, wanted: Collection[int]) -> tuple[Expansion | None, list[Any], list[TapeOp]]:
    """How the rule of an op comes down, the leaves that it is given, and those of them that are operands."""
    for which in (0, 1):  # the second where the function is not defined at the first
        entry, inputs, active = example(op, wanted, which)
        try:
            expansion, leaves = expansion_of(entry, active, 1.0)
        except NoRuleError as error:
            failure = Unemittable(str(error))
            failure.__cause__ = error
            continue
        if expansion is not None:
            looked_at = any(isinstance(leaves[i], TapeOp) for i in expansion.drawn)
            if expansion.momentary or looked_at or any(expansion.forms):
                raise Unemittable(f"the rule of {op.fn} looks at values")
        return expansion, leaves, inputs
    raise failure


class Steps:
    """The ops of an expansion as nested expressions, in a form.

    ``sources`` says which operand an input of the expansion is, ``constants`` which number or other value.
    """

    def __init__(
        self, writer: Writer, sources: dict[Any, Place], constants: dict[Any, Any], form: Form
    ) -> None:
        self.writer = writer
        self.form = form
        self.sources = sources
        self.names: dict[Any, str] = {}
        self.constants = {x: value for x, value in constants.items() if type(value) in NUMBERS}
        self.others = {x: value for x, value in constants.items() if type(value) not in NUMBERS}

    def write(self, tape: Tape, forms: Sequence[str | None] = ()) -> list[str]:
        """The texts of the results, which have these forms (see `Expansion`)."""
        uses: dict[Any, int] = {}
        for op in tape.ops:
            for x in op.operands():
                uses[x] = uses.get(x, 0) + 1
        for x in ops_in(tape.result):
            uses[x] = uses.get(x, 0) + 1
        for op in tape.ops:
            if op.kind == "input":
                continue
            if op.kind != "call":
                raise Unemittable(f"the rule of {tape.name} is not plain arithmetic")
            if op in uses and not self.folds(op):
                text = self.call(op)
                if uses[op] == 1 or text.isidentifier():
                    self.names[op] = text if text.isidentifier() else f"({text})"
                else:
                    name = self.names[op] = slot(f"q{len(self.form.statements)}")
                    self.form.statements.append((name, text))
        given = zip_longest(tape.result, forms)
        return [self.result(x, form) for x, form in given]

    def result(self, x: Any, form: str | None) -> str:
        return unwrapped(self.text(x))

    def folds(self, op: TapeOp) -> bool:
        """Compute what depends on constants alone."""
        values = [self.constants.get(x, x) if isinstance(x, TapeOp) else x for x in op.args]
        if op.kwargs or not all(type(x) in NUMBERS for x in values):
            return False
        try:
            value = op.fn(*values)
        except Exception:  # it will be raised where the program computes it
            return False
        if type(value) not in NUMBERS or (type(value) is float and not math.isfinite(value)):
            return False
        self.constants[op] = value
        return True

    def call(self, op: TapeOp) -> str:
        """The text of one op."""
        fn, args = op.fn, op.args
        if op.kwargs:
            raise Unemittable(f"the rule of {op.fn} is not plain arithmetic")
        if fn is operator.pow and self.constant(args[1]) == 1:
            return self.text(args[0])
        p, y = [self.constant(x) for x in args[1:]] if fn is finite_power else (None, None)
        if p is not None and p < 0 == y:
            return "0.0"  # any number will do: ``y`` is a factor of the slope
        if p is not None and y is not None and not p < 0 <= y == round(y):
            base, exponent, _ = map(self.text, args)
            power = base if p == 1 else f"{base} ** {exponent}"
            return f"0.0 if {base} == 0 else {power}" if p < 0 < y else power
        return self.writer.expression(fn, [self.text(x) for x in args])

    def constant(self, x: Any) -> Any:
        """The number that an operand is, or None."""
        x = self.constants.get(x, x) if isinstance(x, TapeOp) else x
        return x if type(x) in NUMBERS else None

    def text(self, x: Any) -> str:
        if isinstance(x, TapeOp):
            if x in self.constants:
                return self.writer.constant(self.constants[x])
            if x in self.others:
                return self.writer.name(self.others[x])
            if x not in self.names:
                place = self.sources[x]
                self.names[x] = slot(place)
                if place != GIVEN:
                    self.form.reads.append(place)
            return self.names[x]
        if type(x) is tuple:
            return f"({', '.join(map(self.text, x))},)"
        if type(x) is list or type(x) is dict or type(x) is slice:
            raise Unemittable("a rule that puts operands together")
        return self.writer.constant(x) if type(x) in NUMBERS else self.writer.name(Constant(x))


def unwrapped(text: str) -> str:
    """A whole expression without the parentheses around it."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for i, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if not depth and i < len(text) - 1:
            return text
    return text[1:-1]
