"""Calls of functions of arrays without a pullback kept: what their rules come down to, for arrays of any sizes.

Words
-----
sample    an op on a tape of its own, with an example for each operand. No two axes of an example have one size, so
          that a size which the rule makes use of tells which it is; it stands in the form as ``x.shape[0]``.
square    a sample in which all sizes are one, for a product of matrices: its rule makes no use of them.
aligned   a sample in which the axes of several operands fit together from the last one on, as NumPy lays them.

A rule may also decide by sizes, where an operand is spread over others. So a call that is elementwise is brought down
for numbers, and for operands with all axes of the value: what these get is summed up where the sizes differ after all.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...rules.broadcasting import expand
from ...rules.mutation import scatter
from ...rules.numpy_ufuncs import methods
from ...rules.registry import Rule
from ...rules.words import with_article
from ...rules.zeros import product, quotient
from ...tracer.errors import WengertError
from ...tracer.fold.region import Constant, Kind, Op, Reference, Several, kind_of
from ...tracer.tape import NOWHERE, Input, KeywordOp, Tape
from ...tracer.tape import Op as TapeOp
from ..expand import expansion_of
from ..kernels import REDUCTIONS, is_fresh
from .arrays import dtype_of, frame_of, is_elementwise, is_narrow, is_of_floats
from .plain import persists
from .pulls import LIKE, Form, Place, Steps, described, entries_of, slot
from .ways import Unemittable
from .writer import Writer

SIZES = (17, 19, 23)  # of the axes of an example, from the last one
SQUARE = 17
PRODUCTS = frozenset(
    (operator.matmul, operator.imatmul, np.matmul, np.dot, *methods("dot"))
)  # of vectors and matrices, in which nothing is spread
TOLD = frozenset(
    (
        *(operator.getitem, np.sum, np.mean, np.prod, np.max, np.min, np.amax, np.amin, np.cumsum),
        *(np.transpose, np.swapaxes, np.diag, np.trace, np.copy),
        *(fn for name in ("sum", "mean", "prod", "max", "min", "cumsum") for fn in methods(name)),
        *(fn for name in ("transpose", "swapaxes", "trace") for fn in methods(name)),
    )
)  # whose rules make use of sizes, and decide nothing by them
NUMBERS: dict[Any, Any] = {
    float: 1.5,
    int: 2,
    bool: True,
    np.float64: np.float64(1.5),
    np.float32: np.float32(1.5),
    np.int64: np.int64(2),
    np.bool_: np.bool_(True),
}


class Lowered:
    """The forms of calls; ``form`` gives None where the rule is to be called."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.forms: dict[Any, Form | None] = {}

    def has(self, op: Op, rule: Rule, wanted: Sequence[bool]) -> bool:
        """Whether no pullback is kept."""
        return self.form(op, rule, wanted) is not None

    def form(self, op: Op, rule: Rule, wanted: Sequence[bool]) -> Form | None:
        """How the rule comes down for an op of which these operands get a cotangent."""
        args = tuple(map(self.writer.resolve, op.args))
        if type(op) is Several or any(isinstance(x, Reference) for x in op.args):
            return None
        frame = frame_of(op)
        known = [*map(described, args)]
        key = (op.fn, frame, op.type, tuple(wanted), *known)
        if key not in self.forms:
            bare = Op(None, op.fn, args, op.type, None)
            try:
                self.forms[key] = self.brought_down(bare, frame, rule, wanted)
            except (Unemittable, WengertError):
                self.forms[key] = None
        return self.forms[key]

    def brought_down(self, op: Op, frame: Any, rule: Rule, wanted: Sequence[bool]) -> Form:
        for x, here in zip(op.args, wanted, strict=True):
            if here and not is_of_floats(x.type):
                raise Unemittable("a derivative by an integer")
        if is_elementwise(op, rule):
            for x, here in zip(op.args, wanted, strict=True):
                if here and axes_of(x) not in (0, axes_of(op)):
                    raise Unemittable("an operand that is spread")
                # What it gets may have to be summed up, which comes before it is rounded.
                if here and axes_of(x) and dtype_of(x) != dtype_of(op):
                    raise Unemittable("an operand of another precision")
        elif op.fn in PRODUCTS:
            if any(axes_of(x) not in (1, 2) for x in op.args):
                raise Unemittable("a stack of matrices")
        elif op.fn not in TOLD:
            raise Unemittable("a rule that may decide by sizes")
        sample = Sample(op, frame, op.fn in PRODUCTS)
        sample.told = op.fn in TOLD
        if type(op.type) is Kind:
            dtype = op.type.dtype if is_narrow(op) else np.dtype(float)
            return self.form_of(sample, wanted, np.full(sample.op.value.shape, 0.5, dtype))
        if is_narrow(op):
            return self.form_of(sample, wanted, op.type(0.5))
        one, other = [self.form_of(sample, wanted, d) for d in (0.5, np.float64(0.5))]
        if one != other:
            raise Unemittable("a rule that goes by the class of the cotangent")
        return one

    def form_of(self, sample: Sample, wanted: Sequence[bool], dz: Any) -> Form:
        """The form for a cotangent of this type."""
        asked = {x for i, x in sample.inputs.items() if wanted[i]}
        expansion, leaves = expansion_of(sample.op, asked, dz)
        looked = expansion is None or any(isinstance(leaves[i], TapeOp) for i in expansion.drawn)
        if expansion is None or looked or expansion.momentary or "zeroed" in expansion.forms:
            raise Unemittable("a rule that looks at values")
        self.writer.opaque |= not persists(expansion.tape, expansion.tape.inputs[0])
        places = {x: i for i, x in sample.inputs.items()}
        sources, constants = entries_of(expansion.tape, leaves, places)
        form = Form([], [], [], set(), {}, {})
        found = [places[leaves[i]] for i in expansion.wanted]
        if found != [i for i, here in enumerate(wanted) if here]:
            raise Unemittable("an operand without a cotangent")
        kernels = Kernels(self.writer, sources, constants, form, sample)
        results = kernels.write(expansion.tape, expansion.forms)
        form.results.extend(zip(found, results, strict=True))
        for i, x, text in zip(found, expansion.tape.result, results, strict=True):
            if type(x) is tuple or (
                isinstance(x, TapeOp) and is_fresh(x) and not text.isidentifier()
            ):
                form.fresh.add(i)
            if type(x) is tuple and is_basic(x[1]):
                form.places[i] = kernels.place(x)
            if isinstance(x, TapeOp) and x.fn is expand and is_number(x.args[0]):
                form.spread[i] = kernels.text(x.args[0])
        return form

    def value(self, op: Op, names: Sequence[str]) -> str | None:
        """The text of a call whose operands have these names, where to call its function would cost more."""
        if op.fn not in REDUCTIONS or any(isinstance(x, Reference) for x in op.args):
            return None
        try:
            sample = Sample(op, frame_of(op), False)
        except Unemittable:
            return None
        text = self.writer.text
        for i, x in sample.inputs.items():
            text.names[x] = names[i]
            text.unsized.add(x)
        return text.call(sample.op)


