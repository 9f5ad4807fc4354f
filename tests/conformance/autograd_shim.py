"""The package `autograd` as its own tests know it, made of plain NumPy and SciPy and of Wengert.

`python -m pytest -p autograd_shim` puts it into `sys.modules` before a test is imported: `autograd.numpy` is NumPy
itself, `autograd.scipy` SciPy, and the transforms are ours. Its check of gradients compares with differences of the
plain function, in the modes and orders that a test asks for.
"""

import functools
import importlib
import sys
import types

import numpy as np

import wengert

EPS, TOL = 1e-6, 1e-6


# ------------------------------------------------------------------------------------------- spaces


class Space:
    """The vector space of the values with the structure, shapes and kinds of one of them."""

    def __init__(self, like):
        self.like = like

    def __eq__(self, other):
        return isinstance(other, Space) and self.signature() == other.signature()

    __hash__ = None

    def signature(self):
        return mapped(lambda x: (np.shape(x), np.iscomplexobj(x)), self.like)

    @property
    def size(self):
        return len(self.basis_parts())

    @property
    def shape(self):
        return np.shape(self.like)

    @property
    def iscomplex(self):
        return np.iscomplexobj(self.like)

    def basis_parts(self):
        """Of each dimension: the leaf, its place in it, and its unit."""
        return [
            (number, index, unit)
            for number, leaf in enumerate(flat(self.like))
            for index in np.ndindex(np.shape(leaf))
            for unit in ((1.0, 1j) if np.iscomplexobj(leaf) else (1.0,))
        ]

    def standard_basis(self):
        for number, index, unit in self.basis_parts():
            parts = flat(self.zeros())
            if index:
                parts[number][index] = unit
            else:
                parts[number] = unit * (1 + 0 * parts[number])
            rest = iter(parts)
            yield mapped(lambda _: next(rest), self.like)

    def zeros(self):
        return mapped(lambda x: x * 0.0, self.like)

    def ones(self):
        return mapped(lambda x: x * 0.0 + (1 + 1j if np.iscomplexobj(x) else 1.0), self.like)

    def randn(self):
        def draw(x):
            drawn = np.random.randn(*np.shape(x))
            if np.iscomplexobj(x):
                drawn = drawn + 1j * np.random.randn(*np.shape(x))
            return drawn if np.shape(x) else x * 0.0 + drawn

        return mapped(draw, self.like)

    def add(self, x, y):
        return mapped(lambda a, b: a + b, x, y)

    def scalar_mul(self, x, a):
        return mapped(lambda b: b * a, x)

    def inner_prod(self, x, y):
        """The real inner product; a gradient is the conjugate of a direction."""
        return sum(np.real(np.sum(np.conj(a) * b)) for a, b in zip(flat(x), flat(y)))

    def covector(self, x):
        return mapped(np.conj, x)


def vspace(x):
    return Space(x)


def flat(x):
    """The leaves of a structure, in order."""
    if isinstance(x, dict):
        return [leaf for key in x for leaf in flat(x[key])]
    if isinstance(x, list | tuple):
        return [leaf for part in x for leaf in flat(part)]
    return [x]


def mapped(f, x, *others):
    """A structure with f of the leaves; what has no gradient counts as zero."""
    if isinstance(x, dict):
        return {key: mapped(f, x[key], *[o[key] for o in others]) for key in x}
    if isinstance(x, list | tuple):
        parts = [mapped(f, part, *[o[i] for o in others]) for i, part in enumerate(x)]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return f(x, *[x * 0.0 if o is None else o for o in others])


# --------------------------------------------------------------------------------------- transforms


def of_arguments(transform):
    """A transform of functions of one argument as one of functions of several, by their number."""

    @functools.wraps(transform)
    def of(fun, argnum=0, *options, **named):
        @functools.wraps(fun)
        def transformed(*args, **kwargs):
            numbers = (argnum,) if isinstance(argnum, int) else tuple(argnum)

            def unary(x):
                given = list(args)
                for i, part in zip(numbers, (x,) if isinstance(argnum, int) else x):
                    given[i] = part
                return fun(*given, **kwargs)

            unary.__name__ = name_of(fun)
            x = args[argnum] if isinstance(argnum, int) else tuple([args[i] for i in numbers])
            return transform(unary, x, *options, **named)

        return transformed

    return of


def name_of(fun):
    return getattr(fun, "__name__", "[unknown name]")


def vjp(fun, x):
    value, back = wengert.pullback(fun, x)
    return (lambda dy: back(dy)[0]), value


def jvp(fun, x):
    return lambda v: wengert.jvp(fun, (x,), (v,))


