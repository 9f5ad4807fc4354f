"""Rescue: gradients by plain arithmetic, checked at the end, and computed again with care where that failed.

Words
-----
plain     arithmetic in which 0*inf is NaN. The rules ask for more: there zero wins (see `product`).
witness   a value that cannot be finite unless everything that it covers is: each element of what it covers goes into
          some element of it by operations through which NaN and infinity persist.
careful   the program with the products and quotients of the rules, as they were recorded. It runs from the inputs.

A product whose zeros must win costs a look at each of its elements. Plain arithmetic and one look at a witness, which
is often a small array or even a number, gives the same: where plain arithmetic yields something else, it yields NaN or
infinity, and a cotangent that is not finite makes the witness so. Then the careful program answers.
"""

from __future__ import annotations

import cmath
import operator
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ..rules import numpy_products, numpy_shapes
from ..rules.broadcasting import cast, expand
from ..rules.mutation import of_places, scatter, scatter_add, setitem
from ..rules.zeros import product, quotient, ratio
from ..tracer.kinds import isinstance
from ..tracer.tape import NOWHERE, Op, Tape, append, element
from .assemble import WRITES, Assembly, define, source_of

ELEMENTWISE = frozenset(
    (
        *(operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pos),
        *(np.add, np.subtract, np.multiply, np.divide, np.negative, np.positive),
        *(
            np.add.reduce,
            np.sum,
            np.reshape,
            np.transpose,
            np.copy,
            np.asarray,
            expand,
            cast,
            float,
            np.float64,
        ),
        *(scatter, scatter_add, of_places, np.array),
    )
)  # each element of each operand goes into some element of the result
TRANSPARENT = ELEMENTWISE | frozenset(
    (
        *(product, quotient, ratio, operator.getitem, setitem, np.where, np.concatenate, np.stack),
        *(operator.matmul, np.matmul, np.dot, np.outer, np.tensordot, np.einsum, np.inner, np.vdot),
        *(np.squeeze, np.expand_dims, np.swapaxes, np.moveaxis, np.ravel, np.diagonal, np.trace),
        *(np.cumsum, np.flip, np.conjugate, numpy_shapes.on_diagonal, numpy_products.part_of),
    )
)  # linear in the cotangent: what is not finite stays so, or is dropped as if it had been zero
QUOTIENTS = frozenset((operator.truediv, np.divide, quotient, ratio))


def swallowed(ops: Sequence[Op], fixed: Collection[Op]) -> set[Op]:
    """The variables of a sweep that go into something which could turn NaN or infinity into a number."""
    lost: set[Op] = set()
    for op in reversed(ops):
        if op in fixed:
            continue
        try:
            known = op.fn in TRANSPARENT
        except TypeError:  # a callable that is not hashable
            known = False
        if not known or op in lost:
            lost.update(op.operands())
        elif op.fn in QUOTIENTS and isinstance(op.args[1], Op):
            lost.add(op.args[1])
    return lost


def witnesses(
    ops: Sequence[Op],
    risky: Collection[Op],
    results: Collection[Op],
    whole: Collection[Op] = (),
    watched: Collection[Op] = (),
) -> list[Op]:
    """Ops that cover all of ``risky`` that is needed and all of ``watched``: results where possible, small ones first.

    ``whole`` are the writes which overwrite nothing but zeros.
    """
    needed = set(results)
    for op in reversed(ops):
        if op in needed:
            needed.update(op.operands())
    left = needed.intersection(risky).union(watched)
    covered: set[Op] = set()
    chosen: list[Op] = []

    def cover(op: Op) -> bool:
        before = len(left)
        queue = [op]
        while queue:
            x = queue.pop()
            if x in covered:
                continue
            covered.add(x)
            left.discard(x)
            if x.fn in ELEMENTWISE:
                divisor = x.args[1] if x.fn in QUOTIENTS else None
                queue += [
                    y for y in x.operands() if y is not divisor and (y.kind == "call" or y in left)
                ]
            elif x in whole:
                queue += [y for y in (x.args[0], x.args[2]) if isinstance(y, Op)]
        return len(left) < before

    for op in sorted(results, key=lambda op: np.size(op.value)):
        if left and cover(op):
            chosen.append(op)
    for op in [*reversed(ops), *risky]:  # those too that are inputs
        if not left:
            break
        if op in left:
            cover(op)
            chosen.append(op)
    return chosen


