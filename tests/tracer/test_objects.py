"""Objects that the function makes and gives."""

import pytest

from wengert import jit, pullback


class Linked:
    def __init__(self, value):
        self.value, self.next = value, None


def ring(x):
    a, b = Linked(x), Linked(2 * x)
    a.next, b.next = b, a
    return a


@pytest.mark.parametrize("of", [jit, lambda f: lambda x: pullback(f, x)[0]])
def test_a_result_may_lead_to_itself(of):
    g = of(ring)
    for k in range(6):
        found = g(1.0 + k)
        assert (found.value, found.next.value) == (1.0 + k, 2.0 + 2 * k)
        assert found.next.next is found
