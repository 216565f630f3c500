"""Data sets and batches of them.

A data set is anything with ``__len__`` and ``__getitem__``. A `DataLoader` gives batches in an order
that the seed and the epoch alone decide, and may make them ahead in threads.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cupola.core as _core
from cupola.core import _data
from cupola.core._data import (  # type: ignore[import-not-found, unused-ignore]
    ImageDataset,
    cifar10,
    cifar100,
    digits,
    fashion_mnist,
    mnist,
    normalize,
    random_crop,
    random_flip,
)

__all__ = [
    "ArrayDataset",
    "DataLoader",
    "Dataset",
    "ImageDataset",
    "cifar10",
    "cifar100",
    "collate",
    "digits",
    "fashion_mnist",
    "mnist",
    "normalize",
    "random_crop",
    "random_flip",
]


class Dataset:
    """Samples by index. A subclass says how many there are and what each is.

    Example:
        >>> class Squares(data.Dataset):
        ...     def __len__(self):
        ...         return 4
        ...     def __getitem__(self, index):
        ...         return mx.array(index**2)
        ...
        >>> Squares()[3].item()
        9
    """

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no __len__")

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")


class ArrayDataset(Dataset):
    """Arrays of one length, of which a sample has one row each.

    Example:
        >>> pairs = data.ArrayDataset(mx.arange(6).reshape(3, 2), mx.array([0, 1, 2]))
        >>> len(pairs), pairs[1][1].item()
        (3, 1)
    """

    def __init__(self, *arrays: _core.array) -> None:
        if not arrays:
            raise ValueError("ArrayDataset: at least one array is needed")
        lengths = [len(array) for array in arrays]
        if len(set(lengths)) > 1:
            raise ValueError(f"ArrayDataset: arrays of lengths {lengths} do not go together")
        self.arrays = arrays

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: int) -> Any:
        row = tuple(array[index] for array in self.arrays)
        return row if len(row) > 1 else row[0]


def collate(samples: Sequence[Any]) -> Any:
    """One batch of samples: arrays are stacked, numbers become an array, containers of these are
    batches of their parts, and anything else becomes a list.

    Example:
        >>> images, labels = data.collate([(mx.zeros(2), mx.array(1)), (mx.ones(2), mx.array(2))])
        >>> images.shape, labels
        ((2, 2), array([1, 2], dtype=int32))
    """
    first = samples[0]
    if isinstance(first, _core.array):
        return _core.stack(list(samples))
    if isinstance(first, (bool, int, float, complex)) or hasattr(first, "__array__"):
        return _core.array(list(samples))
    if isinstance(first, dict):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (list, tuple)):
        parts = [collate(list(part)) for part in zip(*samples, strict=True)]
        return parts if isinstance(first, list) else tuple(parts)
    return list(samples)


class DataLoader:
    """Batches of a data set; iterating goes through one epoch after the other.

    With ``shuffle`` each epoch has an order of its own, drawn from ``seed`` and its number. With
    ``workers`` so many threads make batches ahead, at most ``prefetch`` of them.

    Example:
        >>> pairs = data.ArrayDataset(mx.arange(6).reshape(3, 2), mx.array([0, 1, 2]))
        >>> [labels.shape for _, labels in data.DataLoader(pairs, batch_size=2)]
        [(2,), (1,)]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        *,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        workers: int = 0,
        prefetch: int | None = None,
        collate: Callable[[Sequence[Any]], Any] = collate,
    ) -> None:
        order = seed if shuffle else None
        self._loader = _data._Loader(
            dataset, collate, batch_size, order, drop_last, workers, prefetch
        )
        self._next = 0

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        number, self._next = self._next, self._next + 1
        return self.epoch(number)

    def epoch(self, number: int, first: int = 0) -> Iterator[Any]:
        """The batches of an epoch, from number ``first`` on."""
        return iter(self._loader.epoch(number, first))