def is_basic(index: Any) -> bool:
    """Whether an index on a sample's tape is of integers and slices, which name no element twice."""
    if type(index) is tuple:
        return all(type(x) is not tuple and is_basic(x) for x in index)
    if isinstance(index, TapeOp):
        return type(index.value) is int
    return index is None or index is Ellipsis or type(index) in (int, slice)


def is_float(x: Any) -> bool:
    """Whether an op on a sample's tape is of floats."""
    return isinstance(x, TapeOp) and is_of_floats(kind_of(x.value))


def is_number(x: Any) -> bool:
    """Whether it is of floats that are no arrays."""
    return is_float(x) and np.ndim(x.value) == 0


def axes_of(x: Any) -> int:
    """How many axes the value of an operand has."""
    return x.type.ndim if isinstance(x, Op) and type(x.type) is Kind else 0


class Sample:
    """The sample of an op: on the tape it is ``op``, and ``inputs`` are its operands by their positions.

    ``told`` says whether a size tells which it is, and its rule may make use of it.
    """

    told = False

    def __init__(self, op: Op, frame: Any, square: bool) -> None:
        self.tape = Tape()
        self.inputs: dict[int, TapeOp] = {}
        found: list[Any] = []
        for i, x in enumerate(op.args):
            if isinstance(x, Op):
                entry = Input("x", example(x.type, square), self.tape)
                self.inputs[i] = entry
                found.append(entry)
            else:
                found.append(x.value if isinstance(x, Constant) else x)
        left = iter(found)
        args = tuple([filled(x, left) for x in frame[1]])
        kwargs = {name: filled(x, left) for name, x in frame[2]}
        try:
            with np.errstate(all="ignore"):
                value = op.fn(*valued(args), **valued(kwargs))
        except Exception:  # of these sizes there is none
            raise Unemittable("a call that examples do not fit") from None
        if kind_of(value) != op.type:
            raise Unemittable("a call that gives something else for examples")
        if kwargs:
            self.op: TapeOp = KeywordOp(op.fn, args, kwargs, value, NOWHERE, self.tape)
        else:
            self.op = TapeOp(op.fn, args, value, NOWHERE, self.tape)

    def size(self, value: Any) -> tuple[int, str] | None:
        """Which operand has a size or shape, and what it is of it; None for another number."""
        for i, x in self.inputs.items():
            shape = np.shape(x.value)
            if not shape:
                continue
            if value == shape:
                return i, ".shape"
            if type(value) is int and value in shape:
                return i, f".shape[{shape.index(value)}]"
            if type(value) is int and value == np.size(x.value):
                return i, ".size"
        return None


