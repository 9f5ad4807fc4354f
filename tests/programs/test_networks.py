"""Neural networks written with plain lists, dicts and classes of arrays."""

import math

import numpy as np
import pytest

from helpers import assert_close, check
from wengert import grad, pullback, value_and_grad

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)


# ------------------------------------------------------------------------------ perceptron, three ways


def softmax_loss(scores, labels):
    scores = scores - scores.max(axis=1, keepdims=True)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return -logs[np.arange(len(labels)), labels].mean()


class Dense:
    def __init__(self, rng, n, m, activation=None):
        self.w = rng.normal(size=(n, m)) / math.sqrt(n)
        self.b = np.zeros(m)
        self.activation = activation

    def __call__(self, x):
        y = x @ self.w + self.b
        return self.activation(y) if self.activation else y


def relu(x):
    return np.maximum(x, 0.0)


class Perceptron:
    def __init__(self, rng, *sizes):
        pairs = list(zip(sizes[:-1], sizes[1:]))
        self.layers = [
            Dense(rng, n, m, np.tanh if i < len(pairs) - 1 else None)
            for i, (n, m) in enumerate(pairs)
        ]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def parameters(self):
        for layer in self.layers:
            yield layer.w
            yield layer.b


def loss_of_object(model, x, y):
    return softmax_loss(model(x), y)


def loss_of_dicts(params, x, y):
    *hidden, last = params
    for layer in hidden:
        x = np.tanh(np.dot(x, layer["w"]) + layer["b"])
    return softmax_loss(x @ last["w"] + last["b"], y)


def loss_by_hand(model, x, y):
    """Value and gradients by hand-written backpropagation."""
    first, second = model.layers
    h = np.tanh(x @ first.w + first.b)
    scores = h @ second.w + second.b
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    value = -np.log(p[np.arange(len(y)), y]).mean()
    d = p.copy()
    d[np.arange(len(y)), y] -= 1
    d /= len(y)
    dh = (d @ second.w.T) * (1 - h * h)
    return value, [x.T @ dh, dh.sum(0), h.T @ d, d.sum(0)]


def test_perceptron_against_backpropagation_by_hand():
    model = Perceptron(np.random.default_rng(1), 3, 5, 2)
    value, gradient = value_and_grad(loss_of_object)(model, X, Y)
    expected, (dw1, db1, dw2, db2) = loss_by_hand(model, X, Y)
    assert value == loss_of_object(model, X, Y)
    assert value == pytest.approx(expected)
    first, second = gradient["layers"]
    for mine, theirs in zip(
        [first["w"], first["b"], second["w"], second["b"]], [dw1, db1, dw2, db2]
    ):
        assert_close(mine, theirs, tol=1e-12)
    params = [{"w": layer.w, "b": layer.b} for layer in model.layers]
    for mine, theirs in zip(grad(loss_of_dicts)(params, X, Y), gradient["layers"]):
        assert_close(mine["w"], theirs["w"])
        assert_close(mine["b"], theirs["b"])


def test_perceptron_is_trained():
    model = Perceptron(np.random.default_rng(1), 3, 8, 2)
    model.layers[0].activation = relu
    losses = []
    for _ in range(150):
        value, gradient = value_and_grad(loss_of_object)(model, X, Y)
        losses.append(value)
        for layer, d in zip(model.layers, gradient["layers"]):
            layer.w -= 0.5 * d["w"]
            layer.b -= 0.5 * d["b"]
    assert losses[-1] < 0.1 < losses[0]
    assert (model(X).argmax(axis=1) == Y).mean() >= 0.95


def perceptron_of_lists(params, x):
    for i, (w, b) in enumerate(params):
        x = [
            sum(wi * xi for wi, xi in zip(row, x, strict=True)) + bi
            for row, bi in zip(w, b, strict=True)
        ]
        if i < len(params) - 1:
            x = [1 / (1 + math.exp(-xi)) for xi in x]
    return sum(x)


