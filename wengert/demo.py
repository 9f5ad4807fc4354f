"""``python -m wengert demo``: a network that learns to read handwritten digits.

The classifier below is ordinary NumPy code: nothing in it knows that it is going to be
differentiated. Its gradient comes from the calls of ``pullback`` further down.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from tqdm import tqdm

from wengert import Tape, pictures, pullback, trace

Floats = NDArray[np.float64]
Integers = NDArray[np.integer[Any]]


# ------------------------------------------------------------------------------ the classifier


class Layer:
    """A linear map and a shift."""

    def __init__(self, inputs: int, outputs: int, rng: np.random.Generator) -> None:
        self.weights = rng.normal(0.0, np.sqrt(2.0 / inputs), (inputs, outputs))
        self.bias = np.zeros(outputs)

    def __call__(self, x: Floats) -> Floats:
        return x @ self.weights + self.bias


class Network:
    """Layers with a rectifier between each two."""

    def __init__(self, sizes: tuple[int, ...], rng: np.random.Generator) -> None:
        self.layers = [Layer(inputs, outputs, rng) for inputs, outputs in pairwise(sizes)]

    def __call__(self, images: Floats) -> Floats:
        x = images
        for layer in self.layers[:-1]:
            x = np.maximum(layer(x), 0.0)
        return self.layers[-1](x)

    def classify(self, images: Floats) -> Integers:
        return self(images).argmax(axis=1)


def cross_entropy(network: Network, images: Floats, labels: Integers) -> Any:
    """How surprised the network is, on average, by the labels."""
    scores = network(images)
    scores = scores - scores.max(axis=1, keepdims=True)
    log_likelihood = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return -log_likelihood[np.arange(len(labels)), labels].mean()


class Adam:
    """Adam (Kingma and Ba, 2015) on the weights and biases of a network, changed in place."""

    def __init__(self, network: Network, rate: float) -> None:
        self.parameters = [a for layer in network.layers for a in (layer.weights, layer.bias)]
        self.means = [np.zeros_like(a) for a in self.parameters]
        self.squares = [np.zeros_like(a) for a in self.parameters]
        self.rate = rate
        self.steps = 0

    def step(self, gradients: list[Floats]) -> None:
        self.steps += 1
        for a, g, mean, square in zip(
            self.parameters, gradients, self.means, self.squares, strict=True
        ):
            mean += 0.1 * (g - mean)
            square += 0.001 * (g * g - square)
            size = np.sqrt(square / (1 - 0.999**self.steps)) + 1e-8
            a -= self.rate * mean / (1 - 0.9**self.steps) / size


# ------------------------------------------------------------------------------------- the data


def load_digits() -> tuple[Floats, Integers]:
    """1797 images of 8 by 8 pixels between 0 and 1, and the digits they show; see digits.md."""
    with resources.files("wengert").joinpath("digits.npz").open("rb") as file:
        data = np.load(file, allow_pickle=False)
        return data["images"] / 16.0, data["labels"].astype(np.intp)


def batches(
    images: Floats, labels: Integers, size: int, rng: np.random.Generator
) -> Iterator[tuple[Floats, Integers]]:
    """Every image once, in random order."""
    order = rng.permutation(len(labels))
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        yield images[chosen], labels[chosen]


def drawing(images: Floats) -> str:
    """Images in characters, side by side."""
    shades = np.array(list(" .:-=+*#%@"))
    rows = np.concatenate(images.reshape(-1, 8, 8), axis=1)
    pixels = shades[np.rint(9 * rows).astype(int)]
    return "\n".join("  " + "".join(2 * pixel for pixel in row) for row in pixels)


# -------------------------------------------------------------------------------------- the demo


def run(epochs: int, seed: int, picture: Path) -> None:
    """Train, and report: the first tape and its picture, a check of its gradient, the accuracy, a picture."""
    rng = np.random.default_rng(seed)
    images, labels = load_digits()
    order = rng.permutation(len(labels))
    held_back, training = order[:397], order[397:]
    network = Network((64, 48, 10), rng)
    optimiser = Adam(network, rate=3e-3)
    first = images[training[:32]], labels[training[:32]]

    print(
        f"{len(training)} images of handwritten digits to learn from, {len(held_back)} held back."
    )
    print(f"These show {', '.join(map(str, first[1][:5]))}:\n{drawing(first[0][:5])}\n")
    print("The tape of the loss on the first 32 images:\n")
    tape = trace(cross_entropy, network, *first)
    print(tape, "\n")
    draw_tape(tape, picture.with_name(f"{picture.stem}-tape.svg"))
    check_gradient(network, *first, rng)

    losses = []
    start = time.perf_counter()
    for _ in (progress := tqdm(range(epochs), desc="training", unit="epoch")):
        for batch in batches(images[training], labels[training], 32, rng):
            loss, back = pullback(cross_entropy, network, *batch)
            optimiser.step(arrays(back(1.0)[0]))
            losses.append(float(loss))
        progress.set_postfix(loss=f"{np.mean(losses[-40:]):.4f}")
    seconds = time.perf_counter() - start

    right = network.classify(images[held_back]) == labels[held_back]
    print(
        f"\n{len(losses)} gradients in {seconds:.1f} s: {1e3 * seconds / len(losses):.1f} ms each."
    )
    print(f"Of the {len(right)} images held back, {right.mean():.1%} are read correctly.")
    draw(losses, epochs, picture)
    print(f"The picture of the loss is in {picture.absolute()}")


def draw_tape(tape: Tape, picture: Path) -> None:
    """Save a picture of the tape, where there is what it takes."""
    try:
        pictures.write(tape, picture)
    except pictures.CannotDraw as why:
        print(f"There is no picture of the tape: {why}\n")
    else:
        print(f"A picture of the tape is in {picture.absolute()}\n")


def arrays(gradient: dict[str, Any]) -> list[Floats]:
    """The gradient of a network, which has the network's structure, as a list of arrays."""
    return [layer[name] for layer in gradient["layers"] for name in ("weights", "bias")]


