"""Pictures and coloured listings."""

import html
import math
import re
import shutil
import sys

import pytest

from wengert import reverse, trace
from wengert.tracer.errors import TraceError
from wengert.transforms.tools import colours, graphs, pictures

FORWARD, REVERSE = colours.FORWARD, colours.REVERSE


def f(x, y):
    if x > 0:
        return math.sin(x) * y
    return y


def test_the_html_is_the_listing():
    tape = reverse(trace(f, 1.0, 2.0))
    shown = tape._repr_html_()
    text = html.unescape(re.sub("<[^>]*>", "", shown))
    assert text == str(tape)
    assert f'<span style="color:{FORWARD};font-weight:bold">sin</span>' in shown
    assert f'<span style="color:{REVERSE};font-weight:bold">cos</span>' in shown


def test_text_of_the_users_is_escaped():
    tape = trace(lambda d: d["<b>"] * 2, {"<b>": 1.0})
    assert "<b>" not in tape._repr_html_()
    assert "&lt;b&gt;" in tape._repr_html_()


def test_the_terminal():
    pytest.importorskip("rich")
    tape = reverse(trace(f, 1.0, 2.0))
    shown = colours.shown(tape, terminal=True)
    assert re.sub("\x1b\\[[0-9;]*m", "", shown) == str(tape)
    assert "\x1b[" in shown
    assert colours.shown(tape, terminal=False) == str(tape)
    assert tape.__rich__().plain == str(tape)


def test_the_terminal_without_rich(monkeypatch):
    for name in ("rich", "rich.console", "rich.text"):
        monkeypatch.setitem(sys.modules, name, None)
    tape = trace(f, 1.0, 2.0)
    assert colours.shown(tape, terminal=True) == str(tape)


def test_the_graph():
    pytest.importorskip("graphviz")
    tape = reverse(trace(f, 1.0, 2.0))
    source = tape.draw().source
    lines = source.splitlines()
    (sine,) = [line for line in lines if "sin" in line]
    (cosine,) = [line for line in lines if "cos" in line]
    assert FORWARD in sine
    assert REVERSE in cosine
    assert len([line for line in lines if "shape=ellipse" in line]) == 2
    assert len([line for line in lines if "shape=diamond" in line]) == 1
    edges = [line for line in lines if "->" in line]
    operands = sum(len(set(op.operands())) for op in tape)
    assert len(edges) == operands + 3  # and three to the result


def test_a_loop_is_one_box():
    """A loop that the tape has as one op, as a program has it."""
    pytest.importorskip("graphviz")
    from wengert.tracer.run import run
    from wengert.transforms.dispatch import roll_loops

    def loop(x):
        for _ in range(100):
            x = math.sin(x) + 0.5
        return x

    done = run(loop, (1.0,), {}, marks=True)
    roll_loops(done, {}, 8)
    assert len(done.tape) < 20
    source = done.tape.draw().source
    assert source.count("shape=box3d") == 1
    assert "loop at test_pictures.py" in source
    assert "sin" in source


def test_without_graphviz(monkeypatch):
    monkeypatch.setitem(sys.modules, "graphviz", None)
    graphs.graph_class.cache_clear()
    tape = trace(f, 1.0, 2.0)
    with pytest.raises(TraceError, match=r"pip install 'wengert\[draw\]'"):
        tape.draw()
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/dot")
    assert tape._repr_svg_() is None


def test_the_picture_for_a_notebook(monkeypatch):
    tape = trace(f, 1.0, 2.0)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert tape._repr_svg_() is None

    class Graph:
        def pipe(self, format, encoding):
            return f"<{format} {encoding}>"

    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/dot")
    monkeypatch.setattr(pictures, "graph_of", lambda tape: Graph())
    assert tape._repr_svg_() == "<svg utf-8>"
    scope = {}
    body = "".join(f"    x = sin(x)\n    x = x * {i}.0\n    x = x + 1.0\n" for i in range(150))
    exec(f"from math import sin\ndef long(x):\n{body}    return x\n", scope)
    assert trace(scope["long"], 0.1)._repr_svg_() is None  # nobody could read it
    assert trace(looped, 0.3)._repr_svg_() == "<svg utf-8>"  # of 2,000 operations


def looped(x):
    for _ in range(1000):
        y = math.sin(x)
        x = y + 0.1 if y > 0.5 else y + 0.2
    return x


def test_a_loop_is_a_frame():
    """With its body once, the values that it carries, and a way of a branch in a frame of its own."""
    pytest.importorskip("graphviz")
    lines = reverse(trace(looped, 0.3)).draw().source.splitlines()
    frames = [line for line in lines if line.strip().startswith("subgraph cluster")]
    titles = [
        line for line in lines if "label=" in line and "->" not in line and "shape" not in line
    ]
    assert sum("loop 1,000 times" in x for x in titles) == 2  # forward and in reverse
    assert len(frames) < 12 and len(lines) < 120
    assert [FORWARD in x for x in lines if " sin" in x] == [True]
    assert [REVERSE in x for x in lines if " cos" in x] == [True]
    assert sum("shape=cds" in x and FORWARD in x for x in lines) == 1  # x is carried
    assert any("style=dashed" in x and "constraint=false" in x for x in lines if "->" in x)


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs the program dot")
def test_dot_draws_loops_and_branches():
    pytest.importorskip("graphviz")
    shown = reverse(trace(looped, 0.3))._repr_svg_()
    assert shown.count('class="cluster"') >= 3
    assert "loop 1,000 times" in html.unescape(shown)


def test_without_the_program_dot(monkeypatch):
    graphviz = pytest.importorskip("graphviz")
    graph = trace(f, 1.0, 2.0).draw()

    def missing(*args, **kwargs):
        raise graphviz.ExecutableNotFound(["dot"])

    monkeypatch.setattr(graphviz.Digraph, "pipe", missing)
    monkeypatch.setattr(graphviz.Digraph, "render", missing)
    for render in (
        lambda: graph.pipe("svg"),
        lambda: graph.render("picture"),
        graph._repr_mimebundle_,
    ):
        with pytest.raises(TraceError) as caught:
            render()
        assert str(caught.value).startswith(
            "to make a picture takes the program dot\napt install graphviz"
        )
        assert len(str(caught.value).splitlines()) == 2


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs the program dot")
def test_dot_draws_it():
    pytest.importorskip("graphviz")
    assert "<svg" in reverse(trace(f, 1.0, 2.0))._repr_svg_()


def test_a_long_tape_is_shown_in_part():
    tape = trace(lambda v: sum(x * x for x in v), [1.0] * 600, flat=True)
    lines = tape._repr_html_().splitlines()
    assert len(lines) < 600
    assert re.search(r"… \d+ more lines, which print\(\) shows", lines[-2])
    assert "return" in lines[-1]


def test_the_result_is_one_node():
    pytest.importorskip("graphviz")

    def total(xs):
        s = 0.0
        for x in xs:
            s = s + x * x
        return s

    tape = reverse(trace(total, [float(i) for i in range(50)]))
    assert tape.draw().source.count("label=result") == 1