def test_perceptron_of_plain_lists():
    params = [
        ([[0.1, -0.4], [0.3, 0.8], [-0.5, 0.2]], [0.0, 0.1, -0.1]),
        ([[0.7, -0.2, 0.4]], [0.05]),
    ]
    check(perceptron_of_lists, params, [0.9, -1.3])


class Tensor:
    """A class of arrays with operators, as people write their own."""

    def __init__(self, data):
        self.data = np.asarray(data)

    def __matmul__(self, other):
        return Tensor(self.data @ other.data)

    def __add__(self, other):
        return Tensor(self.data + (other.data if isinstance(other, Tensor) else other))

    __radd__ = __add__

    def relu(self):
        return Tensor(np.where(self.data > 0, self.data, 0.0))

    def sum(self):
        return float(self.data.sum())

    @property
    def shape(self):
        return self.data.shape

    @staticmethod
    def stack(parts):
        return Tensor(np.stack([part.data for part in parts]))


def test_perceptron_of_a_tensor_class():
    def f(w, b, x):
        w, b, x = Tensor(w), Tensor(b), Tensor(x)
        hidden = (x @ w + b).relu()
        return Tensor.stack([hidden, hidden + 1.0]).sum() * hidden.shape[0]

    check(f, rng.normal(size=(3, 4)), rng.normal(size=4), X[:5])


# -------------------------------------------------------------------------------------------- recurrent


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class LSTM:
    def __init__(self, rng, n, m):
        self.gates = {
            name: rng.normal(size=(m, n + m)) * 0.4
            for name in ("forget", "input", "output", "cell")
        }
        self.biases = dict.fromkeys(self.gates)
        for name in self.biases:
            self.biases[name] = np.full(m, 0.1)

    def step(self, x, state):
        h, c = state
        z = np.concatenate([x, h])
        gate = {name: w @ z + self.biases[name] for name, w in self.gates.items()}
        c = sigmoid(gate["forget"]) * c + sigmoid(gate["input"]) * np.tanh(gate["cell"])
        return sigmoid(gate["output"]) * np.tanh(c), c

    def __call__(self, xs):
        m = len(self.biases["cell"])
        state = (np.zeros(m), np.zeros(m))
        outputs = []
        for x in xs:
            state = self.step(x, state)
            outputs.append(state[0])
        return np.array(outputs)


def lstm_loss(model, xs, target):
    return ((model(xs) - target) ** 2).sum()


def test_lstm():
    model = LSTM(np.random.default_rng(2), 2, 3)
    xs, target = rng.normal(size=(6, 2)), rng.normal(size=(6, 3))
    (dmodel, dxs, dtarget) = check(lstm_loss, model, xs, target, tol=1e-6)
    assert set(dmodel["gates"]) == {"forget", "input", "output", "cell"}
    assert dmodel["gates"]["cell"].shape == (3, 5)


def test_lstm_is_trained():
    model = LSTM(np.random.default_rng(2), 1, 4)
    xs = np.sin(np.linspace(0, 6, 12))[:, None]

    def loss(model):
        return ((model(xs[:-1]).sum(axis=1) - xs[1:, 0]) ** 2).mean()

    losses = []
    for _ in range(60):
        value, gradient = value_and_grad(loss)(model)
        losses.append(value)
        for name in model.gates:
            model.gates[name] -= 0.3 * gradient["gates"][name]
            model.biases[name] -= 0.3 * gradient["biases"][name]
    assert losses[-1] < losses[0] / 4


class GRU:
    """The same on plain floats."""

    def __init__(self, **weights):
        self.__dict__.update(weights)

    def step(self, h, x):
        z = 1 / (1 + math.exp(-(self.wz * x + self.uz * h)))
        r = 1 / (1 + math.exp(-(self.wr * x + self.ur * h)))
        return z * h + (1 - z) * math.tanh(self.wh * x + self.uh * (r * h))


def test_recurrent_unit_on_floats():
    def last(unit, xs):
        h = 0.0
        for x in xs:
            h = unit.step(h, x)
        return h

    unit = GRU(wz=0.5, uz=-0.3, wr=0.8, ur=0.2, wh=1.1, uh=-0.6)
    check(last, unit, [0.5, -1.0, 0.25, 2.0])


