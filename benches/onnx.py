#!/usr/bin/env python3
"""Models of ONNX in Cupola and in ONNX Runtime on the CPU, or in PyTorch on a GPU.

    python benches/onnx.py [--only resnet50,bert,...] [--device cpu] [--threads 2] [--runs 10]
                           [--rounds 7] [--batch 1] [--dtype f32] [--peers onnxruntime] [--models FOLDER] [--json FILE]

Needs numpy, onnxruntime and the package `cupola`; the models that it writes need torch with onnxscript, and
torchvision, timm, transformers or ultralytics; those with weights of their own are taken from the wheels of
silero-vad, magika and rapidocr. A model whose package is missing is named and left out. Files are kept in
`--models` and written once. Each side has a process of its own, and both stay while they run in turn, a round of
each: what the machine does besides falls on both. The outputs are compared before a time is printed. `load` is from the
file to a model, `first` the first run, which plans or optimizes what was left; `ms` is the median of the rounds'
medians, and `ratio` the median of the rounds' ratios: below 1 Cupola takes less. `MB` is the most memory that the
process had.

On the CPU inputs come from NumPy and results go there. Elsewhere both sides have the inputs on the device, and wait for
the results there. The peers `torch` and `torch-compile` are the module that was exported, run as it is and through
`torch.compile(mode="reduce-overhead")`, images in channels last, with TF32 where Cupola uses it. Batches and dtypes
other than one of float32 are for the models that are written here.
"""

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# This file has the name of a package that others import.
sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]

# The name, and the inputs: name in the file (None for the first), shape, and what is drawn.
IMAGE = [(None, (1, 3, 224, 224), "normal")]
MODELS = {
    "resnet50": ("torchvision", IMAGE),
    "mobilenet_v3_large": ("torchvision", IMAGE),
    "efficientnet_b0": ("torchvision", IMAGE),
    "yolo11n": ("ultralytics", [(None, (1, 3, 640, 640), "unit")]),
    "vit_tiny_patch16_224": ("timm", IMAGE),
    "bert": ("transformers", [("input_ids", (1, 128), "word"), ("attention_mask", (1, 128), "one")]),
    "whisper_tiny_encoder": ("transformers", [(None, (1, 80, 3000), "normal")]),
    "silero_vad": (
        "silero_vad",
        [("input", (1, 576), "normal"), ("state", (2, 1, 128), "zero"), ("sr", (), "rate")],
    ),
    "magika": ("magika", [(None, (1, 2048), "byte")]),
    "ppocr_det": ("rapidocr", [(None, (1, 3, 480, 640), "normal")]),
    "ppocr_rec": ("rapidocr", [(None, (1, 3, 48, 320), "normal")]),
}
WARM = 10
# What a side's threads may wait for more work before they sleep, seconds.
REST = 0.03


def written(name, folder, batch, dtype):
    """The file of a model, which is made where it is not there."""
    package, _ = MODELS[name]
    if package in ("silero_vad", "magika", "rapidocr"):
        import importlib.util

        found = importlib.util.find_spec(package)
        if found is None:
            raise ImportError(f"no package {package}")
        root = Path(found.submodule_search_locations[0])
        pattern = {
            "silero_vad": "data/silero_vad.onnx",
            "magika": "models/standard*/model.onnx",
            "ppocr_det": "models/*det*.onnx",
            "ppocr_rec": "models/*rec*.onnx",
        }[name]
        return sorted(root.glob(pattern))[0]
    path = folder / (f"{name}.onnx" if (batch, dtype) == (1, "f32") else f"{name}-{batch}-{dtype}.onnx")
    if path.exists():
        return path
    import torch

    model = built(name)
    given = [torch.from_numpy(x) for x in drawn(name, batch).values()]
    if dtype == "f16":
        model, given = model.half(), [x.half() if x.is_floating_point() else x for x in given]
    torch.onnx.export(model, tuple(given), str(path), opset_version=18, external_data=False, verbose=False)
    return path


def built(name):
    """The module of a model that is written here."""
    import torch

    torch.manual_seed(0)
    package, _ = MODELS[name]
    if package == "torchvision":
        import torchvision

        model = getattr(torchvision.models, name)(weights=None)
    elif package == "timm":
        import timm

        model = timm.create_model(name, pretrained=False)
    elif package == "ultralytics":
        from ultralytics.nn.tasks import DetectionModel

        model = DetectionModel(f"{name}.yaml", verbose=False)
    else:
        import transformers

        if name == "bert":
            model = transformers.BertModel(transformers.BertConfig(attn_implementation="eager"))
        else:
            config = transformers.WhisperConfig(
                d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536
            )
            model = transformers.WhisperModel(config).encoder
    # Statistics of a batch norm that saw no batch are those of none.
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return model.eval()


