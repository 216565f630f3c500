#!/usr/bin/env python3
"""Models of ONNX in Cupola and in ONNX Runtime: one image or sentence on the CPU.

    python benches/onnx.py [--only resnet50,bert,...] [--device cpu] [--threads 2] [--runs 30]
                           [--models FOLDER] [--json FILE]

Needs numpy, onnxruntime and the package `cupola`; the models that it writes need torch with onnxscript, and
torchvision, timm, transformers or ultralytics; those with weights of their own are taken from the wheels of
silero-vad, magika and rapidocr. A model whose package is missing is named and left out. Files are kept in
`--models` and written once. Each side runs in a process of its own, in turn; the outputs are compared before a
time is printed. `load` is from the file to a model, `first` the first run, which plans or optimizes what was left,
`ms` the median of the runs after ten; `MB` is the most memory that the process had. A ratio below 1 means that
Cupola takes less.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
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


def written(name, folder):
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
    path = folder / f"{name}.onnx"
    if path.exists():
        return path
    import torch

    torch.manual_seed(0)
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
    given = [torch.from_numpy(x) for x in drawn(name).values()]
    # Statistics of a batch norm that saw no batch are those of none.
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    model.eval()
    torch.onnx.export(model, tuple(given), str(path), opset_version=18, external_data=False, verbose=False)
    return path


def drawn(name, names=None):
    import numpy as np

    rng = np.random.default_rng(0)
    out = {}
    for at, (own, shape, kind) in enumerate(MODELS[name][1]):
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


def onnxruntime_side(task):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = task["threads"]
    options.log_severity_level = 3
    start = time.perf_counter()
    session = ort.InferenceSession(task["path"], options, providers=["CPUExecutionProvider"])
    load = time.perf_counter() - start
    given = drawn(task["model"], [port.name for port in session.get_inputs()])
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
    given = drawn(task["model"], [name for name in model.inputs if name not in model.parameters])

    def run():
        # NumPy's memory is read where it is, and the results' by NumPy, as ONNX Runtime does.
        found = model(**{name: mx.from_dlpack(x) for name, x in given.items()})
        return [np.asarray(y) for y in (found if isinstance(found, tuple) else (found,))]

    return load, run


def side(task):
    load, run = (cupola_side if task["side"] == "cupola" else onnxruntime_side)(task)
    start = time.perf_counter()
    found = run()
    first = time.perf_counter() - start
    for _ in range(WARM):
        run()
    times = []
    for _ in range(task["runs"]):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    import numpy as np

    np.savez(task["out"], *[np.asarray(y) for y in found])
    print(json.dumps(dict(load=load, first=first, time=statistics.median(times), peak=peak())))


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
                worst = max(worst, float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-30)))
        return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--device", default="cpu", help="cpu, wgpu:0 or cuda:0, of Cupola")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--models", type=Path, default=Path.home() / ".cache/cupola/onnx-models")
    parser.add_argument("--json")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        return side(json.loads(arguments.task))
    arguments.models.mkdir(parents=True, exist_ok=True)
    head = ["model", "ours ms", "theirs ms", "ratio", "load ms", "theirs", "first ms", "theirs", "MB", "theirs", "apart"]
    widths = [22, 8, 9, 6, 8, 8, 9, 8, 6, 6, 8]
    line = lambda cells: print("  ".join(f"{c:<{w}}" if i == 0 else f"{c:>{w}}" for i, (c, w) in enumerate(zip(cells, widths))), flush=True)  # fmt: skip
    line(head)
    rows = []
    for name in arguments.only.split(","):
        try:
            path = written(name, arguments.models)
        except Exception as error:
            print(f"{name:<22}  left out: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
            continue
        found = {}
        for own in ("cupola", "onnxruntime"):
            out = arguments.models / f"{name}.{own}.npz"
            task = dict(side=own, model=name, path=str(path), device=arguments.device, runs=arguments.runs,
                        threads=arguments.threads, out=str(out))  # fmt: skip
            run = subprocess.run([sys.executable, __file__, "--task", json.dumps(task)], capture_output=True, text=True)  # fmt: skip
            if run.returncode:
                found[own] = run.stderr.strip().splitlines()[-1]
                continue
            found[own] = json.loads(run.stdout.strip().splitlines()[-1]) | {"out": str(out)}
        failed = [f"{own}: {text}" for own, text in found.items() if isinstance(text, str)]
        if failed:
            print(f"{name:<22}  " + "; ".join(failed))
            continue
        ours, theirs = found["cupola"], found["onnxruntime"]
        difference = apart(ours.pop("out"), theirs.pop("out"))
        rows.append(dict(model=name, cupola=ours, onnxruntime=theirs, apart=difference))
        ms = lambda seconds: f"{1e3 * seconds:.1f}"
        mb = lambda size: f"{size / 1e6:.0f}"
        line([name, f"{1e3 * ours['time']:.2f}", f"{1e3 * theirs['time']:.2f}", f"{ours['time'] / theirs['time']:.2f}",
              ms(ours["load"]), ms(theirs["load"]), ms(ours["first"]), ms(theirs["first"]), mb(ours["peak"]),
              mb(theirs["peak"]), f"{difference:.1e}"])  # fmt: skip
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
