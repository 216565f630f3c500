#!/usr/bin/env python3
"""Ten training steps of the article's network in PyTorch, dropout off, in float64.

Prints the losses that `tests/ten_steps.rs` holds. Needs numpy and torch:

    python ten_steps.py

Weights, images and labels come from a formula that both sides compute, so nothing is copied but
the losses. Weights are laid out as Cupola has them: convolutions [out, height, width, in].
"""

import numpy as np
import torch
import torch.nn.functional as F

BATCH, SIDE, STEPS = 8, 28, 10
LAYERS = {
    "conv1": (20, 5, 5, 1),
    "conv2": (50, 5, 5, 20),
    "conv3": (100, 5, 5, 50),
    "linear1": (450, 900),
    "linear2": (225, 450),
    "linear3": (10, 225),
}


def fill(shape, seed, bound):
    """Numbers between -bound and bound: the fractional parts of multiples of the golden ratio."""
    index = np.arange(int(np.prod(shape)), dtype=np.float64)
    walk = (index + 1.0) * 0.6180339887498949 + seed * 0.37
    return ((walk - np.floor(walk)) * 2.0 - 1.0).reshape(shape) * bound


def main():
    weights = {}
    for number, (name, shape) in enumerate(LAYERS.items()):
        bound = float(np.prod(shape[1:])) ** -0.5
        for part, (values, seed) in {"weight": (shape, 2 * number), "bias": (shape[:1], 2 * number + 1)}.items():
            tensor = torch.tensor(fill(values, float(seed), bound).astype(np.float32), dtype=torch.float64)
            weights[f"{name}.{part}"] = tensor.requires_grad_()
    adam = torch.optim.Adam(weights.values(), lr=1e-3)
    for step in range(STEPS):
        images = fill((BATCH, SIDE, SIDE, 1), 100.0, 1.0).astype(np.float32)
        x = torch.tensor(images, dtype=torch.float64).permute(0, 3, 1, 2)
        labels = torch.tensor([(3 * i) % 10 for i in range(BATCH)])
        for name in ("conv1", "conv2", "conv3"):
            kernel = weights[f"{name}.weight"].permute(0, 3, 1, 2)
            x = F.max_pool2d(F.relu(F.conv2d(x, kernel, weights[f"{name}.bias"], padding=2)), 2)
        x = x.permute(0, 2, 3, 1).flatten(1)
        x = F.relu(F.linear(x, weights["linear1.weight"], weights["linear1.bias"]))
        x = F.linear(x, weights["linear2.weight"], weights["linear2.bias"])
        x = F.linear(x, weights["linear3.weight"], weights["linear3.bias"])
        loss = F.nll_loss(F.log_softmax(x, 1), labels)
        adam.zero_grad()
        loss.backward()
        adam.step()
        print(f"    {loss.item():.6f},")


if __name__ == "__main__":
    main()