def drawn(name, batch=1, names=None):
    import numpy as np

    rng = np.random.default_rng(0)
    out = {}
    for at, (own, shape, kind) in enumerate(MODELS[name][1]):
        if batch != 1:
            shape = (batch, *shape[1:])
        key = own if own in (names or [own]) and own else (names[at] if names else str(at))
        out[key] = {
            "normal": lambda: rng.standard_normal(shape).astype("f4"),
            "unit": lambda: rng.random(shape).astype("f4"),
            "word": lambda: rng.integers(0, 30000, shape),
            "byte": lambda: rng.integers(0, 256, shape).astype("i4"),
            "one": lambda: np.ones(shape, "i8"),
            "zero": lambda: np.zeros(shape, "f4"),
            "rate": lambda: np.array(16000, "i8"),
        }[kind]()
    return out


def given_to(task, names=None):
    """The inputs of a side, in its dtype."""
    given = drawn(task["model"], task["batch"], names)
    half = task["dtype"] == "f16"
    return {name: x.astype("f2") if half and x.dtype == "f4" else x for name, x in given.items()}


def onnxruntime_side(task):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = task["threads"]
    options.log_severity_level = 3
    start = time.perf_counter()
    session = ort.InferenceSession(task["path"], options, providers=["CPUExecutionProvider"])
    load = time.perf_counter() - start
    given = given_to(task, [port.name for port in session.get_inputs()])
    return load, lambda: session.run(None, given)


def cupola_side(task):
    os.environ["CUPOLA_NUM_THREADS"] = str(task["threads"])
    import cupola.core as mx
    import cupola.onnx
    import numpy as np

    kind, _, index = task["device"].partition(":")
    mx.set_default_device(mx.Device(getattr(mx.DeviceType, kind), int(index or 0)))
    start = time.perf_counter()
    model = cupola.onnx.load(task["path"])
    load = time.perf_counter() - start
    given = given_to(task, [name for name in model.inputs if name not in model.parameters])
    found = lambda out: out if isinstance(out, tuple) else (out,)
    if kind == "cpu":
        # NumPy's memory is read where it is, and the results' by NumPy, as ONNX Runtime does.
        return load, lambda: [
            np.asarray(y) for y in found(model(**{name: mx.from_dlpack(x) for name, x in given.items()}))
        ]
    given = {name: mx.array(x) for name, x in given.items()}
    mx.eval(given)

    def run():
        out = found(model(**given))
        mx.eval(out)
        mx.synchronize()
        return out

    return load, run


def torch_side(task):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if task["device"].startswith("cuda") else "cpu")
    start = time.perf_counter()
    model = built(task["model"]).to(device, torch.float16 if task["dtype"] == "f16" else torch.float32)
    given = [torch.from_numpy(x).to(device) for x in given_to(task).values()]
    if given[0].dim() == 4:
        model = model.to(memory_format=torch.channels_last)
        given[0] = given[0].to(memory_format=torch.channels_last)
    load = time.perf_counter() - start
    if task["side"] == "torch-compile":
        model = torch.compile(model, mode="reduce-overhead")
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None

    def run():
        with torch.inference_mode():
            out = model(*given)
        wait()
        out = list(out.values()) if isinstance(out, dict) else [out] if torch.is_tensor(out) else list(out)
        return Copied(out)

    return load, run


class Copied(list):
    """Results on a device, which go to NumPy where they are looked at."""

    def __iter__(self):
        return (y.float().cpu().numpy() for y in list.__iter__(self))


def side(task):
    load, run = {"cupola": cupola_side, "onnxruntime": onnxruntime_side}.get(task["side"], torch_side)(task)
    start = time.perf_counter()
    found = run()
    first = time.perf_counter() - start
    import numpy as np

    np.savez(task["out"], *[np.asarray(y) for y in found])
    del found
    for _ in range(WARM):
        run()
    print(json.dumps(dict(load=load, first=first)), flush=True)
    for _ in sys.stdin:
        times = []
        for _ in range(task["runs"]):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        print(json.dumps(dict(time=statistics.median(times), peak=peak())), flush=True)


