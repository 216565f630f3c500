"""Reads damaged archives of NumPy: `python fuzz/files/npz.py --seed N --seconds S --json FILE`.

A case damages a valid archive, on the outside or one of the files in it. It is read or refused with
one of Cupola's errors, in memory that follows from its size, and what is read is the same after it
was saved. Exit status: 0 nothing found, 1 findings, 2 wrong arguments.
"""

import argparse
import io
import json
import random
import resource
import sys
import time
import zipfile

import cupola.core as mx

# What gzip makes of a byte at most, and what any file may cost.
FACTOR, BASE = 4 * 1032, 256 << 20
SLOWEST = 5.0
# How many bytes come before the elements of a small array.
HEADER = 128


def content(array: mx.array) -> bytes:
    file = io.BytesIO()
    mx.save(file, array)
    return file.getvalue()


def arrays(draw: random.Random) -> dict[str, mx.array]:
    def one() -> mx.array:
        dtype = draw.choice([mx.bool_, mx.uint8, mx.int32, mx.float16, mx.float32, mx.complex64])
        shape = [draw.randrange(4) for _ in range(draw.randrange(4))]
        return mx.ones(shape, dtype)

    return {f"a{index}": one() for index in range(draw.randrange(1, 4))}


def damaged(data: bytes, draw: random.Random) -> bytes:
    """`data` with some bytes changed, doubled, cut out or at its end cut off."""
    data = bytearray(data)
    for _ in range(draw.randrange(1, 6)):
        at = draw.randrange(len(data)) if data else 0
        length = draw.randrange(1, 9)
        match draw.randrange(6):
            case 0:
                del data[at:]
            case 1:
                del data[at : at + length]
            case 2:
                data[at:at] = data[at : at + length]
            case 3:
                data[at : at + length] = draw.choice([b"\xff", b"\0", b"\x7f"]) * length
            case _ if data:
                data[at] ^= 1 << draw.randrange(8)
    return bytes(data)


def damaged_file(data: bytes, draw: random.Random) -> bytes:
    """A file of one array with a damaged header, or with damaged elements."""
    header, elements = data[:HEADER], data[HEADER:]
    if draw.random() < 0.5:
        return damaged(header, draw) + elements
    return header + damaged(elements, draw)


def archive(draw: random.Random) -> bytes:
    """A damaged archive; half of them are whole, with damaged files in them."""
    inside = draw.random() < 0.5
    packed = draw.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packed) as out:
        for name, array in arrays(draw).items():
            data = content(array)
            # The time is part of an archive, and must not be that of today.
            info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            out.writestr(info, damaged_file(data, draw) if inside else data, packed)
    return file.getvalue() if inside else damaged(file.getvalue(), draw)


def same(a: mx.array, b: mx.array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and content(a) == content(b)


def check(data: bytes) -> tuple[str, str | None]:
    """What became of an archive, and what is wrong with that."""
    try:
        found = mx.load(io.BytesIO(data), format="npz")
    except (RuntimeError, ValueError, OSError) as error:
        return "refused", None if str(error) else "an error without words"
    file = io.BytesIO()
    mx.savez(file, **found)
    again = mx.load(io.BytesIO(file.getvalue()), format="npz")
    if found.keys() != again.keys() or not all(same(found[n], again[n]) for n in found):
        return "read", f"saved and loaded, {found} became {again}"
    return "read", None


def case(seed: int, number: int) -> tuple[str, str | None]:
    data = archive(random.Random(f"{seed} {number}"))
    limit = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + BASE + FACTOR * len(data)
    began = time.monotonic()
    try:
        label, wrong = check(data)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        label, wrong = "raised", f"{type(error).__name__}: {error}"
    if time.monotonic() - began > SLOWEST:
        wrong = wrong or f"took {time.monotonic() - began:.1f} s"
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > limit:
        wrong = wrong or f"took more than {limit >> 20} MiB"
    return label, wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--case", type=int)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    counts: dict[str, int] = {}
    findings = []
    until = time.monotonic() + arguments.seconds
    number = arguments.case or 0
    while True:
        label, wrong = case(arguments.seed, number)
        counts[f"npz {label}"] = counts.get(f"npz {label}", 0) + 1
        if wrong:
            repeat = f"python fuzz/files/npz.py --seed {arguments.seed} --case {number}"
            findings.append({"case": f"npz {number}", "what": wrong, "repeat": repeat})
            print(wrong, repeat, sep="\n  repeat: ")
        number += 1
        if arguments.case is not None or time.monotonic() >= until or len(findings) >= 20:
            break
    report = {"name": "npz", "seed": arguments.seed, "seconds": arguments.seconds}
    report |= {"cases": sum(counts.values()), "counts": counts, "findings": findings}
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(report, file)
    return 1 if findings else 0


sys.exit(main())