def ones_of(value):
    """The cotangent 1 of a number, or of the one number in an array."""
    if np.size(value) != 1:
        raise TypeError("grad only applies to real scalar-output functions")
    return np.ones_like(value) if isinstance(value, np.ndarray) else value * 0.0 + 1.0


def value_and_grad(fun, x):
    try:
        return wengert.value_and_grad(fun)(x)
    except wengert.CotangentError:  # it is an array, or complex
        value, back = wengert.pullback(fun, x)
        if np.iscomplexobj(value):
            raise TypeError("grad only applies to real scalar-output functions") from None
        return value, back(ones_of(value))[0]


def grad(fun, x):
    return value_and_grad(fun, x)[1]


def elementwise_grad(fun, x):
    value, back = wengert.pullback(fun, x)
    return back(np.ones_like(value) if isinstance(value, np.ndarray) else value * 0.0 + 1.0)[0]


def deriv(fun, x):
    return wengert.jvp(fun, (x,), (Space(x).ones(),))[1]


def jacobian(fun, x):
    return wengert.jacobian(fun)(x)


def holomorphic_grad(fun, x):
    return wengert.grad(lambda z: np.real(fun(z)))(x)


def hessian(fun, x):
    return wengert.hessian(fun)(x)


def make_hvp(fun, x):
    return vjp(wengert.grad(fun), x)


def grad_and_aux(fun, x):
    return wengert.grad(fun, has_aux=True)(x)


def hessian_tensor_product(fun, argnum=0):
    def along(*args):
        *args, tensor = args
        return np.tensordot(of_arguments(grad)(fun, argnum)(*args), tensor, np.ndim(tensor))

    return of_arguments(grad)(along, argnum)


def tensor_jacobian_product(fun, argnum=0):
    def along(*args):
        *args, tensor = args
        return np.tensordot(tensor, fun(*args), axes=np.ndim(tensor))

    return of_arguments(jacobian)(along, argnum)


def make_ggnvp(f, g=lambda y: 0.5 * np.sum(y**2, axis=-1), f_argnum=0):
    def make(f, x):
        back, y = vjp(f, x)
        hessian_product = make_hvp(g, y)[0]
        return lambda v: back(hessian_product(jvp(f, x)(v)[1]))

    return of_arguments(make)(f, f_argnum)


def primitive(fun):
    return functools.wraps(fun)(lambda *args, **kwargs: fun(*args, **kwargs))


def defvjp(fun, *makers, argnums=None):
    """The rule of a primitive, from functions that make the pullbacks of its arguments."""
    places = list(range(len(makers))) if argnums is None else list(argnums)

    @wengert.rrule(fun)
    def rule(*args):
        ans = fun.__wrapped__(*args)

        def pullback(dy):
            found = [None] * len(args)
            for i, maker in zip(places, makers):
                if maker is not None:
                    found[i] = maker(ans, *args)(dy)
            return tuple(found)

        return ans, pullback


# ------------------------------------------------------------------------------------------- checks


def close(a, b):
    return abs(a - b) < TOL or abs(a - b) / abs(a + b) < TOL


def difference(f, x, v):
    """The derivative of f along v by a central difference."""
    space = Space(x)
    above = f(space.add(x, space.scalar_mul(v, EPS / 2)))
    below = f(space.add(x, space.scalar_mul(v, -EPS / 2)))
    of = Space(above)
    return of.scalar_mul(of.add(above, of.scalar_mul(below, -1.0)), 1.0 / EPS)


def check_vjp(f, x):
    back, y = vjp(f, x)
    xs, ys = Space(x), Space(y)
    assert_same_value(y, plainly(f, x))
    v, w = xs.randn(), ys.randn()
    mine = xs.covector(mapped(lambda a, g: g + a * 0.0, x, back(ys.covector(w))))
    assert Space(mine) == xs, f"{mine} has not the structure of {x}"
    exact, numeric = xs.inner_prod(v, mine), ys.inner_prod(w, difference(f, x, v))
    assert close(numeric, exact), (
        f"derivative (VJP) check of {name_of(f)} failed with arg {x}: {exact}, by differences {numeric}"
    )


def check_jvp(f, x):
    v = Space(x).randn()
    y, t = jvp(f, x)(v)
    assert_same_value(y, plainly(f, x))
    check_equivalent(t, difference(f, x, v))


def plainly(f, x):
    """f(x), where derivatives that f asks for itself are computed as they are in a traced function.

    A kept program adds up in an order of its own, so that its gradients differ in the last bit.
    """
    with wengert.jit(False):
        return f(x)


def assert_same_value(mine, plain):
    for a, b in zip(flat(mine), flat(plain), strict=True):
        assert type(a) is type(b), f"{a!r} is not {b!r}"
        assert np.array_equal(a, b, equal_nan=True), f"the value {a!r} is not {b!r}"


