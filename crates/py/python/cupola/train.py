"""What watches a training, and what ``cupola train`` does by options, for loops of one's own.

A `Callbacks` is told of each step and of each epoch, and tells its callbacks: `EarlyStopping`, `KeepBest`,
`MetricsFile`, `TensorBoard`, `Report`, and those that a program writes. `accumulate` learns from a batch in
parts. Changes of images are in ``cupola.data``: ``random_flip``, ``random_crop`` and ``normalize``.
"""

from __future__ import annotations

from itertools import repeat
from os import PathLike
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import cupola.core as mx
from cupola.nn.layers.base import Module
from cupola.utils import tree_flatten, tree_unflatten

__all__ = [
    "Callback",
    "Callbacks",
    "EarlyStopping",
    "KeepBest",
    "MetricsFile",
    "Moment",
    "Report",
    "TensorBoard",
    "accumulate",
]

Path = Union[str, PathLike]


class Moment(NamedTuple):
    """Where a training is, and what was measured there.

    Example:
        >>> train.Moment(1, 10, {"loss": 0.5}, None).metrics["loss"]
        0.5
    """

    epoch: int
    """The number of the epoch, from 1."""
    step: int
    """How many training steps were made in all."""
    metrics: Dict[str, float]
    """What was measured, by name: of a step, or of an epoch that is over."""
    model: Optional[Module]
    """The model as it is now; not that of an epoch that is past."""


class Callback:
    """Is told how a training goes, and may end it. Every hook does nothing unless a subclass writes it.

    Example:
        >>> class GoodEnough(train.Callback):
        ...     def epoch(self, at):
        ...         return at.metrics["loss"] < 0.1
        ...
        >>> callbacks = train.Callbacks(nn.Linear(2, 1), [GoodEnough()])
        >>> callbacks.epoch(loss=0.5), callbacks.epoch(loss=0.05)
        (False, True)
    """

    def past(self, at: Moment) -> Optional[bool]:
        """A training goes on, and this epoch of it was over before; gives what `epoch` would have given."""

    def step(self, at: Moment) -> Optional[bool]:
        """A training step was made. What is true ends the training."""

    def epoch(self, at: Moment) -> Optional[bool]:
        """An epoch is over. What is true ends the training."""

    def end(self) -> None:
        """The training is over, for whatever reason but an error; Ctrl-C is none."""


class Callbacks:
    """Callbacks, told one after the other, and the count of steps and epochs. A ``with`` block of them ends with
    `end`, also where Ctrl-C ends it, but not where an error does.

    Args:
        model: What is trained.
        callbacks: Who is told.

    Example:
        >>> model, x, y = nn.Linear(2, 1), mx.ones((8, 2)), mx.zeros((8, 1))
        >>> optimizer = optim.SGD(0.1)
        >>> step = nn.value_and_grad(model, lambda x, y: nn.losses.mse_loss(model(x), y))
        >>> callbacks = train.Callbacks(model, [
        ...     train.EarlyStopping("loss", patience=3),
        ...     train.KeepBest("loss", "best.safetensors"),
        ...     train.MetricsFile("metrics.jsonl"),
        ... ])
        >>> for epoch in range(4):
        ...     loss, gradients = step(x, y)
        ...     optimizer.update(model, gradients)
        ...     if callbacks.step(loss=loss) or callbacks.epoch(loss=loss):
        ...         break
        >>> callbacks.end()
        >>> callbacks.epochs, len(open("metrics.jsonl").readlines())
        (4, 4)
    """

    def __init__(self, model: Module, callbacks: Iterable[Callback] = ()) -> None:
        self._model = model
        self._all: List[Callback] = []
        for callback in callbacks:
            self.add(callback)
        self.epochs = 0
        """How many epochs are over."""
        self.steps = 0
        """How many steps were made."""

    def add(self, callback: Callback) -> None:
        """One more, which is told after the others."""
        if not isinstance(callback, Callback):
            raise TypeError(f"callbacks: a {type(callback).__name__} is no cupola.train.Callback")
        self._all.append(callback)

    def resume(self, history: Sequence[Mapping[str, Any]], steps: int) -> bool:
        """The training goes on after so many steps and epochs that came to ``history``, of which those are told
        that were not told before. True where a callback would have ended it after the last of them.

        Example:
            >>> callbacks = train.Callbacks(nn.Linear(2, 1), [train.EarlyStopping("loss", patience=2)])
            >>> callbacks.resume([{"loss": 0.5}, {"loss": 0.6}], steps=20), callbacks.epochs
            (False, 2)
        """
        ends = False
        for number, metrics in list(enumerate(history, 1))[self.epochs :]:
            at = Moment(number, steps, _numbers(metrics), None)
            ends = self._tell("past", at)
        self.epochs, self.steps = len(history), steps
        return ends

    def step(self, **metrics: Any) -> bool:
        """A training step was made, of which numbers, or arrays of one, were measured. True where the training is
        to end."""
        # What is no number leaves the count as it is.
        numbers = _numbers(metrics)
        self.steps += 1
        return self._tell("step", Moment(self.epochs + 1, self.steps, numbers, self._model))

    def epoch(self, **metrics: Any) -> bool:
        """An epoch is over, of which numbers, or arrays of one, were measured. True where the training is to end."""
        numbers = _numbers(metrics)
        self.epochs += 1
        return self._tell("epoch", Moment(self.epochs, self.steps, numbers, self._model))

    def end(self) -> None:
        """The training is over."""
        for callback in self._all:
            callback.end()

    def __enter__(self) -> Callbacks:
        return self

    def __exit__(self, kind: Optional[type], error: Optional[BaseException], trace: Any) -> None:
        # Ctrl-C and the end of the program are no errors.
        if not isinstance(error, Exception):
            self.end()

    def _tell(self, hook: str, at: Moment) -> bool:
        # All are told, also where one of them asks for the end.
        return any([bool(getattr(callback, hook)(at)) for callback in self._all])


