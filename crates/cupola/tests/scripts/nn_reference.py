"""Records what PyTorch and MLX compute, for tests/nn_reference.rs.

Run with Python 3.11, torch 2, mlx and numpy: python nn_reference.py > ../reference/nn.json
"""

import json

import mlx.optimizers as mo
import mlx.core as mx
import numpy as np
import torch
import torch.nn.functional as F

torch.manual_seed(0)
rng = np.random.default_rng(0)


def array(x):
    x = x.detach().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)
    flat = [round(float(v), 9) for v in x.ravel()] if x.dtype.kind == "f" else x.ravel().tolist()
    return {"shape": list(x.shape), "data": flat}


def last(x):
    """Channels last."""
    return x.permute(0, *range(2, x.dim()), 1).contiguous() if x.dim() > 2 else x


def layer_case(module, x, options):
    x = x.clone().requires_grad_()
    y = module(x)
    (y * y).sum().mul(0.5).backward()
    transposed = isinstance(module, torch.nn.ConvTranspose2d)

    def weight(w):
        if not transposed:
            return last(w)
        # [in, out/groups, kernel..] as [out, kernel.., in/groups].
        groups = module.groups
        parts = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
        parts = parts.permute(0, 2, 3, 4, 1)
        return parts.reshape(-1, *parts.shape[2:]).contiguous()

    case = {"options": options, "x": array(last(x)), "y": array(last(y)), "dx": array(last(x.grad))}
    if getattr(module, "weight", None) is not None:
        case["weight"] = array(weight(module.weight))
        case["dweight"] = array(weight(module.weight.grad))
    if getattr(module, "bias", None) is not None:
        case["bias"] = array(module.bias)
        case["dbias"] = array(module.bias.grad)
    return case


def layers():
    randn = torch.randn
    nn = torch.nn
    cases = {
        "linear": layer_case(nn.Linear(3, 2), randn(2, 3), {}),
        "conv1d": layer_case(nn.Conv1d(2, 3, 3, stride=2, padding=1), randn(2, 2, 7), {}),
        "conv2d": layer_case(nn.Conv2d(2, 3, 3, padding=1), randn(2, 2, 4, 5), {}),
        "conv2d_grouped": layer_case(
            nn.Conv2d(4, 6, (2, 3), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2),
            randn(1, 4, 5, 6), {}),
        "conv_transpose2d": layer_case(
            nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
            randn(1, 4, 3, 2), {}),
        "max_pool1d": layer_case(nn.MaxPool1d(3, 2, 1), randn(2, 2, 7), {}),
        "max_pool2d": layer_case(nn.MaxPool2d(2), randn(1, 2, 4, 6), {}),
        "avg_pool1d": layer_case(nn.AvgPool1d(3, 2, 1), randn(2, 2, 7), {}),
        "avg_pool2d": layer_case(nn.AvgPool2d((2, 3), (1, 2)), randn(1, 2, 4, 6), {}),
        "layer_norm": layer_case(nn.LayerNorm(5), randn(6, 5) * 3 + 1, {}),
    }
    return cases


def batch_norm():
    module = torch.nn.BatchNorm2d(3)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([0.5, 1.0, -2.0]))
        module.bias.copy_(torch.tensor([0.1, 0.2, 0.3]))
    steps = []
    for i in range(3):
        if i == 2:
            module.eval()
        module.zero_grad()
        x = (torch.randn(2, 3, 2, 3) * (i + 1) + i).requires_grad_()
        y = module(x)
        (y * y * y).sum().backward()
        steps.append({
            "x": array(last(x)), "y": array(last(y)), "dx": array(last(x.grad)),
            "dweight": array(module.weight.grad), "dbias": array(module.bias.grad),
            "mean": array(module.running_mean), "var": array(module.running_var),
        })
    return {"weight": array(module.weight), "bias": array(module.bias), "steps": steps}


