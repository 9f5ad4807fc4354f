"""Arithmetic that is used once stands where it is used, and nothing else moves."""

import pytest

from wengert.transforms.fold import nesting


def nested(lines):
    """The same of lines with their indentation."""
    found = nesting.nested([((len(x) - len(x.lstrip())) // 4, x.lstrip()) for x in lines])
    return ["    " * depth + text for depth, text in found]


def test_a_chain_becomes_one_statement():
    assert nested(["a = x * y", "b = a + 1.0", "c = -b", "return c, x"]) == [
        "return (-((x * y) + 1.0)), x"
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ["a = x * y", "b = a + a"],  # used twice
        ["a = x * y", "x = 2.0", "b = a + x"],  # an operand gets another value
        ["a = x * y", "x, z = z, x", "b = a + x"],
        ["a = x * y", "x += z", "b = a + x"],
        ["a = x * y", "for i in r:", "    x = i", "b = a + x"],
        ["a = x * y", "for i in r:", "    b = b + a"],  # it would be computed again
        ["a = x * y", "while a > b:", "    b = b + 1.0"],
        ["a = f(x)", "b = a + 1.0"],  # it may do something
        ["a = m[0]", "m[0] = 1.0", "b = a + 1.0"],
        ["a = x * y", "b = m['a']"],  # a key, and no variable
        ["a = x.a", "b = x.a"],
        ["try:", "    a = x / y", "    e = None", "except ZeroDivisionError as e:", "    pass"],
    ],
)
def test_what_stays(lines):
    assert nested(lines) == lines


def test_a_long_chain_is_cut():
    """Python takes two hundred parentheses inside one another."""
    lines = nested([f"a{i + 1} = a{i} * x" for i in range(500)])
    assert 10 < len(lines) < 250
    compile("\n".join(lines), "<chain>", "exec")
