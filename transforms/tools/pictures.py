"""Pictures of a tape: the graph of its listing, for which ``graphviz`` is needed (the extra ``draw``)."""

from __future__ import annotations

import shutil
from typing import Any

from ...tracer.errors import TraceError
from ...tracer.kinds import isinstance
from ...tracer.tape import Input, Op, Tape, fn_name, show
from ..loops import LoopFunction
from .colours import DIM, FORWARD, REVERSE, is_reverse
from .folding import Block, Branch, Call, Item, Line, Loop, folded
from .graphs import graph_class
from .listing import (
    MOST_SHOWN,
    Listing,
    by_run,
    how_often,
    inputs_from,
    operands_of,
    outcome,
    place_of,
    shortened,
    times,
)
from .references import Carried, Slot

LIGHT = {FORWARD: "#e3eefb", REVERSE: "#fbe6e3"}
LOOP = "#f6f6f6"  # behind what a loop has in it
PASS, BACK = (
    "pass",
    "back",
)  # how arrows look: from one pass of a loop that is over, and from an earlier one
LONGEST = 400  # lines of a listing that a notebook draws by itself


class Picture:
    """A listing as a graph: a node for each line and each value that a loop carries, a frame for each loop and way."""

    def __init__(self, tape: Tape, graph: Any) -> None:
        self.tape = tape
        self.listing = Listing(tape, folded(tape))
        self.nodes: dict[Line | Carried, str] = {}
        self.colours: dict[str, str] = {}  # by node
        self.edges: dict[tuple[str, str], dict[str, str]] = {}
        self.frames = 0
        self.block(graph, self.listing.block)
        for what in [*self.nodes]:
            self.arrows(what)
        given = [source for slot in self.listing.results for source in self.sources(slot)]
        if given:
            graph.node("result", "result", shape="plaintext")
        for source in given:
            self.edge(source, "result", self.colours.get(source, FORWARD))
        for (start, end), style in self.edges.items():
            graph.edge(start, end, **style)

    def block(self, graph: Any, block: Block) -> None:
        """The nodes of a block."""
        i = 0
        while i < len(block.items):
            item = block.items[i]
            group = inputs_from(block.items, i)
            if len(group) > MOST_SHOWN:
                names = shortened([self.listing.names[x] for x in group])
                text = f"{', '.join(names)}\n{len(group):,} × {group[0].ops[0].type}"
                self.node(graph, group, text, group[0].ops[0], "ellipse")
                i += len(group)
                continue
            self.item(graph, item)
            i += 1

    def item(self, graph: Any, item: Item) -> None:
        if isinstance(item, Line):
            self.line(graph, item)
        elif isinstance(item, Call):
            self.block(graph, item.body)
        elif isinstance(item, Loop):
            title = f"loop {times(item.counts)}{place_of(item.site)}"
            with self.frame(graph, title, item.body, "rounded,filled") as inner:
                for carried in self.listing.carried_by(item):
                    op = next(item.body.lines()).ops[0]
                    name = self.listing.names[carried]
                    self.node(inner, [carried], f"{name}\ncarried", op, "cds")
                self.block(inner, item.body)
        elif isinstance(item, Branch):
            for i, way in enumerate(item.ways):
                if way.items:
                    with self.frame(graph, how_often(item, i), way, "rounded,dashed") as inner:
                        self.block(inner, way)

    def frame(self, graph: Any, title: str, block: Block, style: str) -> Any:
        """A frame around what is in a block."""
        self.frames += 1
        colour = next((self.colour(x.ops[0]) for x in block.lines()), FORWARD)
        attributes = {
            "label": title, "labeljust": "l", "style": style, "color": colour, "fillcolor": LOOP,
            "fontname": "sans-serif", "fontsize": "9", "fontcolor": DIM,
        }  # fmt: skip
        return graph.subgraph(name=f"cluster_{self.frames}", graph_attr=attributes)

    def line(self, graph: Any, line: Line) -> None:
        listing, op = self.listing, line.ops[0]
        if line in listing.hidden:
            return
        shape = "box"
        if isinstance(op, Input):
            label, shape = f"{op.name}\n{op.type}", "ellipse"
        elif op.kind == "guard":
            values = by_run(line.block, [repr(x.value) for x in line.ops])
            label, shape = f"== {outcome(values)}", "diamond"
        elif isinstance(op.fn, LoopFunction):
            label, shape = f"{listing.names[line]} loop at {op.site}\n", "box3d"
            label += op.fn.source()
        else:
            constants = [show(x, {}) for x in operands_of((op.args, op.kwargs)) if is_told(x)]
            given = f" ({', '.join(shortened(constants))})" if constants else ""
            label = f"{self.left(line)} {fn_name(op.fn)}{given}\n{op.type}"
        taken_apart = [x for x in listing.parts.get(line, []) if x is not None]
        self.node(graph, [line, *taken_apart], label, op, shape)

    def left(self, line: Line) -> str:
        """What a line gives, by name."""
        if line.ops[0].kind == "effect":
            return "effect"
        parts = self.listing.parts.get(line, [line])
        return ", ".join("_" if x is None else self.listing.names[x] for x in parts)

    def colour(self, op: Op) -> str:
        return REVERSE if is_reverse(self.tape, op) else FORWARD

    def node(self, graph: Any, of: Any, label: str, op: Op, shape: str) -> None:
        import graphviz

        name, colour = f"n{len(self.nodes)}", self.colour(op)
        self.nodes.update(dict.fromkeys(of, name))
        self.colours[name] = colour
        text = graphviz.escape(label).replace("\n", r"\l" if shape == "box3d" else r"\n")
        style = {"color": colour, "style": "filled", "fillcolor": LIGHT[colour]}
        graph.node(name, text, shape=shape, **style)

    def sources(self, slot: Slot) -> dict[str, str]:
        """The nodes of what stands in a slot in any pass, each with how an arrow from there looks."""
        found: dict[str, str] = {}
        for reference in self.listing.references.referred(slot):
            if reference.kind in ("line", "carried") and reference.of in self.nodes:
                look = BACK if reference.past else PASS if reference.passes else ""
                found.setdefault(self.nodes[reference.of], look)
        return found

    def arrows(self, what: Line | Carried) -> None:
        """The arrows that lead to a node."""
        node = self.nodes[what]
        colour = self.colours[node]
        slots = [what.first] if isinstance(what, Carried) else self.listing.references.slots[what]
        for slot in slots:
            for source, look in self.sources(slot).items() if slot is not None else ():
                self.edge(source, node, colour, look)
        for reference in what.sources if isinstance(what, Carried) else ():
            if reference.of in self.nodes:
                self.edge(self.nodes[reference.of], node, colour, BACK)

    def edge(self, start: str, end: str, colour: str, look: str = "") -> None:
        if start != end:
            style = {"style": "dashed"} if look else {}
            style |= {"constraint": "false"} if look == BACK else {}
            self.edges.setdefault((start, end), {"color": colour, **style})


def is_told(x: Any) -> bool:
    """Whether an operand is shown in the node itself."""
    return x is not None and not isinstance(x, Op)


def graph_of(tape: Tape) -> Any:
    """The tape as a ``graphviz.Digraph``: ``.source`` is its text, ``.render(…)`` writes a picture of it.

    Ellipses are inputs, boxes calls, diamonds decisions. What was computed forward is blue, the reverse sweep red. A
    loop is a frame around its body, with the values that it carries at its head and dashed arrows that lead back to
    them; a way of a branch is a dashed frame. A loop that the tape has as one op is a box with sides. Without the
    package ``graphviz`` it is an error that says how to get it, and so it is to render it without the program ``dot``.
    """
    attributes = {"fontname": "sans-serif", "fontsize": "10"}
    graph = graph_class()(tape.name, node_attr=attributes)
    Picture(tape, graph)
    return graph


def svg_of(tape: Tape) -> str | None:
    """The picture for a notebook; None where it cannot be drawn, or is too large to be looked at."""
    if shutil.which("dot") is None or sum(1 for _ in folded(tape).lines()) > LONGEST:
        return None
    try:
        graph = graph_of(tape)
    except TraceError:
        return None
    return str(graph.pipe(format="svg", encoding="utf-8"))
