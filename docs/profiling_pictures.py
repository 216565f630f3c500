#!/usr/bin/env python3
"""The pictures of docs/profiling.md: the timelines of a network before and after its activation is mended.

    python docs/profiling_pictures.py [--device wgpu:0] [--out docs]

Needs the package `cupola` and a GPU that wgpu reaches, if only one in software. Writes profiling-before.svg and
profiling-after.svg. The times are those of the machine; which steps there are is not.
"""

import argparse
import html
import json
import os

import cupola.core as mx
from cupola import nn, profiler

COLOURS = {"step": "#56b4e9", "copy": "#e69f00", "fallback": "#d55e00", "wait": "#cccccc"}


class Softplus64(nn.Module):
    """log(1 + exp(x)) in float64, so that exp does not overflow."""

    def __call__(self, x):
        return mx.log1p(mx.exp(x.astype(mx.float64))).astype(mx.float32)


forward = mx.fast.kernel(
    name="softplus",
    input_names=["x"],
    output_names=["y"],
    source="""
        uint i = thread_position_in_grid.x;
        float v = x[i];
        y[i] = max(v, 0.0f) + log(1.0f + exp(-abs(v)));
    """,
)


class SoftplusKernel(nn.Module):
    """The same without an overflow in float32: max(x, 0) + log(1 + exp(-|x|))."""

    def __call__(self, x):
        return forward(
            inputs=[x],
            grid=(x.size, 1, 1),
            threadgroup=(256, 1, 1),
            output_shapes=[x.shape],
            output_dtypes=[x.dtype],
        )[0]


def network(activation):
    mx.random.seed(0)
    layers = [nn.Linear(256, 256), activation(), nn.Linear(256, 256), activation(), nn.Linear(256, 10)]
    return nn.Sequential(*layers)


def profiled(model, x):
    """The shortest of some profiles: a GPU in software shares its cores with all else."""
    for _ in range(3):
        mx.eval(model(x))  # plans and compiles
    mx.synchronize()
    all = []
    for _ in range(30):
        with profiler.profile(wait_until_completed=True) as found:
            mx.eval(model(x))
            mx.synchronize()
        all.append(found.result)
    return min(all, key=lambda profile: profile.length)


def lanes(profile, device):
    """Names and spans of what the device, the copies and the CPU in its place did, in ms."""
    found = {device: [], "copies": [], "the CPU in its place": []}
    for event in json.loads(profile.to_json())["traceEvents"]:
        kind, args = event.get("cat"), event.get("args", {})
        span = (event["name"], kind, event.get("ts", 0) / 1e3, event.get("dur", 0) / 1e3)
        if kind == "step":
            found["the CPU in its place" if args["on the CPU"] else device].append(span)
        elif kind == "copy":
            found["copies"].append(span)
    return found


def picture(title, found):
    """The lanes as an SVG."""
    spans = [span for lane in found.values() for span in lane]
    first = min(start for *_, start, _ in spans)
    last = max(start + length for *_, start, length in spans)
    scale, row = 720 / max(last - first, 1e-6), 46
    height = 60 + row * len(found)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="960" height="{height}" font-family="sans-serif" '
        f'font-size="13">',
        f'<rect width="960" height="{height}" fill="white"/>',
        f'<text x="12" y="24" font-size="16">{html.escape(title)}, {last - first:.2f} ms</text>',
    ]
    for index, (name, lane) in enumerate(found.items()):
        y = 42 + row * index
        lines.append(f'<text x="12" y="{y + 20}">{html.escape(name)}</text>')
        lines.append(f'<path d="M200 {y + 36}H930" stroke="#ddd"/>')
        for what, kind, start, length in lane:
            x, width = 200 + (start - first) * scale, max(length * scale, 1)
            colour = COLOURS["fallback"] if name == "the CPU in its place" else COLOURS[kind]
            lines.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="30" fill="{colour}">'
                f"<title>{html.escape(what)} {length:.3f} ms</title></rect>"
            )
            if width > 7 * len(what):
                lines.append(f'<text x="{x + 4:.1f}" y="{y + 20}">{html.escape(what)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="wgpu:0")
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    arguments = parser.parse_args()
    kind, _, index = arguments.device.partition(":")
    mx.set_default_device(mx.Device(getattr(mx.DeviceType, kind), int(index or 0)))
    x = mx.random.normal((1, 256), key=mx.random.key(1))
    mx.eval(x)
    results = []
    for name, title, activation in (
        ("before", "Softplus in float64", Softplus64),
        ("after", "Softplus as a kernel", SoftplusKernel),
    ):
        model = network(activation)
        profile = profiled(model, x)
        results.append(model(x))
        found = lanes(profile, arguments.device)
        path = os.path.join(arguments.out, f"profiling-{name}.svg")
        with open(path, "w") as file:
            file.write(picture(title, found))
        print(f"{path}: " + ", ".join(f"{len(lane)} on {lane_name}" for lane_name, lane in found.items()))
        print(profile.table())
    print("apart at most", mx.abs(results[0] - results[1]).max().item())


if __name__ == "__main__":
    main()
