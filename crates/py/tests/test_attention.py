"""Attention whose size a device's library takes on, against float32 and against itself; and of few queries."""

import os

import numpy as np
import pytest

import cupola.core as mx

DEVICE = os.environ.get("CUPOLA_TEST_DEVICE", "cpu")

# Enough multiplications for it, with lengths that are no multiple of a tile.
SIZES = [
    (2, 16, 16, 2048, 2048, 64),
    (1, 32, 32, 1500, 1500, 128),
    (2, 32, 8, 1000, 1200, 128),
]


def made(batch, heads, length, features, dtype, lies):
    """Numbers `[batch, heads, length, features]` that lie in memory as `lies` says."""
    if lies == "tokens":
        return mx.random.normal((batch, length, heads, features)).astype(dtype).transpose(0, 2, 1, 3)
    if lies == "between":
        # Rows far enough apart, that begin at no multiple of 16 bytes.
        return mx.random.normal((batch, heads, length, features + 8)).astype(dtype)[..., 4 : features + 4]
    return mx.random.normal((batch, heads, length, features)).astype(dtype)


@pytest.mark.skipif(DEVICE != "cuda", reason="large, for cuDNN: the suite has sizes of all kinds for every device")
@pytest.mark.parametrize("lies", ["heads", "tokens", "between"])
@pytest.mark.parametrize("mask", [None, "causal"])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16])
def test_large_attention(sizes, mask, lies, dtype):
    batch, heads, groups, queries, keys, features = sizes
    mx.random.seed(3)
    given = [
        made(batch, n, length, features, dtype, lies)
        for n, length in [(heads, queries), (groups, keys), (groups, keys), (heads, queries)]
    ]
    mx.eval(given)

    def attend(q, k, v):
        return mx.fast.scaled_dot_product_attention(q, k, v, scale=features**-0.5, mask=mask)

    def both(given):
        *inputs, cotangent = given
        outputs, gradients = mx.vjp(attend, inputs, [cotangent])
        mx.eval(outputs, gradients)
        return [*outputs, *gradients]

    found, again = both(given), both(given)
    assert all(mx.array_equal(a, b).item() for a, b in zip(found, again))
    alone = attend(*given[:3])
    assert mx.array_equal(alone, found[0]).item()
    for have, want in zip(found, both([x.astype(mx.float32) for x in given])):
        assert have.dtype == dtype and have.shape == want.shape
        apart = mx.max(mx.abs(have.astype(mx.float32) - want)) / mx.max(mx.abs(want))
        assert apart.item() < (2e-3 if dtype == mx.float16 else 1e-2)


# Batch, heads, heads of keys, queries, keys, features, values.
FEW = [
    (1, 1, 1, 1, 1, 1, 1),
    (1, 12, 12, 1, 100, 64, 64),
    (2, 8, 2, 1, 77, 64, 32),
    (1, 8, 1, 2, 700, 96, 80),
    (2, 4, 4, 4, 33, 65, 65),
    (1, 4, 4, 1, 9, 256, 256),
    (3, 6, 2, 5, 1300, 128, 128),
    (1, 2, 2, 3, 2, 40, 7),
]


@pytest.mark.parametrize("lies", ["heads", "tokens", "between"])
@pytest.mark.parametrize("mask", [None, "causal", "bool", "float", "hidden"])
@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
@pytest.mark.parametrize("sizes", FEW)
def test_few_queries(sizes, dtype, mask, lies):
    batch, heads, groups, queries, keys, features, values = sizes
    if mask == "causal" and queries > keys:
        pytest.skip("MLX says nothing of queries before all keys")
    mx.random.seed(5)
    q, k, v = (
        made(batch, n, length, wide, dtype, lies)
        for n, length, wide in [(heads, queries, features), (groups, keys, features), (groups, keys, values)]
    )
    rng = np.random.default_rng(7)
    seen = np.ones((1, 1, queries, keys), bool)
    added = np.zeros((batch, 1, 1, keys), np.float32)
    if mask == "causal":
        given, seen = mask, np.tril(seen, keys - queries)
    elif mask == "bool":
        seen = rng.random((batch, heads, queries, keys)) < 0.6
        seen[..., 0] = True
        given = mx.array(seen)
    elif mask == "float":
        added = rng.standard_normal((batch, 1, 1, keys)).astype(np.float32)
        given = mx.array(added).astype(dtype)
        added = np.array(given.astype(mx.float32))
    elif mask == "hidden":
        # Rows that see nothing weigh all alike.
        seen = rng.random((batch, heads, queries, keys)) < 0.5
        seen[:, 0] = False
        given = mx.array(seen)
    else:
        given = None
    sinks = mx.random.normal((heads,)).astype(dtype) if mask != "hidden" else None
    scale = features**-0.5
    wide = [np.array(x.astype(mx.float32)).astype(np.float64) for x in (q, k, v)]
    many = [np.repeat(x, heads // groups, 1) for x in wide[1:]]
    scores = np.where(seen, scale * wide[0] @ many[0].swapaxes(-1, -2) + added, -1e30)
    for with_sinks in (False, True) if sinks is not None else (False,):
        last = np.array(sinks.astype(mx.float32))[:, None, None] if with_sinks else -np.inf
        most = np.maximum(scores.max(-1, keepdims=True), last)
        weights = np.exp(scores - most)
        total = weights.sum(-1, keepdims=True) + (np.exp(last - most) if with_sinks else 0)
        want = weights / total @ many[1]
        found = mx.fast.scaled_dot_product_attention(
            q, k, v, scale=scale, mask=given, sinks=sinks if with_sinks else None
        )
        assert found.dtype == dtype
        apart = np.abs(np.array(found.astype(mx.float32)) - want).max() / max(np.abs(want).max(), 1e-30)
        assert apart < {mx.float32: 1e-5, mx.float16: 2e-3, mx.bfloat16: 1.5e-2}[dtype]
