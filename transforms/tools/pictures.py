"""Pictures of a tape: a graph of its values, for which ``graphviz`` is needed (the extra ``draw``)."""

from __future__ import annotations

import shutil
from typing import Any

from ...tracer.errors import TraceError
from ...tracer.kinds import isinstance
from ...tracer.tape import Input, Op, Tape, fn_name, ops_in, show
from ..loops import LoopFunction
from .colours import FORWARD, REVERSE, is_reverse
from .editing import names_of

LIGHT = {FORWARD: "#e3eefb", REVERSE: "#fbe6e3"}
LONGEST = 400  # ops of a tape that a notebook draws by itself


def graph_of(tape: Tape) -> Any:
    """The tape as a ``graphviz.Digraph``: ``.source`` is its text, ``.render(…)`` writes a picture of it.

    Ellipses are inputs, boxes calls, diamonds decisions. What was computed forward is blue, the reverse sweep red; a
    loop or a folded call that the tape has as one op is a box with sides, with what is in it. Without the package
    ``graphviz`` it is an error that says how to get it; the program ``dot`` is needed to render alone.
    """
    try:
        import graphviz
    except ModuleNotFoundError as error:
        raise TraceError(
            "draw() needs the package graphviz: pip install 'wengert[draw]'"
        ) from error
    graph = graphviz.Digraph(tape.name, node_attr={"fontname": "sans-serif", "fontsize": "10"})
    names = names_of(tape)
    number = {op: f"n{i}" for i, op in enumerate(tape.ops)}
    for op in tape.ops:
        colour = REVERSE if is_reverse(tape, op) else FORWARD
        style = {"color": colour, "style": "filled", "fillcolor": LIGHT[colour]}
        shape = "box"
        if isinstance(op, Input):
            label, shape = f"{op.name}\n{op.type}", "ellipse"
        elif op.kind == "guard":
            label, shape = f"== {op.value!r}", "diamond"
        else:
            constants = [show(x, names) for x in op.args if not any(True for _ in ops_in(x))]
            given = f" ({', '.join(constants)})" if constants else ""
            label = (
                f"{names[op] if op.kind == 'call' else 'effect'} {fn_name(op.fn)}{given}\n{op.type}"
            )
            if is_folded(op):
                shape = "box3d"
                label = f"loop at {op.site}\n" + "\n".join(body_of(op))
        graph.node(number[op], graphviz.escape(label).replace("\n", r"\n"), shape=shape, **style)
        for operand in dict.fromkeys(op.operands()):
            graph.edge(number[operand], number[op], color=colour)
    for op in dict.fromkeys(ops_in(tape.result)):
        graph.node("result", "result", shape="plaintext")
        graph.edge(number[op], "result")
    return graph


def is_folded(op: Op) -> bool:
    """Whether an op stands for a whole loop."""
    return isinstance(op.fn, LoopFunction)


def body_of(op: Op) -> list[str]:
    """The calls in the body of a loop, in the order in which they are written down."""
    family = op.fn.family
    return [fn_name(x.fn) for variant in family.variants for x in variant.ops]


def svg_of(tape: Tape) -> str | None:
    """The picture for a notebook; None where it cannot be drawn, or is too large to be looked at."""
    if len(tape.ops) > LONGEST or shutil.which("dot") is None:
        return None
    try:
        return str(graph_of(tape).pipe(format="svg", encoding="utf-8"))
    except TraceError:
        return None
