"""Small models as functions: a flow, a graph network, a policy, pictures with words; maps and slopes."""

import math
from collections import namedtuple
from functools import partial
from typing import List, NamedTuple

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_flatten, tree_map, tree_unflatten


def show(name, *values):
    texts = []
    for v in values:
        v = v.flatten().tolist() if isinstance(v, mx.array) else [v]
        texts.append(" ".join(f"{x:.4f}" if isinstance(x, float) else str(x) for x in v))
    print(name, ", ".join(texts))


# A flow of affine couplings.


class Coupling(nn.Module):
    def __init__(self, dims, hidden, mask):
        super().__init__()
        self._mask = mask
        self.net = nn.Sequential(nn.Linear(dims, hidden), nn.Tanh(), nn.Linear(hidden, 2 * dims))
        self.net.layers[-1].weight = self.net.layers[-1].weight * 0.1

    def __call__(self, x):
        s, t = mx.split(self.net(x * self._mask), 2, axis=-1)
        s = mx.tanh(s) * (1 - self._mask)
        return self._mask * x + (1 - self._mask) * (x * mx.exp(s) + t), s.sum(axis=-1)

    def inverse(self, y):
        s, t = mx.split(self.net(y * self._mask), 2, axis=-1)
        s = mx.tanh(s) * (1 - self._mask)
        return self._mask * y + (1 - self._mask) * (y - t) * mx.exp(-s)


class Flow(nn.Module):
    def __init__(self, layers=4, dims=2, hidden=16):
        super().__init__()
        self.layers = [Coupling(dims, hidden, (mx.arange(dims) + i) % 2) for i in range(layers)]

    def log_prob(self, x):
        total = mx.zeros(x.shape[0])
        for layer in self.layers:
            x, log_det = layer(x)
            total += log_det
        return total - 0.5 * (x.square() + math.log(2 * math.pi)).sum(axis=-1)

    def sample(self, key, count):
        x = mx.random.normal((count, 2), key=key)
        for layer in reversed(self.layers):
            x = layer.inverse(x)
        return x


def moons(count, key):
    k1, k2, k3 = mx.random.split(key, 3)
    angle = math.pi * mx.random.uniform(shape=(count,), key=k1)
    side = mx.where(mx.random.bernoulli(0.5, (count,), key=k2), 1.0, -1.0)
    points = mx.stack([mx.cos(angle) * side + 0.5 * side, mx.sin(angle) * side], axis=1)
    return points + 0.1 * mx.random.normal(points.shape, key=k3)


def flow():
    model = Flow()
    optimizer = optim.Adamax(learning_rate=optim.step_decay(2e-2, 0.5, 10))
    step = nn.value_and_grad(model, lambda x: -model.log_prob(x).mean())
    losses = []
    for key in mx.random.split(mx.random.key(0), 16):
        loss, grads = step(moons(64, key))
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        losses.append(loss)
    show("flow", mx.stack(losses[::5]))
    x = moons(5, mx.random.key(9))
    z = x
    for layer in model.layers:
        z, _ = layer(z)
    for layer in model.layers[::-1]:
        z = layer.inverse(z)
    print("inverse", mx.allclose(x, z, atol=1e-4).item())

    def through(point):
        for layer in model.layers:
            point, _ = layer(point)
        return point

    rows = [mx.vjp(through, [x[0]], [row])[1][0] for row in mx.eye(2)]
    jacobian = mx.stack(rows)
    det = jacobian[0, 0] * jacobian[1, 1] - jacobian[0, 1] * jacobian[1, 0]
    log_dets = sum(layer(p)[1] for layer, p in _path(model, x[:1]))
    show("determinant", mx.log(mx.abs(det)), log_dets)
    many = mx.vmap(lambda p, d: mx.jvp(through, [p], [d])[1][0], in_axes=(0, None))(x, mx.array([1.0, 0.0]))
    show("directions", many[:2])
    show("sample", model.sample(mx.random.key(3), 2))