class Rescue:
    """Gives back plain gradients if the witnesses are finite, and else those of the careful program.

    It is called as ``rescue(witnesses, gradients, inputs)``. The careful program is kept as source until it is needed.
    """

    __name__ = "rescue"
    steady = True

    def __init__(self, careful: Tape, drawn: Collection[Op] = ()) -> None:
        self.namespace: dict[str, Any] = {}
        self.source: str | None = source_of(careful, "careful", self.namespace, drawn)
        self.function: Any = None

    def __call__(
        self, seen: tuple[Any, ...], gradients: tuple[Any, ...], inputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        if all(cmath.isfinite(x if np.ndim(x) == 0 else np.vdot(x, x)) for x in seen):
            return gradients
        return self.careful(*inputs)

    def careful(self, *inputs: Any) -> tuple[Any, ...]:
        """The gradients from the inputs, by the program as it was recorded."""
        if self.function is None:
            assert self.source is not None
            self.function = define(self.source, "careful", self.namespace)
            self.source = None
        with np.errstate(all="ignore"):
            found = self.function(*inputs)
        return tuple([x.copy() if isinstance(x, np.ndarray) else x for x in found])


def write_rescue(self: Assembly, op: Op, dying: Sequence[Op], pad: str, lines: list[str]) -> None:
    """``if not isfinite(…): gradients = careful(inputs)``."""
    seen, gradients, inputs = op.args
    checks = [self.argument(x) for x in seen]
    checks = [
        name if np.ndim(x.value) == 0 else f"{name}.dot({name})" if x.value.ndim == 1 else
        f"{self.function(np.vdot)}({name}, {name})"
        for name, x in zip(checks, seen, strict=True)
    ]  # fmt: skip
    names = []
    for x in gradients:
        name = self.names[x]
        if x not in dying or x in self.bound or name in names:
            own = self.new_name()
            lines.append(f"{pad}{own} = {name}")
            name = own
        names.append(name)
    given = ", ".join([self.argument(x) for x in inputs])
    careful = self.named(op.fn.careful, "careful")
    target = ", ".join(names) + ("," if len(names) == 1 else "")
    is_complex = any(np.iscomplexobj(x.value) for x in seen)
    isfinite = self.function(cmath.isfinite) if is_complex else "math.isfinite"
    lines.append(f"{pad}if not {isfinite}({' + '.join(checks)}): {target} = {careful}({given})")
    self.elements[op] = names
    self.release([x for x in dying if x is not op and self.names[x] not in names], pad, lines)


WRITES[Rescue] = write_rescue


def rescued(
    out: Tape,
    risky: Collection[Op],
    gradients: list[Op],
    careful: Tape,
    whole: Collection[Op],
    watched: Collection[Op],
) -> list[Op]:
    """Append the check of ``gradients`` to a tape; gives what stands for them from then on."""
    seen = witnesses(out.ops, risky, gradients, whole, watched)
    if not seen:
        return gradients
    drawn = [op for op in careful.ops if getattr(op.fn, "impure", False)]  # not to be drawn again
    inputs = (*careful.inputs, *drawn)
    values = tuple([x.value for x in gradients])
    fn = Rescue(careful, drawn)
    op = append(out, fn, (tuple(seen), tuple(gradients), inputs), {}, values, NOWHERE)
    return [append(out, element, (op, i), {}, x, NOWHERE) for i, x in enumerate(values)]