def check_equivalent(x, y):
    xs = Space(x)
    assert xs == Space(y), f"{x} and {y} have different structures"
    v = xs.randn()
    assert close(xs.inner_prod(v, x), xs.inner_prod(v, y)), f"{x} is not {y}"


def check_grads_of(f, x, modes=("fwd", "rev"), order=2):
    again = functools.partial(of_arguments(check_grads_of), argnum=(0, 1))
    if "fwd" in modes:
        check_jvp(f, x)
        if order > 1:
            second = lambda x, v: jvp(f, x)(v)[1]
            second.__name__ = f"jvp_{name_of(f)}"
            again(second, modes=modes, order=order - 1)(x, Space(x).randn())
    if "rev" in modes:
        check_vjp(f, x)
        if order > 1:
            second = lambda x, v: vjp(f, x)[0](v)
            second.__name__ = f"vjp_{name_of(f)}"
            again(second, modes=modes, order=order - 1)(x, Space(f(x)).randn())


check_grads = of_arguments(check_grads_of)


def combo_check(fun, *how, **options):
    """`check_grads` for all combinations of arguments and keyword arguments."""
    import itertools

    def check(*args, **kwargs):
        named = [[(key, x) for x in xs] for key, xs in kwargs.items()]
        for given in itertools.product(*args):
            for chosen in itertools.product(*named):
                check_grads(fun, *how, **options)(*given, **dict(chosen))

    return check


def flatten(value):
    def flattened(value):
        if isinstance(value, list | tuple):
            return joined([flattened(x) for x in value])
        if isinstance(value, dict):
            return joined([flattened(value[key]) for key in sorted(value)])
        return np.ravel(value)

    def joined(parts):
        return np.concatenate(parts) if parts else np.array([])

    back, vector = vjp(flattened, value)
    return vector, back


# ------------------------------------------------------------------------------------------ modules


def module(name, **held):
    made = types.ModuleType(name)
    made.__path__ = []
    vars(made).update(held)
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, made)


def alias(name, real):
    found = importlib.import_module(real)
    sys.modules[name] = found
    parent, _, last = name.rpartition(".")
    if (
        isinstance(sys.modules[parent].__dict__.get("__path__"), list)
        and sys.modules[parent] is not np
    ):
        setattr(sys.modules[parent], last, found)


def install():
    nary = {
        f.__name__: of_arguments(f)
        for f in (value_and_grad, grad, elementwise_grad, deriv, jacobian, holomorphic_grad)
    }
    nary |= {f.__name__: of_arguments(f) for f in (hessian, make_hvp, grad_and_aux)}
    module(
        "autograd",
        **nary,
        make_vjp=of_arguments(vjp),
        make_jvp=of_arguments(jvp),
        hessian_tensor_product=hessian_tensor_product,
        hessian_vector_product=hessian_tensor_product,
        tensor_jacobian_product=tensor_jacobian_product,
        make_ggnvp=make_ggnvp,
        checkpoint=wengert.checkpoint,
        isinstance=isinstance,
        tuple=tuple,
        list=list,
        dict=dict,
    )
    alias("autograd.numpy", "numpy")
    for name in ("linalg", "fft", "random"):
        alias(f"autograd.numpy.{name}", f"numpy.{name}")
    module("autograd.builtins", isinstance=isinstance, tuple=tuple, list=list, dict=dict, type=type)
    module("autograd.tracer", primitive=primitive, isbox=lambda x: False)
    module("autograd.extend", primitive=primitive, defvjp=defvjp, vspace=vspace)
    module(
        "autograd.core",
        make_vjp=vjp,
        make_jvp=jvp,
        vspace=vspace,
        primitive=primitive,
        primitive_vjps={},
    )
    module("autograd.wrap_util", unary_to_nary=of_arguments)
    module(
        "autograd.misc",
        flatten=flatten,
        const_graph=lambda f, *a, **k: functools.partial(f, *a, **k),
    )
    module(
        "autograd.test_util",
        check_grads=check_grads,
        combo_check=combo_check,
        check_equivalent=check_equivalent,
        scalar_close=close,
        check_vjp=check_vjp,
        check_jvp=check_jvp,
    )
    try:
        import scipy  # noqa: F401
    except ImportError:
        return
    module("autograd.scipy")
    for name in ("integrate", "linalg", "signal", "special", "stats"):
        alias(f"autograd.scipy.{name}", f"scipy.{name}")
    stats = sys.modules["scipy.stats"]
    for name in (
        "norm",
        "t",
        "beta",
        "gamma",
        "chi2",
        "poisson",
        "multivariate_normal",
        "dirichlet",
    ):
        sys.modules[f"autograd.scipy.stats.{name}"] = getattr(stats, name)


install()