def _path(model, x):
    for layer in model.layers:
        yield layer, x
        x, _ = layer(x)


# A graph network.

Graph = namedtuple("Graph", ["nodes", "senders", "receivers"])


class GraphConv(nn.Module):
    def __init__(self, in_dims, out_dims):
        super().__init__()
        self.message = nn.Bilinear(in_dims, in_dims, out_dims)
        self.update_ = nn.Linear(in_dims + out_dims, out_dims)

    def __call__(self, graph):
        x, s, r = graph
        messages = self.message(x[s], x[r])
        summed = mx.zeros((x.shape[0], messages.shape[-1])).at[r].add(messages)
        degree = mx.zeros((x.shape[0], 1)).at[r].add(1)
        extremes = mx.full(summed.shape, -math.inf).at[r].maximum(messages)
        extremes = mx.where(mx.isinf(extremes), 0, extremes)
        pooled = summed / mx.maximum(degree, 1) + 0.1 * extremes
        return graph._replace(nodes=nn.elu(self.update_(mx.concatenate([x, pooled], axis=-1))))


def edge_softmax(scores, receivers, count):
    most = mx.full((count,), -1e9).at[receivers].maximum(scores)
    weights = mx.exp(scores - most[receivers])
    return weights / mx.zeros((count,)).at[receivers].add(weights)[receivers]


