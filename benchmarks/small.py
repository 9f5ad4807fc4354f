"""Programs over small arrays, where the price of a NumPy call counts for more than what it computes."""

from itertools import pairwise

import numpy as np

from .program import Program


def generator():
    return np.random.default_rng(7)


# ---------------------------------------------------------------------------------------- one formula


def trace_of_product(a, b):
    return np.trace(a @ b)


def trace_of_product_by_hand(a, b):
    return a.dot(b).trace(), (
        b.T.copy(),
        a.T.copy(),
    )  # the caller's own arrays, as every engine gives


def two_matrices(size=30):
    return tuple(generator().normal(size=(2, size, size)))


def logistic_regression(weights, features, labels):
    margins = labels * (features @ weights)
    return np.mean(np.log1p(np.exp(-margins)))


def logistic_regression_by_hand(weights, features, labels):
    margins = labels * features.dot(weights)
    e = np.exp(-margins)
    s = 1 + e
    n = len(labels)
    value = np.add.reduce(np.log1p(e)) / n
    return value, (e / s * labels / -n).dot(features)


def labelled(n=100, d=10):
    draw = generator()
    return draw.normal(size=d), draw.normal(size=(n, d)), np.sign(draw.normal(size=n))


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rosenbrock_by_hand(x):
    head = x[:-1]
    u = x[1:] - head * head
    v = 1 - head
    value = np.add.reduce(100.0 * (u * u) + v * v)
    u *= 200.0
    gradient = np.empty_like(x)
    gradient[0] = 0.0
    gradient[1:] = u
    u *= head
    u += v
    u *= 2.0
    gradient[:-1] -= u
    return value, gradient


def valley(n=1000):
    return (generator().uniform(-1, 1, size=n),)


# ------------------------------------------------------------------------------------------- networks


def mlp(w1, b1, w2, b2, inputs, targets):
    hidden = np.tanh(inputs @ w1 + b1)
    errors = hidden @ w2 + b2 - targets
    return np.mean(errors**2)


def mlp_by_hand(w1, b1, w2, b2, inputs, targets):
    hidden = np.tanh(inputs.dot(w1) + b1)
    errors = hidden.dot(w2) + b2 - targets
    value = np.add.reduce(errors * errors, axis=None) / errors.size
    d = errors * (2.0 / errors.size)
    dh = d.dot(w2.T) * (1 - hidden * hidden)
    return value, (
        inputs.T.dot(dh),
        np.add.reduce(dh, axis=0),
        hidden.T.dot(d),
        np.add.reduce(d, axis=0),
    )


def layers(batch=32, sizes=(10, 64, 1)):
    draw = generator()
    parameters = []
    for n, m in pairwise(sizes):
        parameters += [draw.normal(size=(n, m)) / n**0.5, draw.normal(size=m)]
    return *parameters, draw.normal(size=(batch, sizes[0])), draw.normal(size=(batch, sizes[-1]))


def dict_mlp(parameters, inputs, targets):
    """Three layers; the weights lie in a dict, as they do in most training loops."""
    hidden = np.tanh(inputs @ parameters["w1"] + parameters["b1"])
    hidden = np.tanh(hidden @ parameters["w2"] + parameters["b2"])
    errors = hidden @ parameters["w3"] + parameters["b3"] - targets
    return np.mean(errors**2)


def dict_mlp_by_hand(parameters, inputs, targets):
    w2, w3 = parameters["w2"], parameters["w3"]
    h1 = np.tanh(inputs.dot(parameters["w1"]) + parameters["b1"])
    h2 = np.tanh(h1.dot(w2) + parameters["b2"])
    errors = h2.dot(w3) + parameters["b3"] - targets
    value = np.add.reduce(errors * errors, axis=None) / errors.size
    d3 = errors * (2.0 / errors.size)
    d2 = d3.dot(w3.T) * (1 - h2 * h2)
    d1 = d2.dot(w2.T) * (1 - h1 * h1)
    gradient = {
        "w1": inputs.T.dot(d1),
        "b1": np.add.reduce(d1, axis=0),
        "w2": h1.T.dot(d2),
        "b2": np.add.reduce(d2, axis=0),
        "w3": h2.T.dot(d3),
        "b3": np.add.reduce(d3, axis=0),
    }
    return value, gradient


def dict_of_layers(batch=32, width=32):
    *parameters, inputs, targets = layers(batch, (10, width, width, 1))
    return dict(zip(("w1", "b1", "w2", "b2", "w3", "b3"), parameters)), inputs, targets


