"""The program of a region: guards, all ways that were seen, and the reverse sweep of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...tracer.fold.region import Draw, End, Folded, Kind, Loop, Written, is_memory, is_stream
from ...tracer.fold.region import Op as RegionOp
from ...tracer.fold.run import Known
from ...tracer.kinds import MISSING
from ...tracer.outcome import Outcome
from ...tracer.reads import Place
from ...tracer.run import Run, describe
from ...tracer.structure import FIXED, Branch, Leaf, Tree, has_leaf, sources
from ...tracer.tape import NOWHERE, Input, Op, Tape
from ..guards import GuardWriter
from ..programs import PAD, Builder, Program, Unfit
from .arrays import gradient_by, is_call, is_numpy_type, is_of_floats, own_gradient_by
from .deferred import ROWS, SEVERAL
from .multiplied import MAKERS, makers_in
from .source import Emission, Unemittable
from .structured import structured

EXAMPLES: dict[type, Any] = {
    float: 1.5,
    int: 1,
    str: "",
    np.float64: np.float64(1.5),
    np.float32: np.float32(1.5),
    np.int64: np.int64(1),
    np.bool_: np.bool_(True),
}
FEW, OFTEN = 16, 4  # rows, where an op in so many is a call of a function of arrays
UNSEEN = "it goes a way that no call has gone before"


def run_of(known: Known, f: Any) -> tuple[Run, dict[RegionOp, Input]]:
    """What a builder asks of a run, and the inputs that stand for those of the region."""
    done = Run(Tape(*describe(f)))
    done.reads, done.outcome = known.outside.reads, Outcome()
    inputs = {}
    for place, op in known.inputs:
        value = example(op.type)
        inputs[op] = Input(str(place), value, done.tape, "argument", place)
    done.tape.ops = [*inputs.values()]
    done.args = [tree_of(tree, inputs) for tree in known.trees]
    return done, inputs


CARRYING = ("input", "load", "result", "parameter")  # ops that give memories which others have made


def may_give(folded: Folded) -> bool:
    """Whether the lists and dicts of a region are what they are in plain Python: nothing in them is laid out anew."""
    return not any(
        is_memory(op.type) and type(op.type) is not Written and op.type not in (list, dict)
        for op in folded.ops()
        if op.fn not in CARRYING
    )


def written(state: Any, outs: Iterator[Any], value: Callable[[Any], str], folded: Folded) -> str:
    """The source text of what a call gives, by its state (see `Recorder.flat`) and what is in it."""
    if type(state) is not tuple:
        if is_memory(state) and type(state) is not Written:
            if state not in (list, dict) or not may_give(folded):
                raise Unemittable(OTHERS)
        return value(next(outs))
    kind, *rest = state
    if kind == "tuple":
        parts = [written(x, outs, value, folded) for x in rest]
        return f"({''.join(part + ', ' for part in parts)})"
    if kind == "value" and type(rest[0]) in (type(None), bool, str):
        return repr(rest[0])
    raise Unemittable(OTHERS)


OTHERS = (
    "what it gives beside a number is more than numbers, texts, arrays, tuples, lists and dicts"
)


def example(kind: Any) -> Any:
    """A value of a number's type, None for a memory: it holds nothing of the user's."""
    return np.empty((0,) * kind.ndim, kind.dtype) if type(kind) is Kind else EXAMPLES.get(kind)


def tree_of(tree: Any, inputs: dict[RegionOp, Input]) -> Tree:
    """The tree of an argument, with leaves at its numbers."""
    if isinstance(tree, RegionOp):
        discrete = tree.type is str or is_stream(tree.type)
        discrete |= is_numpy_type(tree.type) and not is_of_floats(tree.type)
        return FIXED if discrete else Leaf(inputs[tree], inputs[tree].value)
    if type(tree) is dict:
        return Branch(dict, {key: tree_of(x, inputs) for key, x in tree.items()})
    if type(tree) is list or type(tree) is tuple:
        return Branch(type(tree), dict(enumerate([tree_of(x, inputs) for x in tree])))
    return FIXED


def ops_in(tree: Any) -> Iterator[RegionOp]:
    """The ops in the tree of an argument."""
    if isinstance(tree, RegionOp):
        yield tree
    elif tree is not None:
        for x in tree.values() if type(tree) is dict else tree:
            yield from ops_in(x)


class RegionBuilder(Builder):
    """Writes the program of a region; ``calls`` says whether it calls functions of arrays."""

    calls = False
    discrete = False  # whether what has no derivative may be among what gradients are asked by

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.own: set[Op] = set()  # cotangents that nobody else holds

    def gradient(self, tree: Tree, found: dict[Any, Any]) -> str:
        if isinstance(tree, Leaf) and tree.value is None:  # a memory
            shadows = self.assembly.names[found[tree.op]]
            name = self.assembly.names[tree.op]  # type: ignore[index]
            return f"{self.constant(structured, 'structured')}({name}, {shadows}, seen)"
        if isinstance(tree, Leaf) and type(tree.value) is np.ndarray:
            d = self.assembly.names[found[tree.op]]
            name = self.assembly.names[tree.op]  # type: ignore[index]
            by = gradient_by
            if found[tree.op] in self.own:
                by = own_gradient_by
                self.own.remove(found[tree.op])  # at another place it is a copy
            return f"{self.constant(by, by.__name__)}({name}, {d})"
        text = super().gradient(tree, found)
        if self.calls and isinstance(tree, Leaf) and type(tree.value) in (float, int):
            return f"float({text})"
        return text

    def region(
        self, known: Known, inputs: dict[RegionOp, Input], keys: list[int], answer: str
    ) -> Program:
        """The program with the gradients of these arguments; ``answer`` is as for `Builder.build`."""
        program = self.program
        trees = [self.done.args[key] for key in keys]
        wanted = {op for tree in trees for op in sources(tree)}
        for op in inputs.values():
            self.wanted.setdefault(op.place, []).append(op)
        if not self.discrete and not all(map(has_leaf, trees)):
            raise Unfit("a gradient by something without one")
        program.aux = known.aux
        calls = [*map(is_call, known.folded.ops())]
        self.calls = any(calls)
        if answer in ROWS and known.numbers > FEW and OFTEN * sum(calls) > len(calls):
            raise Unfit("it gives many numbers, and a row of the Jacobian is computed for each")
        draws = any(isinstance(op, Draw) for op in known.folded.ops())
        roots = self.opening(draws, self.calls)
        guards = GuardWriter(self.reads, self.constant, self.assembly.fresh, self.wanted, False)
        self.guard(guards, guards.write(roots))
        self.bind(None)
        if self.calls:
            program.lines.append(f"{PAD}errors = {self.watching}")
        names = {op: self.assembly.names[x] for op, x in inputs.items()}
        wrt = [op for op, x in inputs.items() if x in wanted]

        outside = [op for _, op in known.inputs if op not in {*ops_in(known.trees)}]
        outside = [op for op in outside if not is_stream(op.type)]  # what was drawn is noted

        def ending(
            end: End,
            value: Callable[[Any], str],
            cotangent: Callable[[RegionOp], str],
            back: str,
        ) -> tuple[list[str], list[str]]:
            found: dict[Any, Any] = {}
            for op in wrt:
                d = found[inputs[op]] = Op(None, (), 1.0, NOWHERE, self.tape)
                self.assembly.names[d] = f"({cotangent(op)})"
                if emission.is_own(op):
                    self.own.add(d)
            gradients = [self.gradient(tree, found) for tree in trees]
            outs = iter(end.outs)
            given = [written(state, outs, value, known.folded) for state in end.state]
            form = SEVERAL[answer].form if back else answer
            result = form.format(
                value=f"({', '.join(given)})" if known.aux else given[0],
                main=given[0],
                aux=given[-1],
                gradients="".join(g + ", " for g in gradients),
                gradient=gradients[0] if gradients else "",
                given="".join(f"{name}, " for name in program.parameters),
                drawn="drawn" if draws else "()",
                **{name: self.constant(MAKERS[name], name) for name in makers_in(form)},
                program=self.constant(program, "program") if "{program}" in form else "",
                back=back,
                outside="".join(f"{value(op)}, " for op in outside),
            )
            first = ["seen = set()"] if any(x.value is None for x in wanted) else []
            last = ["self.hits += 1.0", "return result"]
            if self.calls:  # the result may be a miss: the error state is restored once
                last.insert(0, f"if errors is not None: {self.restored}")
            last.insert(0, f"result = {result}")
            if not back:
                return first, last
            return [*first, f"return ({''.join(g + ', ' for g in gradients)})"], last

        try:
            emission = Emission(known.folded, wrt, self.assembly, names, self.miss)
            lines = emission.lines(ending, PAD)
        except Unemittable as why:
            raise Unfit(str(why)) from None
        miss = self.miss
        for line in lines:
            program.lines.append(line)
            if line.endswith(miss):
                program.reasons[len(program.lines)] = UNSEEN
        program.lines.append("    except Exception as error:")
        if self.calls:
            program.lines.append(f"        if errors is not None: {self.restored}")
        program.lines.append("        missed = error")
        ops = known.folded.ops()
        program.forward, program.loops = len(ops), sum(type(op) is Loop for op in ops)
        program.decisions = sum(len(block.cases) > 1 for block in known.folded.blocks())
        program.growth = [*known.growth]
        self.ending(draws)
        self.assembly.taken = set()
        return program


class InnerBuilder(RegionBuilder):
    """Writes a program of a transform that is one function, and has the function that is differentiated in it."""

    def roots(self) -> dict[Place, str]:
        assert self.reads.function is not None
        return {**super().roots(), self.reads.function: "self.f.__self__.f"}


class AlongBuilder(RegionBuilder):
    """Writes a program that is given the arguments of the function as a tuple, and a direction."""

    def signature(self) -> tuple[list[str], str, list[str]]:
        missing = self.constant(MISSING, "missing")
        name = self.program.name = self.assembly.fresh(self.program.name)
        given = [self.assembly.fresh(x) for x in ("primals", "tangents")]
        self.arguments = [self.assembly.fresh(str(x)) for x in self.reads.arguments]
        header = ", ".join(["self", *[f"{x}={missing}" for x in given], "*rest"])
        count = len(self.arguments)
        return given, f"def {name}({header}):", ["rest", f"len({given[0]}) != {count}"]

    def opening(self, draws: bool, quiets: bool) -> dict[Place, str]:
        roots = super().opening(draws, quiets)
        names = "".join(f"{name}, " for name in self.arguments)
        self.program.lines.append(f"{PAD}{names}= {self.program.parameters[0]}")
        return roots

    def roots(self) -> dict[Place, str]:
        assert self.reads.function is not None
        found = dict(zip(self.reads.arguments, self.arguments, strict=True))
        return {**found, self.reads.function: "self.f.__self__.f"}
