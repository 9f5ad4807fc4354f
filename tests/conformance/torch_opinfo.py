"""PyTorch's table of operators (`OpInfo`): our gradients of their NumPy references against PyTorch's own gradients.

    python -m tests.conformance.torch_opinfo [name ...] [--complex] [--limit 20] [--show]

Of every operator that PyTorch differentiates and whose reference is written with NumPy or SciPy, the reference is
traced at PyTorch's own sample inputs: its value must be what it is in plain Python, and its gradient that of PyTorch.
A sample at which the reference and the operator disagree in their values says nothing about gradients.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np

# What is known to be refused or to differ, and why: by the operator's name.
KNOWN = {
    "aminmax": "a reduction of a 0-dimensional array along its axis 0",
    "prod": "a reduction of a 0-dimensional array along its axis 0",
    "linalg.tensorsolve": "NumPy sets the shape of a computed array",
    "fft.hfft2": "an integer for the axes",
    "fft.hfftn": "an integer for the axes",
    "fft.ihfft2": "an integer for the axes",
    "fft.ihfftn": "an integer for the axes",
    "nn.functional.pdist": "distances computed by C code of SciPy",
}


class OutOfReach(Exception):
    """A sample that says nothing about gradients."""


def operators(names: list[str]) -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return [
        op
        for op in op_db
        if callable(op.ref)
        and op.supports_autograd
        and (not names or op.name in names or op.full_name in names)
    ]


def samples_of(op: Any, dtype: Any, limit: int) -> list[Any]:
    import torch

    torch.manual_seed(0)
    found = op.sample_inputs("cpu", dtype, requires_grad=True)
    return list(itertools.islice(found, limit))


def tensors_in(tree: Any) -> list[Any]:
    """The tensors of a sample, in order."""
    import torch

    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, list | tuple):
        return [x for part in tree for x in tensors_in(part)]
    if isinstance(tree, dict):
        return [x for part in tree.values() for x in tensors_in(part)]
    return []


def filled(tree: Any, given: Any) -> Any:
    """A sample as NumPy has it, with these arrays in the places of its tensors."""
    import torch
    from torch.testing._internal.common_utils import torch_to_numpy_dtype_dict

    if isinstance(tree, torch.Tensor):
        return next(given)
    if isinstance(tree, list | tuple):
        return type(tree)([filled(x, given) for x in tree])
    if isinstance(tree, dict):
        return {key: filled(x, given) for key, x in tree.items()}
    if isinstance(tree, torch.dtype):
        return torch_to_numpy_dtype_dict[tree]
    return tree


def compare(op: Any, sample: Any) -> None:
    """Raises where our gradient of the reference is not PyTorch's of the operator."""
    import torch

    from wengert import pullback

    whole = (sample.input, tuple(sample.args), dict(sample.kwargs))
    tensors = tensors_in(whole)
    wanted = [i for i, x in enumerate(tensors) if x.requires_grad]
    if not wanted:
        raise OutOfReach("nothing to differentiate")
    arrays = [x.detach().resolve_conj().resolve_neg().numpy().copy() for x in tensors]

    def reference(*moving: Any) -> Any:
        given = list(arrays)
        for i, x in zip(wanted, moving):
            given[i] = x
        first, args, kwargs = filled(whole, iter(given))
        return op.ref(first, *args, **named(op, kwargs))

    try:
        plain = reference(*[arrays[i].copy() for i in wanted])
    except Exception as error:
        raise OutOfReach(
            f"the reference fails: {op.name}: {type(error).__name__}: {error}"[:150]
        ) from None
    theirs = op(sample.input, *sample.args, **sample.kwargs)
    several = isinstance(plain, list | tuple)
    outs, values = (list(theirs), list(plain)) if several else ([theirs], [plain])
    if several != isinstance(theirs, list | tuple) or len(outs) != len(values):
        raise OutOfReach("the reference gives another structure")
    chosen = [
        i
        for i, (out, value) in enumerate(zip(outs, values))
        if out.requires_grad and np.asarray(value).dtype.kind in "fc"
    ]
    if not chosen:
        raise OutOfReach("the result has no gradient")
    for i in chosen:
        if not alike(np.asarray(values[i]), outs[i].detach().resolve_conj().resolve_neg().numpy()):
            raise OutOfReach(f"the reference gives another value: {op.name}")

    rng = np.random.default_rng(0)
    weights = [weight(rng, x) if i in chosen else None for i, x in enumerate(values)]
    grads = torch.autograd.grad(
        [outs[i] for i in chosen],
        [tensors[i] for i in wanted],
        [torch.from_numpy(np.array(np.conj(weights[i]))).to(outs[i].dtype) for i in chosen],
        allow_unused=True,
    )
    value, back = pullback(reference, *[arrays[i] for i in wanted])
    mine = value if several else [value]
    for i, (a, b) in enumerate(zip(mine, values, strict=True)):
        if type(a) is not type(b) or not np.array_equal(
            a, b, equal_nan=np.asarray(b).dtype.kind in "fc"
        ):
            raise AssertionError(f"value {i}: {a!r} is not {b!r}")
    cotangent = type(plain)(weights) if several else weights[0]
    for number, (g, expected) in enumerate(zip(back(cotangent), grads, strict=True)):
        at = arrays[wanted[number]]
        wished = (
            np.zeros_like(at)
            if expected is None
            else expected.resolve_conj().resolve_neg().numpy(force=True)
        )
        found = np.zeros_like(at) if g is None else np.conj(g)
        if not alike(np.asarray(found), wished, 1e-6):
            raise AssertionError(
                f"gradient of input {number}: {np.asarray(found)!r:.200} is not PyTorch's {wished!r:.200} "
                f"at {at!r:.200}, {sample.args!r:.200}, {sample.kwargs!r:.200}"
            )