def _numbers(metrics: Mapping[str, Any]) -> Dict[str, float]:
    return {
        name: float(value.item() if isinstance(value, mx.array) else value)
        for name, value in metrics.items()
    }


class _Native(Callback):
    """A callback of Rust."""

    def __init__(self, watcher: Any) -> None:
        self._watcher = watcher

    def _told(self, hook: str, at: Moment) -> bool:
        def weights() -> Dict[str, mx.array]:
            if at.model is None:
                raise RuntimeError("The weights of a past epoch are gone.")
            return dict(tree_flatten(at.model.parameters()))

        place, metrics = (at.epoch, at.step), list(at.metrics.items())
        return getattr(self._watcher, hook)(place, metrics, weights)

    def past(self, at: Moment) -> bool:
        return self._told("past", at)

    def step(self, at: Moment) -> bool:
        return self._told("step", at)

    def epoch(self, at: Moment) -> bool:
        return self._told("epoch", at)

    def end(self) -> None:
        self._watcher.end()


class EarlyStopping(_Native):
    """Ends a training after so many epochs in which a metric is not the best so far.

    Args:
        metric: Its name.
        patience: How many epochs.
        goal: ``"least"``, or ``"greatest"``.
        by: How much better the metric must be to count.

    Raises:
        ValueError: Where ``patience`` is 0, ``by`` is negative, there is no such goal, or an epoch has no such
            metric.

    Example:
        >>> callbacks = train.Callbacks(nn.Linear(2, 1), [train.EarlyStopping("loss", patience=2)])
        >>> [callbacks.epoch(loss=loss) for loss in (0.5, 0.6, 0.5)]
        [False, False, True]
    """

    def __init__(self, metric: str, patience: int, goal: str = "least", by: float = 0.0) -> None:
        super().__init__(mx._train.early_stopping(metric, patience, goal, by))

    @property
    def best(self) -> Optional[Tuple[float, int]]:
        """The best value so far, and how many epochs ago it was."""
        return self._watcher.best


class KeepBest(_Native):
    """Keeps the weights of the epoch in which a metric is best, in a file of safetensors that
    ``model.load_weights`` reads.

    Args:
        metric: Its name.
        path: The file.
        goal: ``"least"``, or ``"greatest"``.

    Raises:
        ValueError: Where there is no such goal, or an epoch has no such metric.
        RuntimeError: Where the file cannot be written.

    Example:
        >>> model, keep = nn.Linear(2, 1), train.KeepBest("accuracy", "best.safetensors", goal="greatest")
        >>> callbacks = train.Callbacks(model, [keep])
        >>> callbacks.epoch(accuracy=0.75), callbacks.epoch(accuracy=0.5), keep.best
        (False, False, (0.75, 1))
        >>> model = model.load_weights("best.safetensors")
    """

    def __init__(self, metric: str, path: Path, goal: str = "least") -> None:
        super().__init__(mx._train.keep_best(metric, path, goal))

    @property
    def best(self) -> Optional[Tuple[float, int]]:
        """The best value so far, and how many epochs ago it was."""
        return self._watcher.best


