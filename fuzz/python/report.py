"""What the fuzzers have in common: their command line, the loop over cases, and the report."""

import argparse
import collections
import faulthandler
import json
import os
import sys
import textwrap
import time

SHOWN = 3


class Usage(Exception):
    """The command cannot be run as it is."""


def arguments(name, about):
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--cases", type=int, help="stop after so many cases")
    parser.add_argument("--case", metavar="SEED:INDEX", help="one case again")
    parser.add_argument("--device", choices=["cpu", "wgpu", "cuda"], default="cpu")
    parser.add_argument("--json", metavar="FILE", help="the report as JSON")
    options = parser.parse_args()
    if options.case:
        try:
            seed, index = map(int, options.case.split(":"))
        except ValueError:
            parser.error("--case takes SEED:INDEX")
        options.seed, options.first, options.cases, options.seconds = seed, index, 1, 1e9
    else:
        options.first = 0
    return options


class Report:
    """Counts and findings of a run."""

    def __init__(self, name, options):
        self.name, self.options = name, options
        self.counts = collections.Counter()
        self.groups = collections.OrderedDict()
        self.cases = 0
        self.begun = time.monotonic()

    def repeat(self, index):
        device = self.options.device
        more = "" if device == "cpu" else f" --device {device}"
        return f"python fuzz/python/{self.name}.py --case {self.options.seed}:{index}{more}"

    def finding(self, index, group, what):
        """Notes a finding; those of one group are shown a few times and counted further."""
        self.counts["findings"] += 1
        found = self.groups.setdefault(group, [])
        entry = {"case": f"{self.options.seed}:{index}", "what": what, "repeat": self.repeat(index)}
        entry["group"] = group
        found.append(entry)
        if len(found) <= SHOWN:
            print(f"FINDING {group}\n{textwrap.indent(what, '  ')}\n  repeat: {entry['repeat']}\n")
            sys.stdout.flush()

    def progress(self):
        seconds = time.monotonic() - self.begun
        rate = self.cases / max(seconds, 1e-9)
        line = f"{self.name}: {self.cases} cases, {rate:.0f}/s, {self.counts['findings']} findings"
        print(f"{line}, {seconds:.0f} s", file=sys.stderr)

    def finish(self):
        seconds = time.monotonic() - self.begun
        print(f"{self.name}, seed {self.options.seed}, {seconds:.0f} s")
        rows = [("cases", self.cases), *sorted(self.counts.items())]
        for what, count in rows:
            print(f"  {what:<58} {count:>9}")
        for group, found in self.groups.items():
            print(f"  finding: {group:<49} {len(found):>9}")
        if self.options.json:
            self._write(seconds)
        return 1 if self.groups else 0

    def _write(self, seconds):
        findings = [entry for found in self.groups.values() for entry in found]
        report = {"name": self.name, "seed": self.options.seed, "seconds": round(seconds, 1)}
        report.update(cases=self.cases, counts=dict(self.counts), findings=findings)
        with open(self.options.json, "w") as f:
            json.dump(report, f, indent=1)


def main(name, about, prepare):
    """Runs a fuzzer. `prepare(options, report)` gives the function that does case number i, and one
    that is called at the end."""
    # Where a library ends this process, its last words are the lines of Python that it was called at.
    faulthandler.enable()
    options = arguments(name, about)
    report = Report(name, options)
    try:
        case, close = prepare(options, report)
    except Usage as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    shown, index, talks = time.monotonic(), options.first, sys.stderr.isatty()
    try:
        while time.monotonic() - report.begun < options.seconds:
            if options.cases is not None and report.cases >= options.cases:
                break
            case(index)
            index += 1
            report.cases += 1
            if talks and time.monotonic() - shown > 10:
                report.progress()
                shown = time.monotonic()
    except KeyboardInterrupt:
        pass
    finally:
        close()
    return report.finish()


def exit_with(code):
    """Ends at once: what a finding left behind in this process is not waited for."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
