"""Image classifiers: a residual network and a vision transformer, trained with augmentation."""

import argparse
import os
import tempfile
from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_flatten, tree_map_with_path, tree_merge, tree_reduce

SIDE, CLASSES = 16, 4
MEAN, STD = mx.array([0.45, 0.42, 0.4]), mx.array([0.25, 0.24, 0.26])


class ShortcutA(nn.Module):
    """Every second pixel, and channels of zeros."""

    def __init__(self, dims):
        super().__init__()
        self.dims = dims

    def __call__(self, x):
        return mx.pad(x[:, ::2, ::2, :], pad_width=[(0, 0), (0, 0), (0, 0), (self.dims // 4, self.dims // 4)])


class BasicBlock(nn.Module):
    def __init__(self, in_dims, dims, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_dims, dims, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm(dims)
        self.conv2 = nn.Conv2d(dims, dims, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm(dims)
        self.shortcut = ShortcutA(dims) if stride != 1 else None

    def __call__(self, x):
        out = nn.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return nn.relu(out + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nn.Module):
    def __init__(self, num_blocks=(1, 1, 1), dims=8, num_classes=CLASSES):
        super().__init__()
        self.conv1 = nn.Conv2d(3, dims, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm(dims)
        self.layer1 = self._make_layer(dims, dims, num_blocks[0], 1)
        self.layer2 = self._make_layer(dims, 2 * dims, num_blocks[1], 2)
        self.layer3 = self._make_layer(2 * dims, 4 * dims, num_blocks[2], 2)
        self.linear = nn.Linear(4 * dims, num_classes)

    def _make_layer(self, in_dims, dims, num_blocks, stride):
        strides = [stride] + [1] * (num_blocks - 1)
        return nn.Sequential(*[BasicBlock(in_dims if i == 0 else dims, dims, s) for i, s in enumerate(strides)])

    def num_params(self):
        return sum(x.size for k, x in tree_flatten(self.parameters()) if "running" not in k)

    def __call__(self, x):
        x = nn.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(mx.mean(x, axis=[1, 2]))


class PatchEmbed(nn.Module):
    def __init__(self, patch=4, dims=32):
        super().__init__()
        self.proj = nn.Conv2d(3, dims, kernel_size=patch, stride=patch)

    def __call__(self, x):
        return mx.flatten(self.proj(x), start_axis=1, end_axis=2)


class VisionBlock(nn.Module):
    def __init__(self, dims, heads, drop):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dims, eps=1e-6), nn.LayerNorm(dims, eps=1e-6)
        self.attn = nn.MultiHeadAttention(dims, heads, bias=True)
        self.fc1, self.fc2 = nn.Linear(dims, 2 * dims), nn.Linear(2 * dims, dims)
        self.gamma = 0.1 * mx.ones((dims,))
        self.drop = nn.Dropout(drop)

    def __call__(self, x):
        y = self.norm1(x)
        x = x + self.gamma * self.drop(self.attn(y, y, y))
        return x + self.gamma * self.drop(self.fc2(nn.gelu_approx(self.fc1(self.norm2(x)))))


class VisionTransformer(nn.Module):
    def __init__(self, dims=32, depth=2, heads=4, drop=0.0, checkpoint=False):
        super().__init__()
        self.patch_embed = PatchEmbed(dims=dims)
        self.cls_token = mx.random.normal((1, 1, dims), scale=0.02)
        self.pos_embed = mx.random.normal((1, 1 + (SIDE // 4) ** 2, dims)) * 0.02
        self.blocks = [VisionBlock(dims, heads, drop) for _ in range(depth)]
        self.norm = nn.LayerNorm(dims, eps=1e-6)
        self.head = nn.Linear(dims, CLASSES)
        self._checkpoint = checkpoint

    def __call__(self, x):
        x = self.patch_embed(x)
        cls = mx.broadcast_to(self.cls_token, (x.shape[0], 1, x.shape[-1]))
        x = mx.concatenate([cls, x], axis=1) + self.pos_embed
        for block in self.blocks:
            x = nn.utils.checkpoint(block)(x) if self._checkpoint else block(x)
        return self.head(self.norm(x)[:, 0])


def pictures(count, seed):
    """Coloured shapes: discs, rings, crosses and stripes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, count)
    y, x = np.mgrid[:SIDE, :SIDE]
    images = rng.uniform(0, 0.3, (count, SIDE, SIDE, 3))
    for image, label in zip(images, labels):
        cy, cx = rng.uniform(5, 11, 2)
        r = np.hypot(y - cy, x - cx)
        mask = [r < 4, abs(r - 4) < 1, (abs(y - cy) < 1) | (abs(x - cx) < 1), (y + int(cx)) % 4 < 2][label]
        image[mask] += rng.uniform(0.3, 0.7, 3)
    return mx.array(images.astype(np.float32)), mx.array(labels.astype(np.int32))


def augment(images, key):
    """Flips, crops after padding, erased squares: one draw for each image."""
    k1, k2, k3, k4 = mx.random.split(key, 4)
    n = images.shape[0]
    flip = mx.random.bernoulli(0.5, (n, 1, 1, 1), key=k1)
    images = mx.where(flip, images[:, :, ::-1, :], images)
    padded = mx.pad(images, [(0, 0), (2, 2), (2, 2), (0, 0)])
    shift = mx.random.randint(0, 5, (n, 2), key=k2)
    rows = shift[:, :1] + mx.arange(SIDE)
    columns = shift[:, 1:] + mx.arange(SIDE)
    images = padded[mx.arange(n)[:, None, None], rows[:, :, None], columns[:, None, :]]
    corner = mx.random.randint(0, SIDE - 4, (n, 2, 1, 1), key=k3)
    at = mx.arange(SIDE)
    inside = (at[None, :, None] >= corner[:, 0]) & (at[None, :, None] < corner[:, 0] + 4)
    inside = inside & (at[None, None, :] >= corner[:, 1]) & (at[None, None, :] < corner[:, 1] + 4)
    bright = mx.random.uniform(0.8, 1.2, (n, 1, 1, 1), key=k4)
    return mx.where(inside[..., None], 0.0, images * bright)


def mixup(images, labels, key, alpha=0.2):
    k1, k2 = mx.random.split(key)
    weight = 1 - alpha * mx.random.uniform(shape=(images.shape[0], 1), key=k1)
    order = mx.random.permutation(images.shape[0], key=k2)
    targets = mx.eye(CLASSES)[labels]
    w = weight[:, :, None, None]
    return w * images + (1 - w) * images[order], weight * targets + (1 - weight) * targets[order]


def train(name, model, optimizer, images, labels, epochs, batch=16):
    def loss_fn(model, x, targets):
        logits = model((x - MEAN) / STD)
        loss = nn.losses.cross_entropy(logits, targets, reduction="mean")
        return loss, mx.mean(mx.argmax(logits, axis=1) == mx.argmax(targets, axis=1))

    state = [model.state, optimizer.state, mx.random.state]

    @partial(mx.compile, inputs=state, outputs=state)
    def step(x, targets):
        (loss, accuracy), grads = nn.value_and_grad(model, loss_fn)(model, x, targets)
        grads, norm = optim.clip_grad_norm(grads, max_norm=2.0)
        optimizer.update(model, grads)
        return loss, accuracy, norm

    model.train()
    key = mx.random.key(7)
    for epoch in range(epochs):
        losses, norms = [], []
        order = np.random.RandomState(epoch).permutation(len(labels))
        for s in range(0, len(order), batch):
            key, k1, k2 = mx.random.split(key, 3)
            at = mx.array(order[s : s + batch])
            x, targets = mixup(augment(images[at], k1), labels[at], k2)
            loss, accuracy, norm = step(x, targets)
            mx.eval(loss, accuracy, norm, state)
            losses.append(loss.item())
            norms.append(norm.item())
        rate = optimizer.learning_rate.item()
        print(f"{name} {epoch} loss {np.mean(losses):.4f} norm {np.mean(norms):.3f} rate {rate:.6f}")


def evaluate(model, images, labels):
    model.eval()
    logits = mx.concatenate([model((x - MEAN) / STD) for x in mx.split(images, 2)])
    losses = nn.losses.cross_entropy(logits, labels, reduction="sum") / labels.size
    top2 = mx.argpartition(-logits, kth=1, axis=-1)[:, :2]
    hits = mx.any(top2 == labels[:, None], axis=-1)
    confusion = mx.zeros((CLASSES, CLASSES), mx.int32).at[labels, logits.argmax(-1)].add(1)
    return losses.item(), mx.sum(hits).item(), confusion


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()
    if args.cpu:
        mx.set_default_device(mx.cpu)
    mx.random.seed(0)
    images, labels = pictures(64, 0)
    held = pictures(32, 1)
    print("data", images.shape, images.dtype, mx.unique(labels, CLASSES).tolist())
    x = augment(images, mx.random.key(3))
    print("augmented", x.shape, f"{x.mean().item():.5f} {x.var().item():.5f}", f"{x[5].sum().item():.3f}")

    resnet = ResNet()
    print("resnet", resnet.num_params(), len(tree_flatten(resnet.trainable_parameters())), len(tree_flatten(resnet.parameters())))
    warm = optim.join_schedules([optim.linear_schedule(0, 0.01, 3), optim.cosine_decay(0.01, 8, 1e-4)], [3])
    train("resnet", resnet, optim.SGD(warm, momentum=0.9, nesterov=True, weight_decay=5e-4), images, labels, args.epochs)
    stats = resnet.layer2.layers[0].bn1
    print("running", f"{stats.running_mean.mean().item():.4f} {stats.running_var.mean().item():.4f}", stats.training)
    loss, hits, confusion = evaluate(resnet, *held)
    print("resnet held out", f"{loss:.3f}", confusion.shape, confusion.sum().item(), hits > 8)

    models = []
    for checkpoint in (False, True):
        mx.random.seed(1)
        vit = VisionTransformer(checkpoint=checkpoint)
        rates = optim.cosine_decay(2e-3, 4 * args.epochs)
        train("vit", vit, optim.AdamW(rates, weight_decay=0.05), images, labels, args.epochs)
        models.append(vit)
        loss, hits, _ = evaluate(vit, *held)
        print("vit held out", f"{loss:.4f}", hits > 8)
    a, b = (dict(tree_flatten(m.parameters())) for m in models)
    print("same", all(mx.allclose(a[k], b[k], rtol=1e-3, atol=1e-4).item() for k in a))

    vit = models[0]
    dropped = VisionTransformer(drop=0.5)
    dropped.load_weights(list(tree_flatten(vit.parameters())))
    dropped.train()
    one, two = (dropped(images[:2]) for _ in range(2))
    print("dropout", not mx.allclose(one, two).item(), dropped.training, dropped.eval().training)
    print("eval", mx.allclose(dropped(images[:2]), vit(images[:2])).item())
    vit.blocks[0].freeze()
    resnet.freeze(keys=["weight"])
    names = [k for k, _ in tree_flatten(resnet.trainable_parameters())]
    print("frozen", len(tree_flatten(vit.trainable_parameters())), names[:3])
    decay = tree_map_with_path(lambda k, p: p.ndim > 1, vit.parameters())
    print("decayed", sum(v for _, v in tree_flatten(decay)), [k for k, v in tree_flatten(decay) if not v][:3])
    sizes = tree_reduce(lambda n, p: n + p.nbytes, resnet.parameters(), 0)
    merged = tree_merge({"a": {"x": mx.zeros(2)}}, {"a": {"y": mx.ones(3)}})
    print("bytes", sizes, [(k, v.shape) for k, v in sorted(tree_flatten(merged))])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "resnet.npz")
        mx.savez(path, **dict(tree_flatten(resnet.parameters())))
        other = ResNet()
        other.load_weights(path)
        other.eval()
        same = mx.array_equal(other(images[:4]), resnet(images[:4])).item()
    print("loaded", same, other.layer3)
    image = mx.clip(images[0] * 255, 0, 255).astype(mx.uint8)
    print("image", image.dtype, image.sum().item(), nn.Upsample(2, mode="cubic")(images[:1]).shape)
    pooled = nn.AvgPool2d(4)(images[:1]) + nn.MaxPool2d(3, stride=4, padding=1)(images[:1])
    print("pooled", pooled.shape, f"{pooled.sum().item():.4f}")


if __name__ == "__main__":
    main()