class MetricsFile(_Native):
    """Writes what was measured: a line an epoch, as JSON, or as CSV where the name ends in ``.csv``. The file is
    whole at any time, and takes the place of one that is there.

    Args:
        path: The file.
        every: Every how many steps there is a line, too.

    Raises:
        ValueError: Where ``every`` is 0.
        RuntimeError: Where the file cannot be written.

    Example:
        >>> callbacks = train.Callbacks(nn.Linear(2, 1), [train.MetricsFile("metrics.csv")])
        >>> ends = callbacks.epoch(loss=0.5, accuracy=0.75)
        >>> open("metrics.csv").read()
        'epoch,loss,accuracy\\n1,0.5,0.75\\n'
    """

    def __init__(self, path: Path, every: Optional[int] = None) -> None:
        super().__init__(mx._train.metrics_file(path, every))


class TensorBoard(_Native):
    """Writes an event file for TensorBoard: what was measured of every so manieth step as ``train/NAME``, and of
    every epoch as ``epoch/NAME``.

    Args:
        folder: Where the file is made.
        every: Every how many steps.

    Raises:
        ValueError: Where ``every`` is 0.
        RuntimeError: Where the file cannot be written.

    Example:
        >>> board = train.TensorBoard("board", every=1)
        >>> train.Callbacks(nn.Linear(2, 1), [board]).step(loss=0.5)
        False
        >>> board.path.name.startswith("events.out.tfevents.")
        True
    """

    def __init__(self, folder: Path, every: int = 10) -> None:
        super().__init__(mx._train.tensor_board(folder, every))

    @property
    def path(self) -> Any:
        """The file, a ``pathlib.Path``."""
        return self._watcher.path


class Report(_Native):
    """Writes a page of HTML about the training when it is over: settings, what the epochs came to as curves and as a
    table, devices and their memory, and what is added until then. Metrics whose names end in the same word, as ``train_loss`` and
    ``val_loss``, share a picture.

    Args:
        path: The file.
        title: What the page calls itself.
        settings: What the table at its top says.

    Raises:
        RuntimeError: Where the file cannot be written: after the first step or epoch, where its folder is not there.

    Example:
        >>> report = train.Report("report.html", "A line", {"learning rate": 0.1})
        >>> callbacks = train.Callbacks(nn.Linear(2, 1), [report])
        >>> ends = callbacks.epoch(train_loss=0.5, val_loss=0.6)
        >>> report.confusion([0, 0, 1], [0, 1, 1], ["below", "above"])
        >>> callbacks.end()
        >>> "<h1>A line</h1>" in open("report.html").read()
        True
    """

    def __init__(
        self, path: Path, title: str = "Training", settings: Optional[Mapping[str, Any]] = None
    ) -> None:
        rows = [(str(name), str(value)) for name, value in (settings or {}).items()]
        super().__init__(mx._train.report(path, title, rows))

    def confusion(self, labels: Any, predicted: Any, classes: Optional[Sequence[str]] = None) -> None:
        """Adds a table of how often each class was taken for each; of more than 100 classes, of those that were
        mistaken most.

        Args:
            labels: The class of each sample, an integer from 0: a vector, or a sequence.
            predicted: The class that it was taken for, likewise.
            classes: What the classes are called; else by their numbers.

        Raises:
            ValueError: Where there are not as many labels as predictions, or one is no class.
            TypeError: Where they are no integers, or ``classes`` is no sequence of strings.

        Example:
            >>> report = train.Report("report.html")
            >>> report.confusion(mx.array([0, 1, 1]), mx.array([0, 1, 0]), ["cat", "dog"])
        """
        true, taken = _classes("labels", labels), _classes("predicted", predicted)
        if classes is None:
            count = max(true + taken, default=-1) + 1
            if count > 65536:
                raise ValueError(f"Report: class {count - 1} is more than 65535; name the classes")
            classes = [str(number) for number in range(count)]
        self._watcher.confusion(_strings("classes", classes), true, taken)

    def unfinished(self, epoch: int, steps: int, **metrics: Any) -> None:
        """Adds an epoch under way, which has had so many steps, to those that are over.

        Example:
            >>> report = train.Report("report.html")
            >>> report.unfinished(3, steps=17, train_loss=0.25)
        """
        self._watcher.unfinished(epoch, steps, list(_numbers(metrics).items()))

    def pictures(self, images: Any, captions: Sequence[str], title: str = "Mistakes", about: str = "") -> None:
        """Adds images with their captions: those that a model is surest of and wrong about, say.

        Args:
            images: ``uint8`` of shape ``[n, height, width, channels]`` with 1, 3 or 4 channels.
            captions: What stands below each.
            title: The heading above them.
            about: A line below that.

        Raises:
            ValueError: Where the images have another shape or dtype, or none at all, or there are not as many captions.
            TypeError: Where ``captions`` is no sequence of strings.

        Example:
            >>> report = train.Report("report.html")
            >>> report.pictures(mx.zeros((2, 8, 8, 1), dtype=mx.uint8), ["7 for 1", "3 for 8"])
        """
        images = mx.array(images)
        if images.ndim != 4 or images.dtype != mx.uint8:
            raise ValueError(
                f"Report: images are uint8 [n, height, width, channels], not {images.dtype} of shape {images.shape}"
            )
        below = _strings("captions", captions)
        if len(below) != images.shape[0]:
            raise ValueError(f"Report: {images.shape[0]} images, but {len(below)} captions")
        self._watcher.pictures(title, about, images.shape[1:], bytes(memoryview(images)), below)


