"""Trains the article's network on handwritten digits, as a program for MLX.

companion.py FOLDER [--epochs N] [--batch N] [--rate R] [--steps N]: FOLDER holds MNIST's four files.
"""

import argparse
import gzip
import os
import random
import struct
import time
from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim


class ConvNet(nn.Module):
    """Three blocks of convolution, ReLU and pooling, then three linear layers."""

    def __init__(self, side=28, classes=10):
        super().__init__()
        features = 100 * (side // 8) ** 2
        self.conv1 = nn.Conv2d(1, 20, kernel_size=5, padding=2)
        self.conv2 = nn.Conv2d(20, 50, kernel_size=5, padding=2)
        self.conv3 = nn.Conv2d(50, 100, kernel_size=5, padding=2)
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.fc1 = nn.Linear(features, features // 2)
        self.fc2 = nn.Linear(features // 2, features // 4)
        self.fc3 = nn.Linear(features // 4, classes)
        self.drop = nn.Dropout(p=0.3)

    def __call__(self, x):
        x = self.pool(nn.relu(self.conv1(x)))
        x = self.pool(nn.relu(self.conv2(x)))
        x = self.pool(nn.relu(self.conv3(x)))
        x = x.reshape(x.shape[0], -1)
        x = nn.relu(self.drop(self.fc1(x)))
        x = self.drop(self.fc2(x))
        x = self.drop(self.fc3(x))
        return nn.log_softmax(x, axis=1)


class Loader:
    """Batches of images and labels, in a new order each time."""

    def __init__(self, images, labels, batch_size, shuffle):
        self.images = mx.array(images)
        self.labels = mx.array(labels)
        self.batch_size = batch_size
        self.shuffle = shuffle

    def __iter__(self):
        order = list(range(0, self.images.shape[0], self.batch_size))
        if self.shuffle:
            random.shuffle(order)
        for start in order:
            stop = start + self.batch_size
            yield self.images[start:stop], self.labels[start:stop]


def read(folder, name):
    """Images as nested lists of floats from 0 to 255, and labels as a list."""
    with gzip.open(os.path.join(folder, f"{name}-images-idx3-ubyte.gz")) as file:
        _, count, rows, columns = struct.unpack(">4i", file.read(16))
        data = file.read()
    floats = [float(byte) for byte in range(256)]
    images = []
    for i in range(count):
        image = data[i * rows * columns : (i + 1) * rows * columns]
        images.append(
            [[[floats[b]] for b in image[r * columns : (r + 1) * columns]] for r in range(rows)]
        )
    with gzip.open(os.path.join(folder, f"{name}-labels-idx1-ubyte.gz")) as file:
        file.read(8)
        labels = list(file.read())
    return images, labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--steps", type=int, help="stop after so many steps")
    options = parser.parse_args()

    mx.random.seed(0)
    random.seed(0)
    begin = time.perf_counter()
    train = Loader(*read(options.folder, "train"), options.batch, shuffle=True)
    test = Loader(*read(options.folder, "t10k"), options.batch, shuffle=False)
    print(f"read in {time.perf_counter() - begin:.1f} s")

    model = ConvNet(side=train.images.shape[1])
    mx.eval(model.parameters())
    optimizer = optim.Adam(learning_rate=options.rate)

    def loss_and_accuracy(X, y):
        p = model(X)
        loss = mx.mean(nn.losses.nll_loss(p, y))
        return loss, mx.sum(mx.argmax(p, axis=1) == y)

    state = [model.state, optimizer.state, mx.random.state]

    @partial(mx.compile, inputs=state, outputs=state)
    def step(X, y):
        loss_and_grad = nn.value_and_grad(model, loss_and_accuracy)
        (loss, right), grads = loss_and_grad(X, y)
        optimizer.update(model, grads)
        return loss, right

    @partial(mx.compile, inputs=state)
    def classify(X, y):
        return mx.sum(mx.argmax(model(X), axis=1) == y)

    steps = 0
    for epoch in range(options.epochs):
        model.train()
        begin = time.perf_counter()
        total, right, seen = 0.0, 0, 0
        for X, y in train:
            loss, hits = step(X, y)
            mx.eval(state)
            total += loss.item() * y.size
            right += hits.item()
            seen += y.size
            steps += 1
            if steps == 1:
                begin = time.perf_counter()
            if steps == options.steps:
                print(f"steps: {steps - 1} in {time.perf_counter() - begin:.3f} s")
                return
        seconds = time.perf_counter() - begin
        print(f"epoch {epoch}: loss {total / seen:.4f}, accuracy {right / seen:.4f}, {seconds:.1f} s")

    model.eval()
    right = sum(classify(X, y).item() for X, y in test)
    print(f"test accuracy: {right / test.labels.size:.4f}")


if __name__ == "__main__":
    main()
