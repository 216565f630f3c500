#!/usr/bin/env python3
"""The article's network in Cupola and in PyTorch, in one run on the same machine and threads.

    cargo build --release
    python benches/cnn.py --data DIR [--cupola target/release/cupola] [--threads 2] [--rounds 3]

DIR holds MNIST's four IDX files. Needs numpy, torch and safetensors. First a model that Cupola
trained for a few steps is loaded into PyTorch, and both must find the same number of right test
images to within two; only then are the two timed, in turn, and the medians and ratios printed.
"""

import argparse
import gzip
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

BATCH = 512


def idx(folder, name):
    path = next(p for p in (folder / f"{name}.gz", folder / name) if p.exists())
    data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    rank = data[3]
    shape = struct.unpack(f">{rank}I", data[4 : 4 + 4 * rank])
    import numpy as np

    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def network(torch):
    import torch.nn as nn
    import torch.nn.functional as F

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 20, 5, padding=2)
            self.conv2 = nn.Conv2d(20, 50, 5, padding=2)
            self.conv3 = nn.Conv2d(50, 100, 5, padding=2)
            self.linear1 = nn.Linear(900, 450)
            self.linear2 = nn.Linear(450, 225)
            self.linear3 = nn.Linear(225, 10)
            self.dropout = nn.Dropout(0.3)

        def forward(self, x):
            for conv in (self.conv1, self.conv2, self.conv3):
                x = F.max_pool2d(F.relu(conv(x)), 2)
            x = x.flatten(1)
            x = F.relu(self.dropout(self.linear1(x)))
            x = self.dropout(self.linear2(x))
            return F.log_softmax(self.dropout(self.linear3(x)), 1)

    return Network()


def agree(args, folder):
    """Both sides count the right test images of one and the same model."""
    import numpy as np
    import torch
    from safetensors import safe_open

    run = pathlib.Path(tempfile.mkdtemp()) / "run"
    subprocess.run(
        [args.cupola, "train", "--dataset", "mnist", "--data-dir", folder, "--steps", "20", "--out", run],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    score = run / "score.json"
    subprocess.run(
        [args.cupola, "classify", run, "--dataset", "mnist", "--data-dir", folder, "--json", score],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    ours = round(json.loads(score.read_text())["accuracy"] * 10000)

    model = network(torch)
    file = safe_open(str(run / "model.safetensors"), "np")
    metadata = file.metadata()
    state = {}
    for name in file.keys():
        value = file.get_tensor(name)
        if value.ndim == 4:
            value = value.transpose(0, 3, 1, 2)
        if name == "linear1.weight":
            # Cupola flattens height, width, channels; PyTorch channels first.
            value = value.reshape(450, 3, 3, 100).transpose(0, 3, 1, 2).reshape(450, 900)
        state[name] = torch.from_numpy(np.ascontiguousarray(value))
    model.load_state_dict(state)
    model.eval()
    mean, std = (np.float32(json.loads(metadata[key])[0]) for key in ("mean", "std"))
    images = idx(pathlib.Path(folder), "t10k-images-idx3-ubyte").astype(np.float32) / 255
    labels = torch.from_numpy(idx(pathlib.Path(folder), "t10k-labels-idx1-ubyte").astype(np.int64))
    with torch.inference_mode():
        x = torch.from_numpy((images - mean) / std)[:, None]
        theirs = sum(
            int((model(x[i : i + BATCH]).argmax(1) == labels[i : i + BATCH]).sum())
            for i in range(0, len(x), BATCH)
        )
    print(f"the same model is right on {ours} images here and {theirs} in PyTorch")
    if abs(ours - theirs) > 2:
        sys.exit("the two do not compute the same; nothing was timed")


def time_torch(folder, compiled):
    """Runs in a process of its own; prints step, 10,000 images and one image."""
    import numpy as np
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(int(os.environ["CUPOLA_NUM_THREADS"]))
    torch.manual_seed(0)
    images = lambda name: torch.from_numpy(idx(folder, name).astype(np.float32) / 255)[:, None]
    x, test = images("train-images-idx3-ubyte"), images("t10k-images-idx3-ubyte")
    y = torch.from_numpy(idx(folder, "train-labels-idx1-ubyte").astype(np.int64))
    model = network(torch).to(memory_format=torch.channels_last)
    adam = torch.optim.Adam(model.parameters(), 1e-3)
    forward = torch.compile(model) if compiled else model
    steps = []
    for i in range(28):
        batch, labels = x[i * BATCH : (i + 1) * BATCH], y[i * BATCH : (i + 1) * BATCH]
        start = time.perf_counter()
        loss = F.nll_loss(forward(batch), labels)
        adam.zero_grad()
        loss.backward()
        adam.step()
        steps.append(time.perf_counter() - start)
    model.eval()
    passes, singles = [], []
    with torch.inference_mode():
        for _ in range(4):
            start = time.perf_counter()
            for i in range(0, len(test), BATCH):
                forward(test[i : i + BATCH]).argmax(1)
            passes.append(time.perf_counter() - start)
        for i in range(520):
            start = time.perf_counter()
            forward(test[i : i + 1]).argmax(1).item()
            singles.append(time.perf_counter() - start)
    print(json.dumps([
        1e3 * statistics.median(steps[3:]),
        1e3 * min(passes[1:]),
        1e6 * statistics.median(singles[20:]),
    ]))


def time_cupola(args, folder):
    with tempfile.TemporaryDirectory() as out:
        report = pathlib.Path(out) / "bench.json"
        command = [args.cupola, "bench", "--dataset", "mnist", "--data-dir", folder, "--json", report]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=out)
        row = json.loads(report.read_text())[0]
    return [row["train_step_ms"]["median"], row["classify_10k_batch512_ms"], row["classify_one_us"]["median"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--cupola", default="target/release/cupola")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", choices=["eager", "compiled"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    folder = str(pathlib.Path(args.data).resolve())
    args.cupola = str(pathlib.Path(args.cupola).resolve())
    os.environ["CUPOLA_NUM_THREADS"] = args.threads
    if args.peer:
        return time_torch(pathlib.Path(folder), args.peer == "compiled")
    agree(args, folder)
    rows = {"cupola": [], "eager": [], "compiled": []}
    for _ in range(args.rounds):
        rows["cupola"].append(time_cupola(args, folder))
        for peer in ("eager", "compiled"):
            command = [sys.executable, __file__, "--data", folder, "--threads", args.threads, "--peer", peer]
            run = subprocess.run(command, check=True, capture_output=True, text=True)
            rows[peer].append(json.loads(run.stdout.splitlines()[-1]))
    medians = {name: [statistics.median(column) for column in zip(*runs)] for name, runs in rows.items()}
    best = [min(a, b) for a, b in zip(medians["eager"], medians["compiled"])]
    print(f"{'':22}{'step, ms':>12}{'10,000, ms':>12}{'one, µs':>12}")
    for name, row in medians.items():
        label = name if name == "cupola" else f"PyTorch {name}"
        print(f"{label:22}" + "".join(f"{value:12.1f}" for value in row))
    ratios = [ours / theirs for ours, theirs in zip(medians["cupola"], best)]
    print(f"{'ratio to the best':22}" + "".join(f"{value:12.2f}" for value in ratios))


if __name__ == "__main__":
    main()