def named(op: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments by the names that NumPy and SciPy have for them."""
    if not op.name.startswith("fft.") or "dim" not in kwargs:
        return kwargs
    rest = {key: x for key, x in kwargs.items() if key != "dim"}
    if not op.name.endswith(("2", "n")):
        return {**rest, "axis": kwargs["dim"]}
    one = np.ndim(kwargs["dim"]) == 0 and op.ref.__module__.startswith("numpy")
    return {**rest, "axes": (kwargs["dim"],) if one else kwargs["dim"]}


def weight(rng: Any, value: Any) -> Any:
    """A cotangent of the kind of a value."""
    drawn = rng.uniform(0.5, 1.5, np.shape(value))
    dtype = np.asarray(value).dtype
    if dtype.kind == "c":
        drawn = drawn + 1j * rng.uniform(0.5, 1.5, np.shape(value))
    drawn = np.asarray(drawn, dtype)
    return drawn if isinstance(value, np.ndarray) else type(value)(drawn[()])


def alike(a: np.ndarray, b: np.ndarray, tol: float = 1e-5) -> bool:
    """Equal up to rounding; where one is not finite, the other is not."""
    if a.shape != b.shape:
        return False
    with np.errstate(all="ignore"):
        return bool(np.allclose(a, b, rtol=tol, atol=tol, equal_nan=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--complex", action="store_true", help="complex samples as well")
    parser.add_argument("--limit", type=int, default=20, help="samples of each operator")
    parser.add_argument("--show", action="store_true", help="the whole message of what is wrong")
    asked = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("left out: PyTorch is not installed")
        return 0
    from wengert import WengertError

    warnings.simplefilter("ignore")
    start = time.perf_counter()
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    wrong: dict[str, list[str]] = {}
    refused: dict[str, list[str]] = {}
    chosen = operators(asked.names)
    for op in chosen:
        dtypes = [torch.float64] + [torch.complex128] * asked.complex
        for dtype in dtypes:
            if dtype not in op.supported_backward_dtypes("cpu"):
                reasons["PyTorch does not differentiate it in this dtype"] += 1
                continue
            name = op.full_name + (" (complex)" if dtype == torch.complex128 else "")
            try:
                samples = samples_of(op, dtype, asked.limit)
            except Exception as error:
                reasons[f"PyTorch gives no samples: {type(error).__name__}"] += 1
                continue
            for sample in samples:
                try:
                    with np.errstate(all="ignore"):
                        compare(op, sample)
                except OutOfReach as why:
                    reasons[str(why)] += 1
                    continue
                except WengertError as error:
                    if "_VariableFunctionsClass" in str(error):
                        reasons[f"the reference calls PyTorch: {op.name}"] += 1
                        continue
                    counts["refused"] += 1
                    refused.setdefault(name, []).append(f"{type(error).__name__}: {error}")
                except Exception as error:
                    counts["wrong"] += 1
                    wrong.setdefault(name, []).append(f"{type(error).__name__}: {error}")
                else:
                    counts["right"] += 1
    for title, found in (("wrong", wrong), ("refused", refused)):
        for name, messages in found.items():
            text = messages[0] if asked.show else messages[0].strip().splitlines()[0][:200]
            why = KNOWN.get(name.removesuffix(" (complex)"))
            print(f"{title}: {name} [{len(messages)}]" + (f", known: {why}" if why else ""))
            print(f"    {text}")
    total = sum(counts.values())
    print(
        f"\n{len(chosen)} operators with a reference, {total} samples compared: {counts['right']} right, "
        f"{counts['wrong']} wrong, {counts['refused']} refused"
    )
    print("out of reach:")
    for why, n in reasons.most_common():
        print(f"    {n:5}  {why}")
    print(f"{time.perf_counter() - start:.0f} s, PyTorch {torch.__version__}")
    surprises = {name.removesuffix(" (complex)") for name in {*wrong, *refused}} - KNOWN.keys()
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
