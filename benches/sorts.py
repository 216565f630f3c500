#!/usr/bin/env python3
"""Running sums, sorts and Fourier transforms along an axis in Cupola and PyTorch, in one run on one device.

    python benches/sorts.py [--device cuda|cpu] [--only cumsum,sort,argsort,topk,top100,partition,...] [--most N]
                            [--json FILE]

Needs the package `cupola`, numpy and torch. Results are compared first; then both run in turn. Times are
medians by the clock of the host, with the device synchronised before and after.
"""

import argparse
import json
import statistics
import time

import numpy as np
import torch

import cupola.core as mx

LONG = ((1 << 28,), 0), ((1 << 24,), 0), ((1 << 20,), 0)
SORTED = ((67_000_000,), 0), ((1 << 20,), 0), ((1 << 14,), 0)
ROWS = ((65536, 1024), 0), ((1024, 65536), 1), ((1_000_000, 64), 1), ((64, 1_000_000), 0), ((4096, 4096), 0)
SORTED_ROWS = ((1_000_000, 64), 1), ((8192, 4096), 1), ((4096, 8192), 0), ((64, 50257), 1), ((512, 1000), 1)
TRANSFORMED = ((65536, 1024), 1), ((4096, 16384), 1), ((64, 1 << 20), 1), ((4096, 1009), 1)

# What is done, on which shapes, in which dtypes, and how far results may be apart, of the largest number: PyTorch adds
# long columns one after the other, and is 8e-6 from the sum in float64.
WORK = {
    "cumsum": (mx.cumsum, torch.cumsum, LONG + ROWS, ["float32"], 3e-5),
    "sort": (mx.sort, lambda x, a: torch.sort(x, a)[0], SORTED + SORTED_ROWS, ["float32", "bfloat16", "int64"], 0),
    "argsort": (mx.argsort, torch.argsort, SORTED, ["float32"], None),
    "topk": (lambda x, a: mx.topk(x, 50, axis=a), lambda x, a: torch.topk(x, 50, a)[0].flip(a), SORTED + SORTED_ROWS,
             ["float32", "bfloat16", "int64"], 0),
    "top100": (lambda x, a: mx.topk(x, 100, axis=a), lambda x, a: torch.topk(x, 100, a)[0].flip(a), SORTED[:1],
               ["float32"], 0),
    # The element in the middle of the order.
    "partition": (lambda x, a: mx.take(mx.partition(x, x.shape[a] // 2, axis=a), x.shape[a] // 2, axis=a),
                  lambda x, a: torch.kthvalue(x, x.shape[a] // 2 + 1, a)[0], SORTED + SORTED_ROWS, ["float32"], 0),
    "fft": (lambda x, a: mx.fft.fft(x, axis=a), lambda x, a: torch.fft.fft(x, dim=a), TRANSFORMED, ["complex64"], 2e-6),
    "rfft": (lambda x, a: mx.fft.rfft(x, axis=a), lambda x, a: torch.fft.rfft(x, dim=a), TRANSFORMED, ["float32"], 2e-6),
}


def measured(run, wait, steps=5):
    """Milliseconds of a run."""
    run(), wait()
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        kept = run()
        wait()
        times.append((time.perf_counter() - start) * 1e3)
        del kept
    return statistics.median(times)


def evaluated(array):
    mx.eval(array)
    return array


def operands(shape, dtype, device, rng):
    """The same numbers on both sides."""
    x = rng.standard_normal(shape, dtype=np.float32)
    ours, theirs = mx.array(x), torch.tensor(x, device=device)
    if dtype == "int64":
        ours, theirs = ours * 1e6, theirs * 1e6
    ours, theirs = ours.astype(getattr(mx, dtype)), theirs.to(getattr(torch, dtype))
    mx.eval(ours)
    return ours, theirs


def difference(ours, theirs):
    """The largest difference, of the largest number."""
    wide = mx.complex64 if ours.dtype == mx.complex64 else mx.float32
    got = np.asarray(ours.astype(wide))
    want = theirs.to(getattr(torch, str(got.dtype))).cpu().numpy()
    if got.shape != want.shape:
        raise SystemExit(f"results are of shapes {got.shape} and {want.shape}")
    return float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-30))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--most", type=int, default=1 << 40, help="the most elements of an operand")
    parser.add_argument("--only", default=",".join(WORK), help="what is measured, separated by commas")
    parser.add_argument("--json", help="a file for the figures")
    given = parser.parse_args()
    mx.set_default_device(mx.gpu if given.device == "cuda" else mx.cpu)
    wait = torch.cuda.synchronize if given.device == "cuda" else lambda: None
    rng, rows = np.random.default_rng(0), []
    print(f"{'':44}{'Cupola, ms':>12}{'PyTorch, ms':>13}{'ratio':>8}")
    for name in given.only.split(","):
        f, g, shapes, dtypes, tolerance = WORK[name]
        for dtype in dtypes:
            for shape, axis in shapes:
                if np.prod(shape) > given.most:
                    continue
                ours, theirs = operands(shape, dtype, given.device, rng)
                if tolerance is not None and (apart := difference(f(ours, axis), g(theirs, axis))) > tolerance:
                    raise SystemExit(f"{name} of {dtype} {shape}: results are {apart:.2e} apart")
                own = measured(lambda: evaluated(f(ours, axis)), mx.synchronize)
                peer = measured(lambda: g(theirs, axis), wait)
                rows.append(dict(work=name, dtype=dtype, shape=shape, axis=axis, cupola=own, torch=peer))
                print(f"{f'{name} {dtype} {shape}, axis {axis}':44}{own:12.3f}{peer:13.3f}{own / peer:8.2f}", flush=True)
                del ours, theirs
    if given.json:
        with open(given.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
