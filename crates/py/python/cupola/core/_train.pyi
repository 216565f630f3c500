# Written by `cargo xtask gen`.

"""What `cupola.train` is made of."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

@final
class _Watcher:
    """A callback of Rust."""
    @property
    def best(self) -> Any:
        """The best value so far, and how many epochs ago it was."""
    @property
    def path(self) -> Any:
        """The file that a writer for TensorBoard writes."""
    def confusion(self, classes: Sequence[str], labels: Sequence[int], predicted: Sequence[int]) -> None:
        """Adds how often each class was taken for each to a report."""
    def unfinished(self, epoch: int, steps: int, metrics: Sequence[Any]) -> None:
        """Adds an epoch under way to a report."""
    def pictures(self, title: str, about: str, shape: Any, pixels: bytes, captions: Sequence[str]) -> None:
        """Adds images, all of one shape, whose bytes follow each other, to a report."""
    def past(self, place: Any, metrics: Sequence[Any], weights: Any) -> bool:
        """An epoch was over before the training goes on."""
    def step(self, place: Any, metrics: Sequence[Any], weights: Any) -> bool:
        """A training step was made; gives whether the training is to end."""
    def epoch(self, place: Any, metrics: Sequence[Any], weights: Any) -> bool:
        """An epoch is over; gives whether the training is to end."""
    def end(self) -> None:
        """The training is over."""

@final
class _Accumulator:
    """Means and sums over the parts of a batch."""
    def __new__(cls) -> _Accumulator: ...
    def add(self, share: float, means: Sequence[_Scalar | array], sums: Sequence[_Scalar | array]) -> None:
        """Takes in a part that is so large a share of the batch, and computes it."""
    def finish(self) -> tuple[list[array], list[array]]:
        """The means, and the sums."""

def early_stopping(metric: str, patience: int, goal: str, by: float) -> Any:
    """What ends a training after so many epochs in which a metric is not the best so far.

    Example:
        >>> mx._train.early_stopping("loss", 3, "least", 0.0).best
    """
def keep_best(metric: str, path: Any, goal: str) -> Any:
    """What keeps the weights of the epoch in which a metric is best.

    Example:
        >>> mx._train.keep_best("loss", "best.safetensors", "least").best
    """
def metrics_file(path: Any, every: int | None) -> Any:
    """What writes a line an epoch.

    Example:
        >>> mx._train.metrics_file("metrics.jsonl", None).end()
    """
def report(path: Any, title: str, rows: Sequence[Any]) -> Any:
    """What writes a page about a training.

    Example:
        >>> mx._train.report("report.html", "A line", [("rate", "0.1")]).end()
    """
def tensor_board(folder: Any, every: int) -> Any:
    """What writes for TensorBoard.

    Example:
        >>> mx._train.tensor_board("board", 10).path.parent.name
        'board'
    """