def lstm(w, u, b, inputs, target):
    """A recurrent network that remembers; the squared distance of its last state from a target."""
    n = len(target)
    hidden = np.zeros(n)
    cell = np.zeros(n)
    for x in inputs:
        gates = x @ w + hidden @ u + b
        forget = 1 / (1 + np.exp(-gates[:n]))
        update = 1 / (1 + np.exp(-gates[n : 2 * n]))
        output = 1 / (1 + np.exp(-gates[2 * n : 3 * n]))
        cell = forget * cell + update * np.tanh(gates[3 * n :])
        hidden = output * np.tanh(cell)
    return np.sum((hidden - target) ** 2)


def lstm_by_hand(w, u, b, inputs, target):
    n = len(target)
    hidden, cell = np.zeros(n), np.zeros(n)
    seen = []
    for x in inputs:
        gates = x.dot(w) + hidden.dot(u) + b
        s = 1 / (1 + np.exp(-gates[: 3 * n]))
        forget, update, output = s[:n], s[n : 2 * n], s[2 * n :]
        change = np.tanh(gates[3 * n :])
        before = cell
        cell = forget * cell + update * change
        t = np.tanh(cell)
        seen.append((x, hidden, before, s, forget, update, output, change, t))
        hidden = output * t
    errors = hidden - target
    value = np.add.reduce(errors * errors)
    dw, du, db = np.zeros_like(w), np.zeros_like(u), np.zeros_like(b)
    dgates, dcell = np.empty(4 * n), np.zeros(n)
    dforget, dupdate, doutput = dgates[:n], dgates[n : 2 * n], dgates[2 * n : 3 * n]
    dsigmoids, dchange = dgates[: 3 * n], dgates[3 * n :]
    dhidden = 2 * errors
    back = u.T
    for x, hidden, before, s, forget, update, output, change, t in reversed(seen):
        dcell += dhidden * output * (1 - t * t)
        np.multiply(dcell, before, out=dforget)
        np.multiply(dcell, change, out=dupdate)
        np.multiply(dhidden, t, out=doutput)
        dsigmoids *= s * (1 - s)
        np.multiply(dcell * update, 1 - change * change, out=dchange)
        dw += x[:, None] * dgates
        du += hidden[:, None] * dgates
        db += dgates
        dhidden = dgates.dot(back)
        dcell *= forget
    return value, (dw, du, db)


def lstm_in_jax(w, u, b, inputs, target):
    """The loop as `lax.scan`: unrolled, it takes ten seconds to compile."""
    import jax
    import jax.numpy as jnp

    def step(state, x):
        hidden, cell = state
        gates = x @ w + hidden @ u + b
        forget, update, output = jnp.split(1 / (1 + jnp.exp(-gates[: 3 * n])), 3)
        cell = forget * cell + update * jnp.tanh(gates[3 * n :])
        return (output * jnp.tanh(cell), cell), None

    n = len(target)
    (hidden, _), _ = jax.lax.scan(step, (jnp.zeros(n), jnp.zeros(n)), inputs)
    return jnp.sum((hidden - target) ** 2)


def sequence(steps=30, inputs=8, hidden=16):
    draw = generator()
    return (
        draw.normal(size=(inputs, 4 * hidden)) / inputs**0.5,
        draw.normal(size=(hidden, 4 * hidden)) / hidden**0.5,
        draw.normal(size=4 * hidden),
        draw.normal(size=(steps, inputs)),
        draw.normal(size=hidden),
    )


PROGRAMS = [
    Program(
        "trace-product",
        trace_of_product,
        trace_of_product_by_hand,
        two_matrices,
        {"size": 4},
        (0, 1),
        1.1,
    ),
    Program(
        "logistic-regression",
        logistic_regression,
        logistic_regression_by_hand,
        labelled,
        {"n": 9, "d": 3},
        0,
        1.1,
    ),
    Program("mlp", mlp, mlp_by_hand, layers, {"batch": 3}, (0, 1, 2, 3), 1.1),
    Program("rosenbrock", rosenbrock, rosenbrock_by_hand, valley, {"n": 9}, 0, 1.1),
    Program(
        "lstm",
        lstm,
        lstm_by_hand,
        sequence,
        {"steps": 3, "inputs": 2, "hidden": 3},
        (0, 1, 2),
        1.1,
        {"jax.jit": lstm_in_jax},
    ),
    Program(
        "dict-mlp", dict_mlp, dict_mlp_by_hand, dict_of_layers, {"batch": 3, "width": 4}, 0, 1.1
    ),
]