# ------------------------------------------------------------------------------------ attention and others


def attention(params, x):
    q, k, v = (x @ params[name] for name in "qkv")
    scores = q @ k.T / np.sqrt(q.shape[-1])
    scores = np.where(np.tril(np.ones_like(scores)) > 0, scores, -1e9)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    y = x + weights @ v
    mean, spread = y.mean(axis=-1, keepdims=True), y.std(axis=-1, keepdims=True)
    return (y - mean) / (spread + 1e-5)


def test_causal_attention():
    params = {name: rng.normal(size=(4, 4)) for name in "qkv"}
    check(
        lambda params, x: (attention(params, x) ** 3).sum(),
        params,
        rng.normal(size=(5, 4)),
        tol=1e-6,
    )


def test_convolution_in_loops():
    def convolve(image, kernel):
        n, m = image.shape
        k = len(kernel)
        out = np.zeros((n - k + 1, m - k + 1))
        for i in range(k):
            for j in range(k):
                out += kernel[i, j] * image[i : i + n - k + 1, j : j + m - k + 1]
        return np.tanh(out).max()

    check(convolve, rng.normal(size=(5, 6)), rng.normal(size=(3, 3)))


class Adam:
    """An optimizer with a state, writing in place."""

    def __init__(self, rate):
        self.rate, self.t, self.m, self.v = rate, 0, {}, {}

    def step(self, params, grads):
        self.t += 1
        for name, g in grads.items():
            m = self.m.setdefault(name, np.zeros_like(g))
            v = self.v.setdefault(name, np.zeros_like(g))
            m *= 0.9
            m += 0.1 * g
            v *= 0.99
            v += 0.01 * g * g
            fixed = m / (1 - 0.9**self.t)
            params[name] -= self.rate * fixed / (np.sqrt(v / (1 - 0.99**self.t)) + 1e-8)


def test_optimizer_inside_a_traced_function():
    """The loss after four steps of Adam, by the rate and by where it began."""

    def train(rate, start):
        params, adam = {"w": start.copy()}, Adam(rate)
        for _ in range(4):
            w = params["w"]
            adam.step(params, {"w": 2 * (w - 1.0) * w})
        return ((params["w"] - 1.0) ** 2).sum()

    check(train, 0.1, np.array([0.3, 2.0, -0.7]))


def test_mixture_of_gaussians():
    def log_likelihood(weights, means, roots, data):
        total = 0.0
        for x in data:
            terms = []
            for weight, mean, root in zip(weights, means, roots):
                d = np.linalg.solve(root, x - mean)
                terms.append(weight - 0.5 * d @ d - np.log(np.abs(np.diag(root))).sum())
            top = max(terms)
            total += top + np.log(sum(np.exp(t - top) for t in terms))
        return total - len(data) * np.log(np.exp(weights).sum())

    roots = [np.array([[1.0, 0.0], [0.3, 0.8]]), np.array([[0.7, 0.0], [-0.2, 1.1]])]
    check(log_likelihood, np.array([0.3, -0.2]), [np.zeros(2), np.ones(2)], roots, X[:6, :2])


def test_variational_autoencoder():
    def loss(params, x, noise):
        h = np.tanh(x @ params["encode"])
        mean, log_variance = np.split(h, 2, axis=1)
        z = mean + np.exp(log_variance / 2) * noise
        y = sigmoid(z @ params["decode"])
        divergence = -0.5 * (1 + log_variance - mean**2 - np.exp(log_variance)).sum()
        return ((x - y) ** 2).sum() + divergence

    params = {"encode": rng.normal(size=(3, 4)), "decode": rng.normal(size=(2, 3))}
    check(loss, params, X[:4], rng.normal(size=(4, 2)), tol=1e-6)


def test_gradient_has_the_structure_of_the_model():
    model = Perceptron(np.random.default_rng(1), 3, 5, 2)
    value, back = pullback(model, X[:2], wrt_self=True)
    itself, dx = back(np.ones((2, 2)))
    assert [set(layer) >= {"w", "b"} for layer in itself["layers"]] == [True, True]
    assert dx.shape == (2, 3)