def graphs():
    rng = np.random.default_rng(0)
    n = 24
    edges = np.array([(i, j) for i in range(n) for j in range(n) if i != j and (i // 8 == j // 8 and rng.random() < 0.5 or rng.random() < 0.03)])
    graph = Graph(mx.random.normal((n, 6)), mx.array(edges[:, 0]), mx.array(edges[:, 1]))
    labels = mx.arange(n) // 8
    layers = nn.Sequential(GraphConv(6, 12), GraphConv(12, 3))
    print("graph", graph.senders.shape, graph.senders.dtype, [k for k, _ in tree_flatten(layers.parameters())][:3])
    known = mx.array([0, 1, 8, 9, 16, 17])

    def loss_fn(model, graph):
        logits = model(graph).nodes
        return nn.losses.cross_entropy(logits[known], labels[known], reduction="mean")

    optimizer = optim.RMSprop(learning_rate=1e-2)
    losses = []
    step = nn.value_and_grad(layers, loss_fn)
    for _ in range(12):
        loss, grads = step(layers, graph)
        optimizer.update(layers, grads)
        mx.eval(layers.state, optimizer.state, loss)
        losses.append(loss)
    show("losses", mx.stack(losses[::4]))
    weights = edge_softmax(mx.cos(mx.arange(graph.senders.size).astype(mx.float32)), graph.receivers, n)
    show("edges", weights[:4], weights.sum())
    adjacency = mx.zeros((n, n)).at[graph.receivers, graph.senders].add(1.0)
    ranks = mx.ones((n,)) / n
    for _ in range(10):
        ranks = 0.15 / n + 0.85 * (adjacency / mx.maximum(adjacency.sum(axis=0), 1)) @ ranks
    show("ranks", mx.sort(ranks)[-3:], mx.argmax(ranks))
    laplacian = mx.diag(adjacency.sum(axis=1)) - 0.5 * (adjacency + adjacency.T)
    values, vectors = mx.linalg.eigh(laplacian, stream=mx.cpu)
    show("spectrum", values[:3] + 1.0, mx.abs(vectors[:, 0]).sum())


# A policy on a small walk.


class State(NamedTuple):
    at: mx.array
    done: mx.array


def reinforce():
    policy = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = optim.Adam(learning_rate=1e-2)

    def features(at):
        return mx.stack([at / 5, mx.abs(at) / 5], axis=-1)

    def advance(state, action):
        at = mx.clip(state.at + action.astype(mx.float32) - 1, -5, 5)
        reward = mx.where(state.done, 0.0, mx.where(at >= 4, 1.0, -0.05))
        return State(at, state.done | (at >= 4)), reward

    def rollout(key, count=32, steps=8):
        state = State(mx.zeros((count,)), mx.zeros((count,), dtype=mx.bool_))
        seen, actions, rewards = [], [], []
        for k in mx.random.split(key, steps):
            x = features(state.at)
            action = mx.random.categorical(policy(x), key=k)
            state, reward = advance(state, action)
            seen.append(x), actions.append(action), rewards.append(reward)
        rewards = mx.stack(rewards)
        returns = mx.cumsum(rewards, axis=0, reverse=True)
        return mx.stack(seen), mx.stack(actions), returns

    def loss_fn(x, actions, returns):
        logprobs = nn.log_softmax(policy(x), axis=-1)
        taken = mx.take_along_axis(logprobs, actions[..., None].astype(mx.int32), axis=-1).squeeze(-1)
        advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
        entropy = -(mx.exp(logprobs) * logprobs).sum(axis=-1).mean()
        return -(taken * mx.stop_gradient(advantage)).mean() - 0.01 * entropy

    step = nn.value_and_grad(policy, loss_fn)
    means = []
    for key in mx.random.split(mx.random.key(1), 10):
        x, actions, returns = rollout(key)
        loss, grads = step(x, actions, returns)
        optimizer.update(policy, grads)
        mx.eval(policy.parameters(), optimizer.state)
        means.append(returns[0].mean())
    show("returns", mx.stack(means[::3]), loss)
    print("actions", policy(features(mx.arange(-3, 4).astype(mx.float32))).argmax(-1).tolist())


# Pictures and words in one space.


def contrastive():
    class Towers(nn.Module):
        def __init__(self):
            super().__init__()
            self.image, self.text = nn.Linear(20, 8, bias=False), nn.Embedding(10, 8)
            self.logit_scale = mx.array(math.log(1 / 0.07))

        def __call__(self, images, words):
            a, b = self.image(images), self.text(words).mean(axis=1)
            a, b = (v / mx.linalg.norm(v, axis=-1, keepdims=True) for v in (a, b))
            return mx.exp(mx.minimum(self.logit_scale, math.log(100))) * a @ b.T

    model = Towers()
    basis = mx.random.normal((10, 20), key=mx.random.key(8))

    def loss_fn(model, images, words):
        logits = model(images, words)
        targets = mx.arange(len(images))
        losses = [nn.losses.cross_entropy(l, targets, reduction="mean") for l in (logits, logits.T)]
        return sum(losses) / 2, (logits.argmax(axis=1) == targets).mean()

    optimizer = optim.AdaDelta(learning_rate=5.0)
    step = nn.value_and_grad(model, loss_fn)
    for i, key in enumerate(mx.random.split(mx.random.key(2), 12)):
        words = mx.sort(mx.random.randint(0, 10, (16, 3), key=key), axis=1)
        (loss, accuracy), grads = step(model, basis[words].sum(axis=1), words)
        optimizer.update(model, grads)
        mx.eval(model, optimizer.state)
        if i % 4 == 0:
            show("contrast", loss, mx.exp(model.logit_scale))


# Slopes of slopes, maps of maps, and functions in files.


def transforms():
    def f(x):
        return mx.sin(x) * x**3

    second = mx.grad(mx.grad(f))
    x = mx.linspace(0.5, 2.0, 4)
    show("second", mx.vmap(second)(x), mx.vmap(mx.grad(mx.grad(mx.grad(f))))(x[:2]))
    hessian = mx.vmap(
        lambda v, p: mx.jvp(mx.grad(lambda q: mx.square(q).sum() * mx.exp(q).sum()), [p], [v])[1][0], in_axes=(0, None)
    )(mx.eye(3), mx.array([1.0, 2.0, 0.5]))
    show("hessian", hessian)
    params = {"w": [mx.ones((3, 2)), mx.zeros(2)], "s": mx.array(2.0)}

    def net(params, x, *, power=2):
        w, b = params["w"]
        return ((x @ w + b) * params["s"]) ** power

    value, grads = mx.value_and_grad(lambda p, x: net(p, x, power=3).sum())(params, mx.ones((2, 3)) * 0.5)
    show("tree", value, *[g for _, g in tree_flatten(grads)])
    each = mx.vmap(mx.grad(lambda p, x: net(p, x).sum()), in_axes=(None, 0))(params, mx.arange(6.0).reshape(2, 3))
    print("each", tree_map(lambda g: g.shape, each))
    ensemble = mx.vmap(lambda w, x: mx.tanh(x @ w), in_axes=(0, None), out_axes=1)
    print("ensemble", ensemble(mx.random.normal((5, 3, 2)), mx.ones((4, 3))).shape)
    outer = mx.vmap(mx.vmap(lambda a, b: a * b, in_axes=(None, 0)), in_axes=(0, None))
    show("outer", outer(mx.arange(3), mx.arange(2)))
    picked = mx.vmap(lambda row, i: mx.take(row, i), in_axes=(0, 0))(mx.arange(12).reshape(3, 4), mx.array([3, 0, 2]))
    show("picked", picked)
    a = mx.zeros((4, 3)).at[mx.array([0, 2, 0]), 1].add(mx.array([1.0, 2.0, 3.0]))
    a = a.at[1:3].multiply(2).at[..., 0].subtract(1).at[3, ::2].minimum(-5).at[0].divide(2)
    show("scattered", a)
    a[a < 0] = 0.5
    a[mx.array([1, 3]), :2] = mx.array([[7.0, 8.0], [9.0, 10.0]])
    show("assigned", a)
    slope = mx.grad(lambda v: mx.zeros((3,)).at[mx.array([0, 1, 0, 2])].add(v**2).prod())(mx.array([1.0, 2.0, 3.0, 0.5]))
    show("scatter slope", slope)
    keys = mx.random.split(mx.random.key(5), 3)
    show("keys", mx.vmap(lambda k: mx.random.uniform(key=k))(keys), keys[0])
    show("drawn", mx.random.truncated_normal(-1, 1, (3,), key=keys[1]), mx.random.laplace((2,), key=keys[2]))
    roots = x
    for _ in range(6):
        roots = roots - (roots**2 - 2) / mx.vmap(mx.grad(lambda r: r**2 - 2))(roots)
    show("roots", roots)
    m = mx.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
    with mx.stream(mx.cpu):
        inverse, (q, r) = mx.linalg.inv(m), mx.linalg.qr(m)
        u, s, vt = mx.linalg.svd(m)
        show("linalg", mx.diag(inverse), mx.abs(mx.diag(r)), s, mx.linalg.cholesky(m).sum())
        print("product", mx.allclose((u * s) @ vt, m, atol=1e-5).item(), mx.allclose(q @ r, m, atol=1e-5).item())
    show("einsum", mx.einsum("ij,jk,ki->", m, m, m), mx.einsum("bi,bj->bij", x[None], x[None]).sum())
    show("conv", mx.convolve(mx.arange(5.0), mx.array([1.0, 0.0, -1.0]), mode="same"))
    show("logic", mx.where(mx.isnan(mx.array([1.0, math.nan])), 0, 1), mx.logical_xor(x > 1, x < 2).sum())


def main():
    mx.random.seed(4)
    print(mx.default_device().type == mx.cpu, isinstance(mx.default_stream(mx.default_device()), mx.Stream))
    for part in (flow, graphs, reinforce, contrastive, transforms):
        part()
    mx.reset_peak_memory()
    big = mx.ones((256, 256)) + 1
    mx.eval(big)
    print("peak", mx.get_peak_memory() >= big.nbytes, big.itemsize, big.nbytes)
    del big
    mx.clear_cache()
    print("cache", mx.get_cache_memory())
    print(mx.array([[1.5, -2.0], [0.25, 1e-7]]), mx.array([True, False]), mx.array(3, mx.uint8), mx.array([1 + 2j]))
    print(repr(mx.arange(2000))[:60], mx.float32, mx.array([1, 2], dtype=mx.int64).dtype)


if __name__ == "__main__":
    main()
