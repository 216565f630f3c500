#!/usr/bin/env python3
"""Counts and scatters in Cupola and PyTorch, in one run on one device.

    python benches/scatters.py [--device cuda|cpu] [--only bincount,histogram,rows,points,along]
                               [--counts N,N] [--places N,N] [--json FILE]

So many updates (`--counts`) are joined in at so many places (`--places`). Needs the package `cupola`, numpy and torch.
Results are compared first; then both run in turn. Times are medians by the clock of the host, with the device
synchronised before and after.
"""

import argparse
import json

import numpy as np
import torch

import cupola.core as mx
from sorts import evaluated, measured


def work(places, ours, theirs, device):
    """What is done, by Cupola and by PyTorch, with indices below `places`."""
    i, j = ours, ours * 3 % places
    I, J = theirs, theirs * 3 % places
    count = len(theirs)
    one, One = mx.ones((count,)), torch.ones(count, device=device)
    rows, Rows = i.reshape(8, -1), I.reshape(8, -1)
    mx.eval(i, j, one, rows)
    bins = min(places, 100)
    return {
        "bincount": (lambda: mx.bincount(i), lambda: torch.bincount(I)),
        "histogram": (lambda: mx.histogram(i.astype(mx.float32), bins=bins)[0], lambda: torch.histc(I.float(), bins)),
        "rows": (lambda: mx.zeros((places,)).at[i].add(one),
                 lambda: torch.zeros(places, device=device).index_add(0, I, One)),
        "points": (lambda: mx.zeros((places, places)).at[i, j].add(one),
                   lambda: torch.zeros(places, places, device=device).index_put((I, J), One, accumulate=True)),
        "along": (lambda: mx.put_along_axis(mx.zeros((8, places)), rows, one.reshape(8, -1), axis=1),
                  lambda: torch.zeros(8, places, device=device).scatter(1, Rows, One.reshape(8, -1))),
    }


def numbers(text):
    return [int(n) for n in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--only", default="bincount,histogram,rows,points,along", help="what is measured")
    parser.add_argument("--counts", type=numbers, default=[1 << 16, 1 << 20, 1 << 24], help="how many updates")
    parser.add_argument("--places", type=numbers, default=[2, 127, 4096], help="for how many places")
    parser.add_argument("--json", help="a file for the figures")
    given = parser.parse_args()
    mx.set_default_device(mx.gpu if given.device == "cuda" else mx.cpu)
    wait = torch.cuda.synchronize if given.device == "cuda" else lambda: None
    rows = []
    print(f"{'':44}{'Cupola, ms':>12}{'PyTorch, ms':>13}{'ratio':>8}")
    for places in given.places:
        for count in given.counts:
            indices = np.random.default_rng(0).integers(0, places, count // 8 * 8)
            ours, theirs = mx.array(indices.astype(np.int32)), torch.tensor(indices, device=given.device)
            for name, (f, g) in work(places, ours, theirs, given.device).items():
                if name not in given.only.split(","):
                    continue
                got, want = np.asarray(f().astype(mx.float32)), g().float().cpu().numpy()
                if not np.array_equal(got, want):
                    raise SystemExit(f"{name} of {count} for {places}: results differ")
                own = measured(lambda: evaluated(f()), mx.synchronize)
                peer = measured(g, wait)
                rows.append(dict(work=name, updates=count, places=places, cupola=own, torch=peer))
                print(f"{f'{name}, {count} for {places}':44}{own:12.3f}{peer:13.3f}{own / peer:8.2f}", flush=True)
    if given.json:
        with open(given.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
