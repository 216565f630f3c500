"""The article's network in JAX, with its steps and its forward pass under jit."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from main import Absent


def network(parameters, x, key=None):
    for weight, bias in parameters["convs"]:
        numbers = ("NHWC", "HWIO", "NHWC")
        x = lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=numbers) + bias
        x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.reshape(x.shape[0], -1)
    keys = [None] * 3 if key is None else jax.random.split(key, 3)

    def layer(x, at):
        weight, bias = parameters["linears"][at]
        x = x @ weight + bias
        kept = None if keys[at] is None else jax.random.bernoulli(keys[at], 0.7, x.shape)
        return x if kept is None else jnp.where(kept, x / 0.7, 0)

    return jax.nn.log_softmax(layer(layer(jax.nn.relu(layer(x, 0)), 1), 2))


def initial(task):
    """Weights and biases as the others draw them: uniform, by the number of inputs."""
    features, classes = 100 * (task["side"] // 8) ** 2, task["classes"]
    convs = [(5, 5, a, b) for a, b in ((task["channels"], 20), (20, 50), (50, 100))]
    linears = [(features, features // 2), (features // 2, features // 4), (features // 4, classes)]
    keys = iter(jax.random.split(jax.random.PRNGKey(task["seed"]), 12))

    def layer(shape):
        bound = np.prod(shape[:-1]) ** -0.5
        draw = lambda shape: jax.random.uniform(next(keys), shape, minval=-bound, maxval=bound)
        return draw(shape), draw(shape[-1:])

    return {"convs": [layer(shape) for shape in convs], "linears": [layer(shape) for shape in linears]}


def update(name, rate, parameters, moments, number, gradients):
    """The parameters after a step, and the optimiser's moments."""
    first, second = moments
    each = jax.tree_util.tree_map
    if name == "sgd":
        first = each(lambda m, g: 0.9 * m + g, first, gradients)
        return each(lambda p, m: p - rate * m, parameters, first), (first, second)
    first = each(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = each(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    shrink = 1 - 0.01 * rate if name == "adamw" else 1

    def moved(p, m, v):
        return shrink * p - rate * (m / (1 - 0.9**number)) / (jnp.sqrt(v / (1 - 0.999**number)) + 1e-8)

    return each(moved, parameters, first, second), (first, second)


class Peer:
    def __init__(self, device, task):
        self.version = jax.__version__
        try:
            self.device = jax.devices(device)[0]
        except RuntimeError:
            raise Absent(f"this JAX sees no {device.upper()}") from None
        jax.config.update("jax_default_device", self.device)
        jax.config.update("jax_default_matmul_precision", "tensorfloat32" if task["tf32"] else "float32")
        self.parameters = initial(task)
        # Two trees: a step may take the memory of each for itself.
        zeros = lambda: jax.tree_util.tree_map(jnp.zeros_like, self.parameters)
        self.moments, self.number = (zeros(), zeros()), 0
        self.key = jax.random.PRNGKey(task["seed"] + 1)

        def loss(parameters, x, y, key):
            scores = network(parameters, x, key)
            picked = jnp.take_along_axis(scores, y[:, None], 1)
            return -picked.mean(), (scores.argmax(1) == y).sum()

        @partial(jax.jit, donate_argnums=(0, 1))
        def step(parameters, moments, number, x, y, key):
            found, gradients = jax.value_and_grad(loss, has_aux=True)(parameters, x, y, key)
            parameters, moments = update(
                task["optimizer"], task["learning_rate"], parameters, moments, number, gradients
            )
            return parameters, moments, found

        self.compiled = step
        self.forward = jax.jit(lambda parameters, x: network(parameters, x).argmax(1))

    def placed(self, x, y):
        return jax.block_until_ready((jnp.asarray(x), jnp.asarray(y)))

    def train(self, _):
        pass

    def step(self, x, y):
        self.number += 1
        key = jax.random.fold_in(self.key, self.number)
        self.parameters, self.moments, (loss, hits) = self.compiled(
            self.parameters, self.moments, jnp.float32(self.number), x, y, key
        )
        jax.block_until_ready(self.parameters)
        return loss, hits

    def classes(self, x):
        return self.forward(self.parameters, x)

    def read(self, array):
        return np.asarray(array)

    def wait(self, arrays):
        jax.block_until_ready(arrays)
