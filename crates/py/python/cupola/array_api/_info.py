"""What the namespace can do."""

from __future__ import annotations

import cupola.core as mx

from ._types import COMPLEX, DTYPES, INDEXING, INTEGRAL, REAL, Device, Dtype


class Info:
    """The devices and dtypes of the namespace, and what it can do."""

    def capabilities(self) -> dict[str, bool | int | None]:
        """Whether masks and other shapes that values decide work, and how many axes there can be."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 128}

    def default_device(self) -> Device:
        """The device that operations are recorded on."""
        return mx.default_device()

    def default_dtypes(self, *, device: Device | None = None) -> dict[str, Dtype]:
        """The dtypes of Python's numbers in an array, and that of indices."""
        return {
            "real floating": REAL,
            "complex floating": COMPLEX,
            "integral": INTEGRAL,
            "indexing": INDEXING,
        }

    def dtypes(
        self, *, device: Device | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, Dtype]:
        """The dtypes by their names: all of them, or those of a kind. Every device has the same."""
        return {n: d for n, d in DTYPES.items() if kind is None or mx.isdtype(d, kind)}

    def devices(self) -> list[Device]:
        """The devices that are there."""
        kinds = (mx.cpu, mx.gpu)
        return [mx.Device(kind, at) for kind in kinds for at in range(mx.device_count(kind))]


def __array_namespace_info__() -> Info:
    """The devices and dtypes of the namespace, and what it can do."""
    return Info()