def check_gradient(
    network: Network, images: Floats, labels: Integers, rng: np.random.Generator
) -> None:
    """Compare some components of the gradient with finite differences."""
    _, back = pullback(cross_entropy, network, images, labels)
    gradient = back(1.0)[0]
    print("Some components of its gradient, and what finite differences say:\n")
    for number, layer in enumerate(network.layers):
        for name in ("weights", "bias"):
            parameter = getattr(layer, name)
            exact = gradient["layers"][number][name]
            index = np.unravel_index(np.argmax(np.abs(exact)), exact.shape)
            place = f"layers[{number}].{name}[{', '.join(map(str, index))}]"
            estimate = central_difference(network, images, labels, parameter, index)
            error = abs(exact[index] - estimate)
            print(f"  {place:<26}{exact[index]:>15.10f}{estimate:>15.10f}   off by {error:.0e}")
    print()


def central_difference(
    network: Network, images: Floats, labels: Integers, parameter: Floats, index: Any
) -> float:
    """The slope of the loss along one component, from plain calls of the loss."""
    h = 1e-5
    kept = parameter[index]
    sides = []
    for moved in (kept + h, kept - h):
        parameter[index] = moved
        sides.append(cross_entropy(network, images, labels))
    parameter[index] = kept
    return float((sides[0] - sides[1]) / (2 * h))


def draw(losses: list[float], epochs: int, picture: Path) -> None:
    """Save the course of the loss, mini-batch by mini-batch and averaged over each epoch."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    steps = len(losses) // epochs
    axes.plot(losses, color="0.75", linewidth=0.8, label="each mini-batch")
    middles = steps * (np.arange(epochs) + 0.5)
    axes.plot(middles, np.reshape(losses, (epochs, steps)).mean(axis=1), label="each epoch")
    axes.set(xlabel="mini-batch", ylabel="cross-entropy", yscale="log")
    axes.set_title("Learning to read digits")
    axes.legend()
    figure.savefig(picture, dpi=120)
