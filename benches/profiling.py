#!/usr/bin/env python3
"""What a profile costs: training steps with and without one, in turn.

    python benches/profiling.py [--device cpu] [--model cnn] [--rounds 15] [--steps 20] [--threads N] [--json FILE]

Needs numpy and the package `cupola`; the models are those of `benches/models.py`. Each round runs so many steps without
a profile, then so many with one in interval mode, with nothing waited for but the last step: so what slows the machine
down slows both. Rounds alternate which of the two comes first. The ratio of a round is that of its two times, and
the cost is the median of these ratios less 1; what `stop` takes, which sorts what was noted, is said beside it. Lines
of the program are noted where a function is traced, which the first round, which is not counted, does. Ends with 1
where the cost is more than `--most`, 2 % unless it is said.
"""

import argparse
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", default="cnn", choices=["gpt", "resnet", "cnn", "mlp"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=20, help="in each half of a round")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--eager", action="store_true", help="steps that are recorded anew each time, not compiled")
    parser.add_argument("--tiny", action="store_true", help="the smallest sizes, for a test of this script")
    parser.add_argument("--most", type=float, default=0.02, help="the cost that is allowed, as a part")
    parser.add_argument("--json", help="a file for everything that was measured")
    arguments = parser.parse_args()
    os.environ["CUPOLA_NUM_THREADS"] = str(arguments.threads)

    import models

    import cupola.core as mx
    from cupola import profiler

    sizes = models.Sizes.tiny() if arguments.tiny else None
    task = dict(model=arguments.model, dtype="f32", device=arguments.device, compile=not arguments.eager)
    step = models.cupola_step(task, sizes)
    step()

    def timed():
        start = time.perf_counter()
        for _ in range(arguments.steps):
            step()
        mx.synchronize()
        return time.perf_counter() - start

    stops = []

    def profiled():
        profiler.start("interval")
        try:
            return timed()
        finally:
            start = time.perf_counter()
            profiler.stop()
            stops.append(time.perf_counter() - start)

    ratios, plain, watched = [], [], []
    for number in range(arguments.rounds + 1):
        if number % 2:
            off, on = timed(), profiled()
        else:
            on, off = profiled(), timed()
        if number > 0:
            plain.append(off / arguments.steps)
            watched.append(on / arguments.steps)
            ratios.append(on / off)
    cost = statistics.median(ratios) - 1
    quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
    print(
        f"{arguments.model} on {arguments.device}: {1e3 * statistics.median(plain):.3f} ms a step, with a profile "
        f"{1e3 * statistics.median(watched):.3f} ms: {100 * cost:+.2f} % "
        f"(half of the rounds between {100 * (quartiles[0] - 1):+.2f} and {100 * (quartiles[2] - 1):+.2f} %); "
        f"stopping takes {1e3 * statistics.median(stops):.1f} ms after {arguments.steps} steps"
    )
    if arguments.json:
        with open(arguments.json, "w") as file:
            found = dict(cost=cost, stop=statistics.median(stops), ratios=ratios, plain=plain, profiled=watched)
            json.dump({**task, **found}, file, indent=1)
    return int(cost > arguments.most)


if __name__ == "__main__":
    sys.exit(main())
