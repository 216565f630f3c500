"""Attention whose size a device's library takes on, against float32 and against itself."""

import os

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
