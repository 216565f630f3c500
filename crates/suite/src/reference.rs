//! What each primitive means, as plain loops over `f64`: nothing of it is shared with a backend.

#![deny(clippy::wildcard_enum_match_arm)]

use cupola_core::Aval;
use cupola_core::prim::{Composite, Elementwise, KernelOp, Op};

use crate::host::Host;
use crate::{
    arg_reduce, attention, binary, call, cast, compare, control, conv, create, dot, fft, gather,
    linalg, mark, movement, norm, pool, quantized, random, reduce, scan, select, sort, unary,
};

/// What `op` gives for `inputs`; `None` where the suite has no reference of its own, because the op
/// is defined by a user.
pub fn reference(op: &Op, inputs: &[Host], outputs: &[Aval]) -> Option<Vec<Host>> {
    if let Op::Call(c) = op {
        return call::reference(c, inputs);
    }
    if let Op::Control(c) = op {
        return control::reference(c, inputs, outputs);
    }
    if let Op::Composite(composite) = op {
        return Some(match composite {
            Composite::Attention(a) => attention::reference(a, inputs, outputs),
            Composite::AttentionGrad(a) => attention::gradient(a, inputs, outputs),
            Composite::BatchNorm(n) => norm::reference(n, inputs, outputs),
            Composite::QuantizedDot(d) => vec![quantized::reference(d, inputs, outputs.first()?)],
        });
    }
    if let Op::Kernel(KernelOp::Linalg(linalg)) = op {
        return Some(linalg::reference(linalg, inputs, outputs));
    }
    Some(vec![output(op, inputs, outputs.first()?)?])
}

/// The output of a primitive that has one.
fn output(op: &Op, inputs: &[Host], out: &Aval) -> Option<Host> {
    let (x, y) = (inputs.first(), inputs.get(1));
    Some(match op {
        Op::Input(_)
        | Op::Composite(_)
        | Op::Call(_)
        | Op::Control(_)
        | Op::Custom(_)
        | Op::Kernel(KernelOp::Linalg(_)) => return None,
        Op::Constant(c) => create::constant(c, out),
        Op::Kernel(KernelOp::Iota(iota)) => create::iota(iota, out),
        Op::Elementwise(Elementwise::Unary(f)) => unary::reference(*f, x?, out),
        Op::Elementwise(Elementwise::Binary(f)) => binary::reference(*f, x?, y?, out),
        Op::Elementwise(Elementwise::Compare(f)) => compare::reference(*f, x?, y?, out),
        Op::Elementwise(Elementwise::Select(_)) => select::reference(inputs, out),
        Op::Elementwise(Elementwise::Cast(c)) => cast::reference(c, x?, out),
        Op::Kernel(KernelOp::Bitcast(b)) => return cast::bitcast(b, x?, out),
        Op::Mark(_) => mark::reference(x?, out),
        Op::Movement(m) => movement::reference(m, inputs, out),
        Op::Reduce(r) => reduce::reference(r, x?, out),
        Op::Kernel(KernelOp::ArgReduce(a)) => arg_reduce::reference(a, x?, out),
        Op::Kernel(KernelOp::Scan(s)) => scan::reference(s, x?, out),
        Op::Kernel(KernelOp::Sort(s)) => sort::reference(s, x?, out),
        Op::Kernel(KernelOp::Gather(g)) => gather::gather(g, inputs, out),
        Op::Kernel(KernelOp::GatherAxis(g)) => gather::gather_axis(g, inputs, out),
        Op::Kernel(KernelOp::Scatter(s)) => gather::scatter(s, inputs),
        Op::Kernel(KernelOp::ScatterAxis(s)) => gather::scatter_axis(s, inputs),
        Op::Kernel(KernelOp::Dot(_)) => dot::reference(x?, y?, out),
        Op::Kernel(KernelOp::Conv(c)) => conv::reference(c, x?, y?, out),
        Op::Kernel(KernelOp::Pool(p)) => pool::reference(p, inputs, out),
        Op::Kernel(KernelOp::Fft(f)) => fft::reference(f, x?, out),
        Op::Kernel(KernelOp::RandomBits(r)) => random::reference(r, x?, out),
    })
}
