"""Trains the article's network in another framework and measures it; what came out is a line of JSON.

    python main.py PEER cpu|gpu TASK.json

The module peer_PEER has the framework's part, a class `Peer`. Each epoch is told in a line of its own when it is over.
"""

import importlib
import json
import statistics
import sys
import time

import numpy as np


class Absent(Exception):
    """The framework cannot use the device."""


def images(task, part):
    """The images of a part as float32 at the network's scale, [N, H, W, C], and their labels."""
    pixels = np.load(f"{task['folder']}/{part}_images.npy")
    labels = np.load(f"{task['folder']}/{part}_labels.npy").astype(np.int32)
    mean, std = (np.array(task[key], np.float32) for key in ("mean", "std"))
    return (pixels.astype(np.float32) / 255 - mean) / std, labels


def epoch(peer, x, y, size, order):
    """Trains on all batches; gives the mean loss and the part that was right, as they were seen."""
    loss, right = 0.0, 0
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        found, hits = peer.step(*peer.placed(x[chosen], y[chosen]))
        loss += float(found) * len(chosen)
        right += int(hits)
    return loss / len(order), right / len(order)


def accuracy(peer, x, y, size=512):
    right = 0
    for start in range(0, len(y), size):
        own, _ = peer.placed(x[start : start + size], y[start : start + size])
        right += int((peer.read(peer.classes(own)) == y[start : start + size]).sum())
    return right / len(y)


def batched(peer, x, count, size=512):
    """The least time of some passes over `count` images in batches that are there before, in ms."""
    chosen = np.arange(count) % len(x)
    none = np.zeros(size, np.int32)
    parts = [peer.placed(x[chosen[i : i + size]], none)[0] for i in range(0, count, size)]
    # The first batch and the last, which may be smaller, compile.
    peer.wait([peer.classes(parts[0]), peer.classes(parts[-1])])
    times, began = [], time.perf_counter()
    while not times or (len(times) < 4 and time.perf_counter() - began < 10):
        start = time.perf_counter()
        found = [peer.classes(part) for part in parts]
        peer.wait(found)
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def singly(peer, x, count):
    """The median time of one image, until its class is read, in µs."""
    none = np.zeros(1, np.int32)
    parts = [peer.placed(x[i % len(x)][None], none)[0] for i in range(20 + count)]
    times = []
    for part in parts:
        start = time.perf_counter()
        peer.read(peer.classes(part))
        times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times[20:])


def main():
    name, device, path = sys.argv[1:]
    with open(path) as file:
        task = json.load(file)
    try:
        peer = importlib.import_module(f"peer_{name}").Peer(device, task)
    except Absent as reason:
        print(json.dumps({"absent": str(reason)}))
        return
    (x, y), (vx, vy), (tx, ty) = (images(task, part) for part in ("train", "val", "test"))
    rng = np.random.default_rng(task["seed"])
    seconds, curve = [], []
    for number in range(task["epochs"]):
        start = time.perf_counter()
        peer.train(True)
        loss, right = epoch(peer, x, y, task["batch_size"], rng.permutation(len(y)))
        peer.train(False)
        curve.append(accuracy(peer, vx, vy))
        seconds.append(time.perf_counter() - start)
        if loss != loss:
            sys.exit(f"the loss is not a number in epoch {number + 1}")
        told = {"epoch": number + 1, "loss": loss, "accuracy": right, "seconds": seconds[-1]}
        print(json.dumps(told), flush=True)
    peer.train(False)
    result = {
        "version": peer.version,
        "epoch_seconds": seconds,
        "val_accuracy": curve,
        "test_accuracy": accuracy(peer, tx, ty),
        "classify_10k_ms": batched(peer, tx, 10_000),
        "classify_one_us": singly(peer, tx, 500),
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    # The module under which the peers know `Absent`.
    sys.modules["main"] = sys.modules["__main__"]
    main()
