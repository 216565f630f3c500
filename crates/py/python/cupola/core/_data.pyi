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
    def normalization(self) -> Any:
        """What brings these images to mean 0 and deviation 1: the mean of each channel, and the deviation."""
    def normalized(self, mean: Sequence[Any], std: Sequence[Any]) -> Any:
        """These images at another scale: (pixel / 255 - mean) / std, channel by channel."""
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
def normalize(images: _Scalar | array, mean: Sequence[Any], std: Sequence[Any]) -> array:
    """Images at another scale, channel by channel: bytes divided by 255, less a mean, over a deviation. Floats are
    taken to be scaled to 0 to 1 already.
    Takes (..., C), and mean and deviation of each channel.

    Example:
        >>> data.normalize(mx.array([[0], [255]], mx.uint8), [0.5], [0.25]).tolist()
        [[-2.0], [2.0]]
    """
def random_crop(images: _Scalar | array, padding: int, key: _Scalar | array | None = ...) -> array:
    """Of each image of a batch, with a border of zeros, a part of its own size at a random place.
    Takes (N, H, W, C), how wide the border is, and a key where the default generator is not to be drawn from.

    Example:
        >>> data.random_crop(mx.ones((8, 32, 32, 3)), 4).shape
        (8, 32, 32, 3)
    """
def random_flip(images: _Scalar | array, key: _Scalar | array | None = ...) -> array:
    """Each image of a batch mirrored, left for right, with probability one half.
    Takes (N, H, W, C), and a key where the default generator is not to be drawn from.

    Example:
        >>> image = mx.array([1.0, 2.0]).reshape(1, 1, 2, 1)
        >>> data.random_flip(image).flatten().tolist() in ([1, 2], [2, 1])
        True
    """

