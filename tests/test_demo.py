"""The demo learns, says what it does, and leaves a picture."""

import re
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

import wengert
from wengert import cli, demo, pullback


def test_the_data_set():
    images, labels = demo.load_digits()
    assert images.shape == (1797, 64)
    assert (images.min(), images.max()) == (0.0, 1.0)
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_the_gradient_is_the_textbook_one():
    """Of a network with one layer: images.T @ (softmax - one-hot) / number of images."""
    rng = np.random.default_rng(1)
    network = demo.Network((64, 10), rng)
    images, labels = (x[:50] for x in demo.load_digits())
    _, back = pullback(demo.cross_entropy, network, images, labels)
    weights, bias = demo.arrays(back(1.0)[0])
    odds = np.exp(network(images))
    error = (odds / odds.sum(axis=1, keepdims=True) - np.eye(10)[labels]) / 50
    np.testing.assert_allclose(weights, images.T @ error, atol=1e-14)
    np.testing.assert_allclose(bias, error.sum(axis=0), atol=1e-14)


def test_demo(tmp_path, capsys):
    picture = tmp_path / "loss.png"
    demo.run(epochs=4, seed=0, picture=picture)
    out, err = capsys.readouterr()
    assert "training: 100%" in err
    assert "matmul" in out
    assert "demo.py:" in out
    assert [float(x) for x in re.findall(r"off by (\S+)", out)] == pytest.approx([0] * 4, abs=1e-8)
    accuracy = float(re.search(r"([\d.]+)% are read correctly", out)[1])
    assert accuracy > 85
    assert str(picture) in out
    assert picture.read_bytes().startswith(b"\x89PNG")


class Graph:
    def pipe(self, format):
        return b"<svg/>"


def test_the_picture_of_the_tape(tmp_path, capsys, monkeypatch):
    """It is drawn where that can be done; where not, the demo says why and goes on."""
    monkeypatch.setattr(wengert.Tape, "draw", lambda tape: Graph(), raising=False)
    tape = wengert.trace(np.sin, 1.0)
    picture = tmp_path / "loss-tape.svg"
    demo.draw_tape(tape, picture)
    assert picture.read_bytes() == b"<svg/>"
    assert str(picture) in capsys.readouterr().out
    demo.draw_tape(tape, tmp_path / "nowhere" / "loss-tape.svg")
    assert "no picture of the tape: cannot write" in capsys.readouterr().out

    def refuse(tape):
        raise wengert.TraceError("draw() needs the package graphviz")

    monkeypatch.setattr(wengert.Tape, "draw", refuse)
    demo.draw_tape(tape, picture)
    assert "no picture of the tape: draw() needs" in capsys.readouterr().out


def test_a_missing_package_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.delitem(sys.modules, "wengert.demo")
    monkeypatch.delattr("wengert.demo")
    with pytest.raises(SystemExit) as stop:
        cli.main(["demo"])
    assert stop.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_unwritable_picture_is_refused_at_once(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["demo", "--picture", str(tmp_path / "nowhere" / "loss.png")])
    assert stop.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