def losses():
    x = torch.randn(4, 3)
    t = torch.tensor([2, 0, 1, 1])
    p = torch.softmax(torch.randn(4, 3), -1)
    w = torch.tensor([0.5, 1.0, 2.0])
    a, b = torch.randn(5) * 2, torch.randn(5)
    prob, yes = torch.rand(5), torch.tensor([0.0, 1.0, 1.0, 0.0, 0.25])

    def three(f):
        return [array(f(r)) for r in ("none", "sum", "mean")]

    def grad(f, x):
        x = x.clone().requires_grad_()
        f(x).backward()
        return array(x.grad)

    out = {
        "logits": array(x), "targets": array(t), "probabilities": array(p), "weights": array(w),
        "a": array(a), "b": array(b), "prob": array(prob), "yes": array(yes),
        "nll": three(lambda r: F.nll_loss(F.log_softmax(x, -1), t, reduction=r)),
        "cross_entropy": three(lambda r: F.cross_entropy(x, t, reduction=r)),
        "cross_entropy_smooth": three(
            lambda r: F.cross_entropy(x, t, weight=w, label_smoothing=0.2, reduction=r)),
        "cross_entropy_probabilities": three(
            lambda r: F.cross_entropy(x, p, label_smoothing=0.1, reduction=r)),
        "cross_entropy_grad": grad(
            lambda x: F.cross_entropy(x, t, weight=w, label_smoothing=0.2), x),
        "mse": three(lambda r: F.mse_loss(a, b, reduction=r)),
        "l1": three(lambda r: F.l1_loss(a, b, reduction=r)),
        "huber": three(lambda r: F.huber_loss(a, b, delta=0.7, reduction=r)),
        "huber_grad": grad(lambda a: F.huber_loss(a, b, delta=0.7), a),
        "smooth_l1": three(lambda r: F.smooth_l1_loss(a, b, beta=0.7, reduction=r)),
        "bce": three(lambda r: F.binary_cross_entropy(prob, yes, reduction=r)),
        "bce_logits": three(lambda r: F.binary_cross_entropy_with_logits(a, yes, reduction=r)),
        "bce_logits_grad": grad(lambda a: F.binary_cross_entropy_with_logits(a, yes), a),
        "kl_div": three(
            lambda r: (lambda rows: {"none": rows, "sum": rows.sum(), "mean": rows.mean()}[r])(
                F.kl_div(F.log_softmax(x, -1), p.log(), reduction="none", log_target=True).sum(-1))),
    }
    return out


def optimizers():
    o = torch.optim
    makers = {
        "sgd": lambda p: o.SGD(p, 0.1),
        "sgd_momentum": lambda p: o.SGD(p, 0.1, momentum=0.9, dampening=0.3, weight_decay=0.05),
        "sgd_nesterov": lambda p: o.SGD(p, 0.1, momentum=0.9, nesterov=True),
        "adam": lambda p: o.Adam(p, 0.1),
        "adam_options": lambda p: o.Adam(p, 0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1),
        "adamw": lambda p: o.AdamW(p, 0.1, weight_decay=0.1),
        "rmsprop": lambda p: o.RMSprop(p, 0.05),
        "rmsprop_momentum": lambda p: o.RMSprop(
            p, 0.05, alpha=0.9, momentum=0.8, weight_decay=0.1),
        "adagrad": lambda p: o.Adagrad(p, 0.1, weight_decay=0.1),
    }
    start = torch.tensor([1.0, -2.0, 0.5, 3.0])
    scale = torch.tensor([1.0, 0.1, -3.0, 0.01])
    out = {"start": array(start), "scale": array(scale), "runs": {}}
    for name, make in makers.items():
        p = start.clone().requires_grad_()
        optimizer = make([p])
        steps = []
        for _ in range(5):
            optimizer.zero_grad()
            (torch.sin(p) * scale + 0.5 * scale * p * p).sum().backward()
            optimizer.step()
            steps.append(array(p))
        out["runs"][name] = steps
    # PyTorch has no Lion, and Adam without bias correction is MLX's.
    for name, optimizer in {
        "lion": mo.Lion(0.05, weight_decay=0.1),
        "adam_uncorrected": mo.Adam(0.01),
    }.items():
        p = mx.array(start.numpy())
        s = mx.array(scale.numpy())
        loss = lambda p: (mx.sin(p) * s + 0.5 * s * p * p).sum()
        steps = []
        for _ in range(5):
            p = optimizer.apply_gradients({"p": mx.grad(loss)(p)}, {"p": p})["p"]
            steps.append(array(np.array(p)))
        out["runs"][name] = steps
    return out


def schedules():
    made = {
        "exponential_decay": mo.exponential_decay(0.1, 0.9),
        "step_decay": mo.step_decay(0.1, 0.5, 4),
        "cosine_decay": mo.cosine_decay(0.1, 10, 0.01),
        "linear_schedule": mo.linear_schedule(0.0, 0.1, 6),
        "join_schedules": mo.join_schedules(
            [mo.linear_schedule(0.0, 0.1, 5), mo.cosine_decay(0.1, 10), mo.step_decay(1.0, 0.5, 2)],
            [5, 12]),
    }
    return {
        name: [float(np.array(f(mx.array(i)))) if not isinstance(f(i), float) else f(i)
               for i in range(16)]
        for name, f in made.items()
    }


print(json.dumps({
    "layers": layers(), "batch_norm": batch_norm(), "losses": losses(),
    "optimizers": optimizers(), "schedules": schedules(),
}, separators=(",", ":")))
