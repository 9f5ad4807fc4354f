"""What Wengert makes of a function is a function for its users: help, attributes, class bodies, copies, caches."""

import copy
import functools
import inspect
import pickle
import pydoc
import typing
import weakref

import numpy as np
import pytest

from wengert import explain, grad, hessian, jacobian, jit, value_and_grad


def friction(velocity: float, density: float = 1.2, *, area=0.5) -> float:
    """The drag of a body, in newtons."""
    return velocity * velocity * density * area / 2


@pytest.fixture
def programs():
    """The JIT is on, whatever the environment says."""
    with jit(True):
        yield


MADE = {
    "grad": grad(friction),
    "value_and_grad": value_and_grad(friction, argnums=(0, 1)),
    "jacobian": jacobian(friction, "density"),
    "hessian": hessian(friction),
    "jit": jit(friction),
    "grad of grad": grad(grad(friction)),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_help_shows_name_signature_and_documentation(made):
    shown = pydoc.render_doc(made, renderer=pydoc.plaintext)
    assert "friction" in shown
    assert "(velocity: float, density: float = 1.2, *, area=0.5)" in shown
    assert "The drag of a body, in newtons." in shown
    assert inspect.signature(made).parameters == inspect.signature(friction).parameters
    assert "friction" in made.__name__ and "friction" in repr(made)


def test_the_signature_stays_when_a_program_answers(programs):
    slope = grad(friction)
    for _ in range(4):
        assert slope(2.0, 1.0) == 1.0
    assert slope.__self__.program is not None
    assert [*inspect.signature(slope).parameters] == ["velocity", "density", "area"]
    bound = inspect.signature(slope).bind(2.0, area=1.0)
    assert bound.arguments == {"velocity": 2.0, "area": 1.0}


@pytest.mark.parametrize(
    "f", [lambda: 1.0, lambda *xs: 1.0, lambda *, k: k, lambda **more: 1.0, lambda x, /, y: x]
)
def test_signatures_of_every_kind(f):
    assert str(inspect.signature(grad(f))) == str(inspect.signature(f))


def test_type_hints_are_those_of_the_arguments():
    slope = grad(friction)
    assert slope.__annotations__ == {"velocity": float, "density": float}
    assert typing.get_type_hints(grad(slope)) == {"velocity": float, "density": float}


def test_functions_without_a_signature_have_one():
    assert str(inspect.signature(grad(max))) == "(*args, **kwargs)"


def test_a_signature_is_looked_up_when_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(inspect, "signature", lambda f: pytest.fail("nobody has asked"))
    grad(friction)


def test_repr_says_where_the_function_stands():
    place = f"{__file__}:{friction.__code__.co_firstlineno}"
    assert f"grad(friction, argnums='area'), {place}" in repr(grad(friction, "area"))


def test_wraps():
    slope = grad(friction)

    @functools.wraps(slope)
    def rounded(*args, **kwargs):
        return round(slope(*args, **kwargs), 2)

    assert rounded.__name__ == slope.__name__
    assert inspect.unwrap(slope) is inspect.unwrap(rounded) is friction
    assert slope.__wrapped__(2.0) == friction(2.0)
    assert "drag" in rounded.__doc__
    assert [*inspect.signature(rounded).parameters] == ["velocity", "density", "area"]
    assert rounded(2.0) == 1.2
    assert functools.lru_cache(slope)(2.0) == slope(2.0)
    assert functools.partial(slope, area=1.0)(2.0) == 2.4


class Spring:
    """Functions of Wengert in a class body are methods, as other functions are."""

    stiffness = 3.0

    def __init__(self, rest=0.5):
        self.rest = rest

    def energy(self, x):
        """The energy at x."""
        return self.stiffness * (x - self.rest) ** 2 / 2

    force = grad(energy, argnums="x")
    curvature = hessian(energy, argnums=1)

    @functools.partial(value_and_grad, argnums=1)
    def both(self, x):
        return self.stiffness * x

    @jit
    def moved(self, x):
        return Spring(self.rest + x).energy(2 * x)

    @staticmethod
    @grad
    def cube(x):
        return x**3


def test_methods(programs):
    spring, other = Spring(), Spring(1.0)
    for _ in range(4):
        assert (spring.force(2.0), other.force(2.0)) == (4.5, 3.0)
        assert Spring.force(spring, x=2.0) == 4.5
        assert spring.curvature(2.0) == 3.0
        assert spring.both(2.0) == (6.0, 3.0)
        assert spring.moved(1.0) == Spring(1.5).energy(2.0)
        assert Spring.cube(2.0) == 12.0
        assert grad(lambda x: spring.force(x) * x)(2.0) == 10.5
        assert grad(spring.moved)(1.0) == 1.5
    assert [*inspect.signature(spring.force).parameters] == ["x"]
    assert [*inspect.signature(Spring.force).parameters] == ["self", "x"]
    assert "The energy at x." in pydoc.render_doc(Spring.force, renderer=pydoc.plaintext)
    assert "grad(energy" in explain(Spring.force) and "2 programs" in explain(Spring.force)


def test_methods_of_subclasses_and_of_classes_made_in_functions():
    class Stiff(Spring):
        stiffness = 6.0

        @jit
        def twice(self, x):
            return 2 * self.force(x)

    for _ in range(4):
        assert Stiff().force(2.0) == 9.0
        assert Stiff().twice(2.0) == 18.0


def test_a_method_shows_no_frames_of_ours():
    class Broken:
        @jit
        def fails(self, x):
            raise ValueError("mine")

    with pytest.raises(ValueError) as error:
        Broken().fails(1.0)
    assert {str(entry.path) for entry in error.traceback} == {__file__}


def test_gradients_as_attributes_of_objects_are_no_methods():
    spring = Spring()
    spring.own = grad(np.sin)
    assert spring.own(0.0) == 1.0


def test_joblib_memory(tmp_path, programs):
    joblib = pytest.importorskip("joblib")
    memory = joblib.Memory(tmp_path, verbose=0)
    slope, other = memory.cache(grad(friction)), memory.cache(grad(friction, "density"))
    for _ in range(4):
        assert [slope(2.0), slope(4.0), slope(2.0, area=1.0)] == [1.2, 2.4, 2.4]
        assert [other(2.0, 1.2), other(4.0, 1.2)] == [1.0, 4.0]
        assert slope.check_call_in_cache(2.0)
        assert not slope.check_call_in_cache(2.5)


def test_attributes_are_its_own():
    slope, other = grad(friction), grad(friction)
    slope.unit = "newton seconds per metre"
    slope.__name__, slope.__doc__ = "slope", "The slope of a drag."
    assert (slope.unit, hasattr(other, "unit")) == ("newton seconds per metre", False)
    assert (slope.__name__, slope.__doc__) == ("slope", "The slope of a drag.")
    assert other.__name__ == "grad(friction)" and "drag of a body" in other.__doc__
    assert (other.__module__, other.__qualname__) == (__name__, "grad(friction)")
    del slope.unit
    assert not hasattr(slope, "unit")


def test_it_can_take_the_name_of_another_function(programs):
    slope = functools.wraps(friction)(grad(friction))
    assert slope.__name__ == "friction" and slope.__wrapped__ is friction
    assert [slope(x, 1.0) for x in (2.0, 3.0, 4.0, 5.0)] == [1.0, 1.5, 2.0, 2.5]


def test_copies_are_the_function_itself():
    slope = grad(friction)
    assert copy.copy(slope) is slope and copy.deepcopy([slope])[0] is slope
    assert weakref.ref(slope)() is slope and {slope: 1}[slope] == 1


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_pickled(made):
    again = pickle.loads(pickle.dumps(made))
    assert again is not made and repr(again) == repr(made)
    assert again(2.0, 1.0) == made(2.0, 1.0)


@functools.partial(value_and_grad, argnums=0)
def decorated(x):
    return x * x


@hessian
def curved(x):
    return x**3


def test_what_stands_under_the_name_of_the_function_is_pickled_by_that():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert pickle.loads(pickle.dumps(curved)) is curved


cube_slope = grad(lambda x: x**3)


def counted(x):
    cube_slope.calls += 1
    cube_slope.last = x * cube_slope.scale
    return cube_slope(x) * cube_slope.last


def test_attributes_read_and_written_in_a_traced_function(programs):
    """They are there for a run as those of other functions are, and programs guard what they have read."""
    both = value_and_grad(counted)
    cube_slope.calls, cube_slope.scale = 0, 2.0
    for i in range(1, 9):
        if i == 6:
            cube_slope.scale = 3.0
        x = 1.0 + i
        assert both(x) == (3 * x**3 * cube_slope.scale, 9 * x**2 * cube_slope.scale)
        assert (cube_slope.calls, cube_slope.last) == (i, x * cube_slope.scale)
        assert type(cube_slope.last) is float


@pytest.mark.parametrize(
    "use",
    [
        lambda x: copy.copy(cube_slope)(x),
        lambda x: functools.lru_cache(cube_slope)(x),
        lambda x: functools.wraps(cube_slope)(lambda y: cube_slope(y))(x),
        lambda x: functools.partial(cube_slope, x)(),
        lambda x: cube_slope.func(*cube_slope.args, x, **cube_slope.keywords),
        lambda x: functools.partial(cube_slope.func, *cube_slope.args)(x),
        lambda x: cube_slope.args[0](x),
        lambda x: pickle.loads(pickle.dumps(decorated))(x)[0] * 3,
        lambda x: cube_slope(x) if vars(cube_slope) and repr(cube_slope) else x,
    ],
)
def test_uses_of_made_functions_in_a_traced_function(use, programs):
    both = value_and_grad(use)
    for x in (2.0, 3.0, 4.0, 5.0, 6.0):
        assert both(x) == (3 * x * x, 6 * x)


def family(a):
    return lambda x: a * x * x


@pytest.mark.parametrize(
    "wrap, expected",
    [(grad, lambda a, x: (2 * x * x, 4 * a * x)), (hessian, lambda a, x: (2 * x, 2 * a))],
)
def test_gradients_by_what_a_made_argument_captures(wrap, expected, programs):
    both = grad(lambda slope, x: slope(x) * x, argnums=(0, 1))
    for i in range(6):
        a, x = 3.0 + i, 2.0 + i
        slope, by_x = both(wrap(family(a)), x)
        assert ((slope if isinstance(slope, float) else slope["a"]), by_x) == expected(a, x)


def test_objects_whose_attributes_are_made_functions(programs):
    spring = Spring()
    spring.own = grad(lambda y: y**3)
    both = value_and_grad(lambda x: grad(lambda s, y: s.own(y) * s.rest)(spring, x)["rest"] * x)
    for x in (2.0, 3.0, 4.0, 5.0, 6.0):
        assert both(x) == (3 * x**3, 9 * x**2)
    assert "misses, by" not in explain(both)


def test_the_documentation_of_a_made_function_is_what_it_is_at_the_call(programs):
    """It is made of what the user may change: kept programs went on with another text."""

    def square(x):
        """As is."""
        return x * x

    slope = grad(square)
    both = value_and_grad(lambda x: x * len(slope.__doc__))
    for text in ("a", "bb", "ccc") * 4:
        square.__doc__ = text
        assert both(2.0) == (2.0 * len(slope.__doc__), len(slope.__doc__))
    for text in ("a", "bb", "ccc") * 4:
        slope.__doc__ = text
        assert both(2.0) == (2.0 * len(text), len(text))