class Side:
    """A process that runs one side when it is asked to."""

    def __init__(self, task):
        self.errors = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen([sys.executable, __file__, "--task", json.dumps(task)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)  # fmt: skip
        self.error = None
        self.times = []
        self.found = {"out": task["out"]}
        self.heard()

    def heard(self):
        """What the process says next goes to what was found."""
        for line in self.process.stdout:
            if line.startswith("{"):
                self.found |= json.loads(line)
                return
        self.process.wait()
        self.errors.seek(0)
        last = (self.errors.read().strip().splitlines() or ["it said nothing"])[-1]
        self.error = f"it ended with {self.process.returncode}: {last}"

    def round(self):
        """Runs a round."""
        if self.error is None:
            time.sleep(REST)
            try:
                print(file=self.process.stdin, flush=True)
            except BrokenPipeError:
                pass
            self.heard()
            if self.error is None:
                self.times.append(self.found["time"])

    def end(self):
        if self.error is None:
            self.found["time"] = statistics.median(self.times)
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()


def peak():
    """The most bytes that this process had. What `getrusage` says includes its parent's before it started."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def apart(a, b):
    """How far results are apart, of the largest."""
    import numpy as np

    with np.load(a) as one, np.load(b) as other:
        worst = 0.0
        for x, y in zip(one.values(), other.values()):
            if x.shape != y.shape:
                return float("inf")
            if x.dtype.kind == "f" and x.size:
                x, y = x.astype("f8"), y.astype("f8")
                worst = max(worst, float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-30)))
        return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--device", default="cpu", help="cpu, wgpu:0 or cuda:0, of Cupola")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=int, default=10, help="of a round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batch", default="1")
    parser.add_argument("--dtype", default="f32", help="f32, f16")
    parser.add_argument("--peers", help="onnxruntime, torch, torch-compile; as the device is")
    parser.add_argument("--models", type=Path, default=Path.home() / ".cache/cupola/onnx-models")
    parser.add_argument("--json")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        return side(json.loads(arguments.task))
    if min(arguments.rounds, arguments.runs) < 1:
        parser.error("--rounds and --runs are at least 1")
    arguments.models.mkdir(parents=True, exist_ok=True)
    is_cpu = arguments.device.startswith("cpu")
    peers = (arguments.peers or ("onnxruntime" if is_cpu else "torch,torch-compile")).split(",")
    head = ["model", "batch", "dtype", "peer", "ours ms", "theirs ms", "ratio", "load ms", "theirs", "first ms",
            "theirs", "MB", "theirs", "apart"]  # fmt: skip
    widths = [22, 5, 5, 13, 8, 9, 6, 8, 8, 9, 8, 6, 6, 8]
    line = lambda cells: print("  ".join(f"{c:<{w}}" if i in (0, 3) else f"{c:>{w}}" for i, (c, w) in enumerate(zip(cells, widths))), flush=True)  # fmt: skip
    line(head)
    rows = []
    kinds = [(batch, dtype) for batch in map(int, arguments.batch.split(",")) for dtype in arguments.dtype.split(",")]
    for name, (batch, dtype) in itertools.product(arguments.only.split(","), kinds):
        try:
            path = written(name, arguments.models, batch, dtype)
        except Exception as error:
            print(f"{name:<22}  left out: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
            continue
        sides = {}
        for own in ("cupola", *peers):
            sides[own] = Side(dict(side=own, model=name, path=str(path), device=arguments.device, runs=arguments.runs,
                                   threads=arguments.threads, out=str(arguments.models / f"{name}.{own}.npz"), batch=batch,
                                   dtype=dtype))  # fmt: skip
        for _ in range(arguments.rounds):
            for one in sides.values():
                one.round()
        for one in sides.values():
            one.end()
        for own in peers:
            failed = [f"{side}: {sides[side].error}" for side in ("cupola", own) if sides[side].error]
            if failed:
                print(f"{name:<22}  " + "; ".join(failed))
                continue
            ratio = statistics.median(x / y for x, y in zip(sides["cupola"].times, sides[own].times))
            ours, theirs = sides["cupola"].found, sides[own].found
            difference = apart(ours["out"], theirs["out"])
            without = lambda side: {key: value for key, value in side.items() if key != "out"}
            rows.append({"model": name, "batch": batch, "dtype": dtype, "cupola": without(ours), own: without(theirs),
                         "ratio": ratio, "apart": difference})  # fmt: skip
            ms = lambda seconds: f"{1e3 * seconds:.1f}"
            mb = lambda size: f"{size / 1e6:.0f}"
            line([name, batch, dtype, own, f"{1e3 * ours['time']:.3f}", f"{1e3 * theirs['time']:.3f}",
                  f"{ratio:.2f}", ms(ours["load"]), ms(theirs["load"]), ms(ours["first"]),
                  ms(theirs["first"]), mb(ours["peak"]), mb(theirs["peak"]), f"{difference:.1e}"])  # fmt: skip
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
