# Written by `cargo xtask gen`.

"""What `cupola.data` is made of."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

@final
class ImageDataset:
    """Images with labels.

    Example:
        >>> train, test = data.digits(train=4, test=2)
        >>> len(train), len(test), len(train.classes)
        (4, 2, 10)
    """
    def __len__(self) -> int:
        ...
    def __getitem__(self, index: int, /) -> Any:
        ...
    @property
    def name(self) -> str:
        """The name of the data set."""
    @property
    def classes(self) -> Any:
        """The names of the classes."""
    def arrays(self) -> tuple[array, array]:
        """All images and all labels, as two arrays."""

@final
class _Loader:
    """Batches of a data set."""
    def __new__(cls, dataset: Any, collate: Any, batch_size: int, seed: int | None, drop_last: bool, workers: int, prefetch: int | None) -> _Loader: ...
    def __len__(self) -> int:
        ...
    def epoch(self, epoch: int, first: int) -> Any:
        """The batches of an epoch, from number `first` on."""

@final
class _Epoch:
    """The batches of one epoch."""
    def __iter__(self) -> Any:
        ...
    def __next__(self) -> Any:
        ...

def cifar10(folder: Any) -> Any:
    """CIFAR-10 from the files in a folder."""
def cifar100(folder: Any) -> Any:
    """CIFAR-100 from the files in a folder."""
def digits(seed: int = ..., train: int = ..., test: int = ...) -> Any:
    """Drawn digits, which need no files: so many to train on, so many to test on.

    Example:
        >>> train, test = data.digits(train=4, test=2)
        >>> images, labels = train.arrays()
        >>> images.shape, labels.shape
        ((4, 28, 28, 1), (4,))
    """
def fashion_mnist(folder: Any) -> Any:
    """Fashion-MNIST from the files in a folder."""
def mnist(folder: Any) -> Any:
    """MNIST from the files in a folder: the images to train on and those to test on."""

