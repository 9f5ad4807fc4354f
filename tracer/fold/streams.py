"""Generators of random numbers: those that the run makes, and those from outside, of Python's and of NumPy's.

Words
-----
stream    a generator of random numbers.
own       made by the run itself, from a seed: a program makes it as well, and asks it in the same order.
draw      a number or an array from a stream outside, or what makes one of it: a program that is left has made it, so
          it is noted, and the run that takes over is given it.
"""

from __future__ import annotations

import types
from random import Random
from typing import Any

import numpy as np

from ...rules.numpy_random import DRAWS, REORDERINGS, reparameterised
from ...rules.words import with_article
from ..draws import parameters_of
from ..kinds import static
from .arrays import given as made_of
from .arrays import opened
from .basics import NUMBERS, computed, plain, refuse
from .functions import call_function
from .nested import Whole, frame_of, plainly
from .recorder import Box, Recorder
from .region import INPUT, RESULT, Call, Draw, Pair, is_of_numpy, kind_of

# Methods of a stream of Python's that the run has made.
OWN = frozenset(
    "random uniform gauss normalvariate expovariate randint randrange getrandbits".split()
)

# Each looks at the state of the stream and at what it is given, and changes nothing else.
BOTH = frozenset(
    "beta binomial chisquare exponential f gamma geometric gumbel hypergeometric laplace logistic lognormal logseries "
    "negative_binomial noncentral_chisquare noncentral_f normal pareto permutation poisson power random rayleigh "
    "standard_cauchy standard_exponential standard_gamma standard_normal standard_t triangular uniform vonmises wald "
    "weibull zipf choice multivariate_normal multinomial dirichlet".split()
)
METHODS = {
    Random: frozenset(("random", "getrandbits")),
    np.random.Generator: BOTH | {"integers"},
    np.random.RandomState: BOTH | {"rand", "randn", "randint", "random_sample"},
}


# What makes a stream of a seed.
MAKERS = (Random, np.random.default_rng, np.random.RandomState)


def is_maker(fn: Any, args: tuple[Any, ...], kwargs: Any) -> bool:
    """Whether a call makes a stream that is the same whenever it is made."""
    return (
        len(args) == 1
        and not kwargs
        and type(plain(args[0])) is int
        and any(fn is maker for maker in MAKERS)
    )


def made(recorder: Recorder, key: Any, fn: Any, seed: Any) -> Box:
    """``Random(seed)`` and the like."""
    stream = computed(recorder, key, fn, (seed,))
    recorder.streams[id(stream)] = stream
    recorder.folded.makes_streams = True
    return recorder.value(key, fn, (seed,), stream)


def method(recorder: Recorder, box: Box, name: str) -> Any:
    """A method of a stream."""
    kind = type(box.value)
    found = recorder.outside.of_class(kind, name)
    if kind is Random and name in vars(box.value):
        return refuse(f"a generator of random numbers has its own {name}")
    if not callable(found) or isinstance(found, type):
        return refuse(f"the attribute {name} of {with_article(kind.__name__)} is read")
    return types.MethodType(found, box)