def _classes(name: str, of: Any) -> List[int]:
    numbers = mx.array(of)
    if numbers.size == 0:
        return []
    if numbers.ndim != 1 or not mx.issubdtype(numbers.dtype, mx.integer):
        kind = ValueError if numbers.ndim != 1 else TypeError
        raise kind(f"Report: {name} are a vector of integers, not {numbers.dtype} of shape {numbers.shape}")
    if mx.min(numbers).item() < 0:
        raise ValueError(f"Report: {name}: a class is an integer from 0, not {mx.min(numbers).item()}")
    return numbers.tolist()


def _strings(name: str, of: Any) -> List[str]:
    if isinstance(of, str) or not all(isinstance(one, str) for one in of):
        raise TypeError(f"Report: {name} are a sequence of strings")
    return list(of)


def accumulate(function: Callable[..., Any], parts: int, *batch: mx.array) -> Any:
    """What a function gives for a batch, gone through in parts: the memory of a part, the step of the batch.

    The arrays that it gives, as ``nn.value_and_grad`` does a loss and a tree of gradients, are averaged where they are
    floats, each part by its share, and added up where they are integers, as counts are. Each part is computed before
    the next begins.

    Args:
        function: Takes a part of each array of the batch, and gives a tree of arrays, numbers and ``None``.
        parts: In how many; no part is empty.
        batch: Arrays with the samples along their first axes.

    Raises:
        ValueError: Where ``parts`` is not 1 or more, or the arrays have other lengths, or none.

    Example:
        >>> model, x, y = nn.Linear(2, 1), mx.ones((8, 2)), mx.zeros((8, 1))
        >>> step = nn.value_and_grad(model, lambda x, y: nn.losses.mse_loss(model(x), y))
        >>> loss, gradients = train.accumulate(step, 4, x, y)
        >>> loss.shape, gradients["weight"].shape
        ((), (1, 2))
    """
    lengths = {len(array) for array in batch}
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError(f"accumulate: the arrays of a batch have lengths {sorted(lengths)}")
    if parts < 1:
        raise ValueError(f"accumulate: {parts} parts, not 1 or more")
    count = lengths.pop()
    parts = min(parts, count)
    if parts == 1:
        return function(*batch)
    total, names, is_mean = mx._train._Accumulator(), [], []
    for index in range(parts):
        first, last = index * count // parts, (index + 1) * count // parts
        given = tree_flatten(function(*(array[first:last] for array in batch)))
        # A number is an array of one, and what is None stays so.
        found = [(name, value if value is None else mx.array(value)) for name, value in given]
        names = [name for name, _ in found]
        is_mean = [None if value is None else mx.issubdtype(value.dtype, mx.inexact) for _, value in found]
        means = [value for (_, value), mean in zip(found, is_mean) if mean]
        sums = [value for (_, value), mean in zip(found, is_mean) if mean is False]
        # Only the sum holds them from here on.
        del found, given
        total.add((last - first) / count, means, sums)
    means, sums = total.finish()
    of = {True: iter(means), False: iter(sums), None: repeat(None)}
    return tree_unflatten([(name, next(of[mean])) for name, mean in zip(names, is_mean)])
