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


class Limit:
    """Until when a part of the work may begin anything new."""

    def __init__(self, seconds):
        self.end = time.perf_counter() + seconds

    def is_over(self):
        return time.perf_counter() >= self.end


def epoch(peer, x, y, size, order, limit):
    """Trains on the batches until the limit, on one at least; gives the mean loss and the part that was right, as they
    were seen, and how many batches there were."""
    loss, right, seen, steps = 0.0, 0, 0, 0
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        found, hits = peer.step(*peer.placed(x[chosen], y[chosen]))
        loss += float(found) * len(chosen)
        right += int(hits)
        seen += len(chosen)
        steps += 1
        if limit.is_over():
            break
    return loss / seen, right / seen, steps


def accuracy(peer, x, y, limit, size=512):
    """The part that is right of the images that are classified until the limit, and how many these are."""
    right = seen = 0
    for start in range(0, len(y), size):
        own, _ = peer.placed(x[start : start + size], y[start : start + size])
        right += int((peer.read(peer.classes(own)) == y[start : start + size]).sum())
        seen = min(start + size, len(y))
        if limit.is_over():
            break
    return right / seen, seen


def batched(peer, x, count, limit, size=512):
    """The least time of some passes over `count` images in batches that are there before, in ms, and how many batches
    it was reckoned from: all of them, unless a pass takes too long."""
    chosen = np.arange(count) % len(x)
    none = np.zeros(size, np.int32)
    parts = [peer.placed(x[chosen[i : i + size]], none)[0] for i in range(0, count, size)]
    # The first batch and the last, which may be smaller, compile.
    peer.wait([peer.classes(parts[0])])
    start = time.perf_counter()
    peer.wait([peer.classes(parts[0])])
    one = time.perf_counter() - start
    left = limit.end - time.perf_counter()
    if one * (len(parts) + 1) > left:
        done, began = 0, time.perf_counter()
        while not done or not limit.is_over() and done < len(parts):
            peer.wait([peer.classes(parts[done])])
            done += 1
        images = sum(len(part) for part in parts[:done])
        return 1e3 * (time.perf_counter() - began) * count / images, done, len(parts)
    peer.wait([peer.classes(parts[-1])])
    times, began = [], time.perf_counter()
    while not times or (len(times) < 4 and time.perf_counter() - began < 10):
        start = time.perf_counter()
        found = [peer.classes(part) for part in parts]
        peer.wait(found)
        times.append(time.perf_counter() - start)
    return 1e3 * min(times), len(parts), len(parts)


def singly(peer, x, count, limit):
    """The median time of one image, until its class is read, in µs."""
    none = np.zeros(1, np.int32)
    times = []
    for i in range(20 + count):
        part = peer.placed(x[i % len(x)][None], none)[0]
        start = time.perf_counter()
        peer.read(peer.classes(part))
        times.append(time.perf_counter() - start)
        if i >= 20 and limit.is_over():
            break
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
    size, limited = task["batch_size"], {}
    steps, most = -(-len(y) // size), task["most_seconds"]

    def note(figure, how):
        limited.setdefault(figure, []).append(how)

    def accuracy_of(figure, x, y):
        found, seen = accuracy(peer, x, y, Limit(most / 4))
        if seen < len(y):
            note(figure, f"of {seen} of {len(y)} images")
        return found

    rng = np.random.default_rng(task["seed"])
    seconds, curve = [], []
    training = Limit(most)
    for number in range(task["epochs"]):
        start = time.perf_counter()
        peer.train(True)
        loss, right, done = epoch(peer, x, y, size, rng.permutation(len(y)), training)
        trained = time.perf_counter() - start
        peer.train(False)
        curve.append(accuracy_of("val_accuracy", vx, vy))
        validated = time.perf_counter() - start - trained
        if loss != loss:
            sys.exit(f"the loss is not a number in epoch {number + 1}")
        if done == steps:
            seconds.append(trained + validated)
            told = {"epoch": number + 1, "loss": loss, "accuracy": right, "seconds": seconds[-1]}
            print(json.dumps(told), flush=True)
        elif number == 0:
            seconds.append(trained * steps / done + validated)
            note("epoch_seconds", f"reckoned from {done} of {steps} steps")
        if training.is_over() and (done < steps or number + 1 < task["epochs"]):
            if number > 0 or done == steps:
                note("epoch_seconds", f"of {len(seconds)} of {task['epochs']} epochs")
            for figure in ("val_accuracy", "test_accuracy"):
                note(figure, f"after {number * steps + done} of {task['epochs'] * steps} steps")
            break
    peer.train(False)
    test = accuracy_of("test_accuracy", tx, ty)
    classify, batches, all_batches = batched(peer, tx, 10_000, Limit(most / 4))
    if batches < all_batches:
        note("classify_10k_ms", f"reckoned from {batches} of {all_batches} batches")
    result = {
        "version": peer.version,
        "epoch_seconds": seconds,
        "val_accuracy": curve,
        "test_accuracy": test,
        "classify_10k_ms": classify,
        "classify_one_us": singly(peer, tx, 500, Limit(most / 4)),
        "limited": {figure: ", ".join(how) for figure, how in limited.items()},
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    # The module under which the peers know `Absent`.
    sys.modules["main"] = sys.modules["__main__"]
    main()