def called(recorder: Recorder, key: Any, fn: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    """A method of a stream is called, or a function is given one."""
    stream, folded = args[0].value, recorder.folded
    own, name = id(stream) in recorder.streams, getattr(fn, "__name__", "a function")
    in_c = own and type(stream) is Random and name in OWN  # or as good as
    if type(fn) is types.FunctionType and not in_c:
        return call_function(recorder, key, fn, args, kwargs)
    if fn is not static(type(stream), name):
        return refuse(f"{name} is given a generator of random numbers")
    if recorder.giving or recorder.untouched is not None:
        return refuse("a generator draws random numbers")
    folded.finds_streams |= not own and args[0].op.fn != INPUT
    # Which of them is asked might depend on what lies where.
    if folded.makes_streams and folded.finds_streams:
        return refuse("generators that it makes are asked beside some that lie in containers")
    return (of_own if in_c else of_any)(recorder, key, fn, args, kwargs)


def of_own(recorder: Recorder, key: Any, fn: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    """A number from a stream of Python's of the run's own."""
    name, given = fn.__name__, args[1:]
    if kwargs or any(type(x) not in NUMBERS and type(plain(x)) is not int for x in given):
        return refuse(f"{name} is given numbers that have a derivative")
    value = computed(recorder, key, fn, args)
    if type(value) not in NUMBERS:
        return refuse(f"{name} gives {with_article(type(value).__name__)}")
    return recorder.value(key, fn, args, value)


def of_any(recorder: Recorder, key: Any, fn: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    """A draw, or what a stream of the run's own gives."""
    name, kind = fn.__name__, type(args[0].value)
    if name not in METHODS[kind]:
        return refuse(f"{name} of {with_article(kind.__name__)} is called")
    args = (args[0], *[opened(recorder, (key, i), x, True) for i, x in enumerate(args[1:])])
    kwargs = {k: opened(recorder, (key, k), x, True) for k, x in kwargs.items()}
    found: list[Any] = []
    frame = frame_of(args, kwargs, found)
    if name in DRAWS and id(args[0].value) not in recorder.streams:
        bound = parameters_of(DRAWS[name].family, args[1:], kwargs)
        if bound is not None and holds_number(bound[0]):
            return by_noise(recorder, key, DRAWS[name], args[0], *bound)
    if any(map(may_have_slope, found[1:])):
        return refuse(f"{name} is given numbers that may have a derivative")
    if fn in REORDERINGS and may_be_gathered([*args[1:], *kwargs.values()][:1]):
        return refuse(f"{name} is given numbers or an array")  # where the tracer may draw indices
    value, make = value_of(recorder, fn, args, kwargs)
    if type(value) not in NUMBERS and not is_of_numpy(value):
        return refuse(f"{name} gives {with_article(type(value).__name__)}")
    own, of = (key, make, frame), kind_of(value)
    op = recorder.add(
        own, fn, found, of, lambda given: make(own, fn, given, of, recorder.region, frame)
    )
    return boxed(recorder, value, op)


def may_be_gathered(elements: Any) -> bool:
    """Whether these may be traced elements, which `draws.reorder` gathers: any but whole numbers."""
    found: list[Any] = []
    frame_of(elements, {}, found)
    values = [plain(x) for x in found]
    return any(
        type(x) is not int and (type(x) is not np.ndarray or x.dtype.kind not in "biu")
        for x in values
    )


def value_of(recorder: Recorder, fn: Any, args: tuple[Any, ...], kwargs: Any) -> tuple[Any, Any]:
    """What a stream gives, and what kind of op that is."""
    values, named = plainly(args), plainly(kwargs)
    if id(values[0]) in recorder.streams:
        return recorder.plainly(fn, values, named), Call
    if type(values[0]) is Random:  # whose methods are noted as bound ones, wherever they are called
        return recorder.drawn(getattr(values[0], fn.__name__), values[1:], named), Draw
    return recorder.drawn(fn, values, named), Draw


def may_have_slope(x: Any) -> bool:
    """Whether an operand is a number of the run that is no integer, or a list that holds one."""
    if type(x) is list:
        return any(map(may_have_slope, x))
    return type(x) is Box and np.asarray(x.value).dtype.kind not in "iub"


def holds_number(x: Any) -> bool:
    """Whether there is a number of the run in parameters, or a list of such."""
    if type(x) is list or type(x) is tuple:
        return any(map(holds_number, x))
    return type(x) is Box or type(x) is Whole


def by_noise(
    recorder: Recorder, key: Any, draw: Any, stream: Box, parameters: list[Any], options: Any
) -> Any:
    """A draw by parameters that may have derivatives: its value is a function of these and of a noise."""
    name = draw.__name__
    found: list[Any] = []
    frame = frame_of((stream, *parameters), options, found)
    pair = value_of(recorder, draw, (stream, *parameters), options)[0]
    kinds = [*map(kind_of, pair)]
    if any(kind not in NUMBERS and not is_of_numpy(x) for kind, x in zip(kinds, pair, strict=True)):
        return refuse(f"{name} gives {with_article(type(pair[0]).__name__)}")
    own = key, "noise", frame
    op = recorder.add(
        own, draw, found, tuple, lambda given: Pair(own, draw, given, tuple, recorder.region, frame)
    )
    if not op.results:
        op.results[None] = recorder.fresh(RESULT, pair, recorder.region)
    if [x.type for x in op.results[None]] != kinds:
        return refuse(f"{name} gives other things than before")
    value, noise = [
        boxed(recorder, x, part) for x, part in zip(pair, op.results[None], strict=True)
    ]
    given: list[Any] = []
    frame = frame_of((value, noise, *parameters), {"family": name}, given)
    return made_of(recorder, (key, "value"), reparameterised, given, frame, value.value)


def boxed(recorder: Recorder, value: Any, op: Any) -> Box:
    """A number or an array of an op."""
    box = recorder.read_only(value, op) if is_of_numpy(value) else Box(value, op, recorder.turn)
    op.now = box
    return box
