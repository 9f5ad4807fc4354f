"""A call never answers for a world that has changed since the calls before it.

What changes is told in the text files of the folder `stories`: a story is a block of lines without an empty one.
It begins with the source of a module in which there is a function `f`; `-- ` is followed by what is executed
between calls; `>> ` by arguments of calls, with `|` between one call and the next (where there is none, `f(x)` is
called four times before the first change and three times after each); `!! ` by the reason why the story is known to
end badly. A line that begins with `# ` stands between stories.
"""

from pathlib import Path

import pytest
from worlds import WAYS, Call, compare, repeat

PRELUDE = "import math, operator, random, time, numpy as np, wengert\n"


class Story:
    """One block of a text file."""

    def __init__(self, number, lines):
        self.number = number
        self.known = [line[3:] for line in lines if line.startswith("!! ")]
        self.steps = []  # kind of step and its text
        setup = []
        for line in lines:
            if line.startswith(("-- ", ">> ")):
                self.steps.append([line[:2], line[3:] + "\n"])
            elif not line.startswith("!! "):
                if self.steps:
                    self.steps[-1][1] += line + "\n"
                else:
                    setup.append(line)
        self.setup = PRELUDE + "\n".join(setup) + "\n"

    def __str__(self):
        last = [line for line in self.setup.splitlines() if line.strip()][-1].strip()
        return f"{self.number}: {last}"[:60]

    def __call__(self, world):
        m = world.module(self.setup)
        told = any(kind == ">>" for kind, _ in self.steps)
        if not told:
            yield from repeat(m.f, 1.5)
        for kind, text in self.steps:
            if kind == "--":
                m.run(text)
                if not told:
                    yield from repeat(m.f, 1.5, n=3)
            else:
                for arguments in text.split("|"):
                    m.called = Call
                    call = eval(f"called(f, {arguments.strip()})", vars(m))
                    del m.called
                    yield call


def stories(name):
    text = (Path(__file__).parent / "stories" / f"{name}.txt").read_text()
    blocks = [
        [line for line in block.splitlines() if not line.startswith("# ")]
        for block in text.split("\n\n")
    ]
    found = [Story(i, block) for i, block in enumerate(filter(None, blocks), 1)]
    assert found
    return [
        pytest.param(
            story,
            id=str(story),
            marks=[pytest.mark.xfail(reason=reason) for reason in story.known],
        )
        for story in found
    ]


def told_in(name, ways=("value_and_grad", "pullback", "turns")):
    @pytest.mark.parametrize("way", ways)
    @pytest.mark.parametrize("story", stories(name))
    def test(story, way):
        compare(story, way)

    return test


test_outside = told_in("outside")
test_functions = told_in("functions")
test_classes = told_in("classes")
test_decisions = told_in("decisions", WAYS)
test_arguments = told_in("arguments")
test_effects = told_in("effects", WAYS)
test_errors = told_in("errors")
test_randomness = told_in("randomness", WAYS)
test_inside = told_in("inside", WAYS)
