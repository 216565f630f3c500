"""The script that measures other frameworks for `cupola report`, with a framework that only takes time, by a clock of
its own."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "cli/src/report/peers/main.py"

PEER = """
import time
import numpy as np

now = 0.0
time.perf_counter = lambda: now

def take(seconds):
    global now
    now += seconds

class Peer:
    version = "1"

    def __init__(self, device, task):
        self.takes = task["takes"]

    def train(self, on): pass

    def placed(self, x, y): return x, y

    def step(self, x, y):
        take(self.takes)
        return 1.0, len(y) // 2

    def classes(self, x):
        take(self.takes * len(x) / 512)
        return np.zeros(len(x), np.int32)

    def read(self, array): return array

    def wait(self, arrays): pass
"""


def measured(folder, takes, epochs=2):
    (folder / "peer_slow.py").write_text(PEER)
    (folder / "main.py").write_text(SCRIPT.read_text())
    for part, count in ("train", 40), ("val", 1024), ("test", 1024):
        np.save(folder / f"{part}_images.npy", np.zeros((count, 2, 2, 1), np.uint8))
        np.save(folder / f"{part}_labels.npy", np.zeros(count, np.int32))
    task = dict(folder=str(folder), epochs=epochs, batch_size=10, seed=0, mean=[0.0], std=[1.0], takes=takes)
    (folder / "task.json").write_text(json.dumps({**task, "most_seconds": 1}))
    command = [sys.executable, folder / "main.py", "slow", "cpu", folder / "task.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_framework_that_is_quick_is_measured_whole(tmp_path):
    found = measured(tmp_path, 0.001)
    assert found["limited"] == {}
    assert len(found["epoch_seconds"]) == len(found["val_accuracy"]) == 2
    assert found["test_accuracy"] == 1.0


def test_a_framework_that_takes_too_long_is_reckoned_from_what_it_did(tmp_path):
    found = measured(tmp_path, 0.7)
    # Two of the four steps of an epoch, and the first 512 of the images.
    assert found["epoch_seconds"] == [pytest.approx(4 * 0.7 + 0.7)]
    assert found["limited"] == {
        "epoch_seconds": "reckoned from 2 of 4 steps",
        "val_accuracy": "of 512 of 1024 images, after 2 of 8 steps",
        "test_accuracy": "after 2 of 8 steps, of 512 of 1024 images",
        "classify_10k_ms": "reckoned from 1 of 20 batches",
    }
    assert found["classify_10k_ms"] == pytest.approx(1e4 / 512 * 700)


def test_epochs_that_are_over_count(tmp_path):
    # The second epoch ends within its first step: 0.3 s of validation come between.
    found = measured(tmp_path, 0.15, epochs=3)
    assert len(found["epoch_seconds"]) == 1
    assert found["limited"]["epoch_seconds"] == "of 1 of 3 epochs"
    assert found["limited"]["test_accuracy"] == "after 5 of 12 steps"
