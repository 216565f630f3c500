"""The article's network in MLX, with its steps compiled."""

from functools import partial
from importlib.metadata import version

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from main import Absent


class Network(nn.Module):
    def __init__(self, channels, side, classes):
        super().__init__()
        features = 100 * (side // 8) ** 2
        self.convs = [nn.Conv2d(a, b, 5, padding=2) for a, b in ((channels, 20), (20, 50), (50, 100))]
        sizes = ((features, features // 2), (features // 2, features // 4), (features // 4, classes))
        self.linears = [nn.Linear(a, b) for a, b in sizes]
        self.pool, self.dropout = nn.MaxPool2d(2, 2), nn.Dropout(0.3)

    def __call__(self, x):
        for conv in self.convs:
            x = self.pool(nn.relu(conv(x)))
        first, second, third = self.linears
        x = nn.relu(self.dropout(first(mx.flatten(x, 1))))
        return nn.log_softmax(self.dropout(third(self.dropout(second(x)))), axis=1)


class Peer:
    def __init__(self, device, task):
        self.version = version("mlx")
        if device == "gpu" and mx.default_device() != mx.gpu:
            raise Absent("this MLX sees no GPU")
        mx.set_default_device(mx.cpu if device == "cpu" else mx.gpu)
        mx.random.seed(task["seed"])
        self.model = Network(task["channels"], task["side"], task["classes"])
        mx.eval(self.model.parameters())
        rate = task["learning_rate"]
        make = {
            "adam": lambda: optim.Adam(rate, bias_correction=True),
            "adamw": lambda: optim.AdamW(rate, bias_correction=True),
            "sgd": lambda: optim.SGD(rate, momentum=0.9),
        }
        optimizer = make[task["optimizer"]]()
        self.state = state = [self.model.state, optimizer.state, mx.random.state]

        def loss(x, y):
            scores = self.model(x)
            return nn.losses.nll_loss(scores, y, reduction="mean"), (scores.argmax(1) == y).sum()

        value_and_grad = nn.value_and_grad(self.model, loss)

        @partial(mx.compile, inputs=state, outputs=state)
        def step(x, y):
            found, gradients = value_and_grad(x, y)
            optimizer.update(self.model, gradients)
            return found

        self.compiled = step

    def placed(self, x, y):
        x, y = mx.array(x), mx.array(y)
        mx.eval(x, y)
        return x, y

    def train(self, on):
        self.model.train(on)

    def step(self, x, y):
        loss, hits = self.compiled(x, y)
        mx.eval(loss, hits, self.state)
        return loss.item(), hits.item()

    def classes(self, x):
        return mx.argmax(self.model(x), axis=1)

    def read(self, array):
        return np.array(array)

    def wait(self, arrays):
        mx.eval(arrays)
