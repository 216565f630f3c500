"""What the tests share: MLX as an oracle, next to Cupola.

With CUPOLA_STAND_IN set, mlx.core takes the place of cupola.core, so that the layers above it can be
compared with MLX's own bit for bit.
"""

import os
import sys
import types

if os.environ.get("CUPOLA_STAND_IN"):
    import mlx.core
    import mlx.nn

    stand_in = types.ModuleType("cupola.core")
    stand_in.__dict__.update({k: v for k, v in vars(mlx.core).items() if not k.startswith("__")})

    def _pool(kind):
        def pool(x, window, stride, padding):
            return getattr(mlx.nn, f"{kind}Pool{x.ndim - 2}d")(window, stride, padding)(x)

        return pool

    stand_in._nn = types.SimpleNamespace(**vars(mlx.nn))
    stand_in._nn.max_pool, stand_in._nn.avg_pool = _pool("Max"), _pool("Avg")
    sys.modules["cupola.core"] = stand_in
    import cupola

    cupola.core = stand_in