def example(kind: Any, square: bool) -> Any:
    """A value of a type. An array does not tell how it lies in memory."""
    if type(kind) is not Kind:
        if kind not in NUMBERS:
            raise Unemittable(f"{with_article(kind.__name__)}")
        return NUMBERS[kind]
    if not 0 < kind.ndim <= len(SIZES):
        raise Unemittable("an array of so many axes")
    shape = (SQUARE,) * kind.ndim if square else SIZES[: kind.ndim][::-1]
    return np.broadcast_to(np.full((), 0.5 if kind.dtype.kind == "f" else 1, kind.dtype), shape)


def filled(frame: Any, operands: Iterator[Any]) -> Any:
    """An argument with operands in the places of its frame."""
    if frame == "x":
        return next(operands)
    word, *parts = frame
    if word == "is":
        return parts[0]
    if word == "dict":
        return {name: filled(x, operands) for name, x in parts}
    inside = [filled(x, operands) for x in parts]
    return slice(*inside) if word == "slice" else inside if word == "list" else tuple(inside)


def valued(tree: Any) -> Any:
    """An argument with values for operands."""
    return mapped(tree, lambda x: x.value if isinstance(x, TapeOp) else x)


def mapped(tree: Any, leaf: Callable[[Any], Any]) -> Any:
    """A nested argument with ``leaf(x)`` for each of its leaves, and for a tuple where that gives something else."""
    kind = type(tree)
    if kind is tuple:
        found = leaf(tree)
        return found if found is not tree else tuple([mapped(x, leaf) for x in tree])
    if kind is list:
        return [mapped(x, leaf) for x in tree]
    if kind is dict:
        return {name: mapped(x, leaf) for name, x in tree.items()}
    if kind is slice:
        return slice(*[mapped(x, leaf) for x in (tree.start, tree.stop, tree.step)])
    return leaf(tree)


class Kernels(Steps):
    """The ops of an expansion as the programs of one way have them, with sizes by the operands that have them."""

    def __init__(
        self,
        writer: Writer,
        sources: dict[Any, Place],
        constants: dict[Any, Any],
        form: Form,
        sample: Sample,
    ) -> None:
        super().__init__(writer, sources, constants, form)
        self.sample = sample
        self.tape = Tape()

    def result(self, x: Any, form: str | None) -> str:
        if form == "scatter":
            return self.call(TapeOp(scatter, x, None, NOWHERE, self.tape))
        return super().result(x, form)

    def place(self, x: tuple[Any, ...]) -> tuple[str, str]:
        """The index of what is scattered, as it stands in brackets, and its text."""
        d, index, *_ = mapped(x, self.operand)
        return self.writer.text.index(index), self.writer.text.argument(d)

    def call(self, op: TapeOp) -> str:
        args, kwargs = mapped(op.args, self.operand), mapped(op.kwargs, self.operand)
        if op.fn is operator.pow and self.constant(args[1]) == 1 and is_float(op.args[0]):
            return self.text(op.args[0])
        text = self.writer.text
        if op.fn is product and type(args[1]) in (float, int) and math.isfinite(args[1]):
            return text.call(TapeOp(operator.mul, args, op.value, op.site, self.tape))
        if op.fn is product or op.fn is quotient:
            return f"{self.writer.careful(op.fn)}({', '.join(map(text.argument, args))})"
        if kwargs:
            return text.call(KeywordOp(op.fn, args, kwargs, op.value, op.site, self.tape))
        return text.call(TapeOp(op.fn, args, op.value, op.site, self.tape))

    def operand(self, x: Any) -> Any:
        """What stands for an operand of an op: a number, or an op that has a name."""
        if isinstance(x, TapeOp):
            if x in self.constants:
                return self.constants[x]
            self.writer.text.names[x] = self.text(x)
            return x
        found = self.sample.size(x) if type(x) in (int, tuple) else None
        if found is None:
            if type(x) is int and x >= min(SIZES):
                raise Unemittable("a number that may be a size")
            return x
        i, part = found
        if not self.sample.told:
            raise Unemittable("a rule that makes use of sizes")
        entry = Input("size", x, self.tape)
        place = f"{LIKE}{i}"
        if place not in self.form.reads:
            self.form.reads.append(place)
        self.writer.text.names[entry] = f"{slot(place)}{part}"
        return entry
