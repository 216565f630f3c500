//! What each primitive means, as plain loops over `f64`: nothing of it is shared with a backend.

use cupola_core::prim::{
    Binary, Compare, Conv, ConvRole, Gather, Movement, Op, Pool, PoolRole, RandomBits, Reduce,
    ReduceKind, Scan, ScanKind, Scatter, ScatterMode, Unary,
};
use cupola_core::{Array, Aval, DType, Shape};
use num_complex::Complex64;

use super::host::{Host, flat, indices, round_to};

fn real(v: f64) -> Complex64 {
    Complex64::new(v, 0.0)
}

/// What `op` gives for `inputs`; `None` where the suite has no reference of its own, because the op
/// is defined by a graph or by a user.
pub fn reference(op: &Op, inputs: &[Host], out: &Aval) -> Option<Host> {
    let dtype = out.dtype;
    let map = |f: &dyn Fn(usize) -> Complex64| Host::from_fn(out.clone(), f);
    let at = |input: usize, i: usize| inputs[input].data[i];
    Some(match op {
        Op::Input(_) | Op::Call(_) | Op::Custom(_) => return None,
        Op::Constant(c) => map(&|_| match c.value {
            cupola_core::Scalar::Complex(re, im) => Complex64::new(re.into(), im.into()),
            other => real(other.to_f64()),
        }),
        Op::Iota(iota) => {
            let all: Vec<_> = indices(&out.shape).collect();
            map(&|i| real(all[i][iota.axis] as f64))
        }
        // Not rounded again: f64 holds it only as 2⁶⁴, which would wrap.
        Op::Unary(Unary::Invert) if dtype == DType::U64 => {
            let data = inputs[0].data.iter().map(|v| unary(Unary::Invert, *v, dtype)).collect();
            Host { aval: out.clone(), data }
        }
        Op::Unary(f) => map(&|i| unary(*f, at(0, i), inputs[0].aval.dtype)),
        Op::Binary(f) => map(&|i| binary(*f, at(0, i), at(1, i), dtype)),
        Op::Compare(f) => map(&|i| truth(compare(*f, at(0, i), at(1, i)))),
        Op::Select(_) => map(&|i| if at(0, i).re != 0.0 { at(1, i) } else { at(2, i) }),
        // Not rounded again where it saturates: f64 holds 2⁶³ − 1 as one more, which would wrap.
        Op::Cast(c) if inputs[0].aval.dtype.is_inexact() && c.to.is_integer() => {
            let data = inputs[0].data.iter().map(|v| cast(*v, c.to)).collect();
            Host { aval: out.clone(), data }
        }
        Op::Cast(_) => map(&|i| at(0, i)),
        // Arrays that lie in host memory: reading and writing their bytes asks no backend.
        Op::Bitcast(b) => {
            let bytes = inputs[0].to_array().and_then(|x| x.to_bytes()).ok()?;
            let same = Array::from_bytes(&bytes, b.to, out.shape.clone()).ok()?;
            Host::of_array(&same).ok()?
        }
        Op::Mark(_) => map(&|i| at(0, i)),
        Op::Movement(m) => movement(m, inputs, out),
        Op::Reduce(r) => reduce(r, &inputs[0], out),
        Op::ArgReduce(a) => lanes(&inputs[0], a.axis, out, |lane| {
            let better =
                |x: f64, y: f64| x.is_nan() && !y.is_nan() || if a.max { x > y } else { x < y };
            let mut best = 0;
            for i in 1..lane.len() {
                if better(lane[i].re, lane[best].re) {
                    best = i;
                }
            }
            vec![real(best as f64)]
        }),
        Op::Scan(s) => lanes(&inputs[0], s.axis, out, |lane| scan(s, lane, dtype)),
        Op::Sort(s) => lanes(&inputs[0], s.axis, out, |lane| {
            let mut order: Vec<usize> = (0..lane.len()).collect();
            let key = |i: usize| lane[i].re;
            order.sort_by(|&i, &j| {
                key(i)
                    .is_nan()
                    .cmp(&key(j).is_nan())
                    .then(key(i).partial_cmp(&key(j)).unwrap_or(std::cmp::Ordering::Equal))
            });
            order.into_iter().map(|i| if s.indices { real(i as f64) } else { lane[i] }).collect()
        }),
        Op::Gather(g) => gather(g, inputs, out),
        Op::Scatter(s) => scatter(s, inputs),
        Op::GatherAxis(g) => {
            let all: Vec<_> = indices(&out.shape).collect();
            map(&|i| {
                let mut index = all[i].clone();
                index[g.axis] = at(1, i).re as usize;
                inputs[0].data[flat(&inputs[0].aval.shape, &index)]
            })
        }
        Op::ScatterAxis(s) => {
            let mut result = inputs[0].clone();
            for (i, mut index) in indices(&inputs[2].aval.shape).enumerate() {
                index[s.axis] = at(2, i).re as usize;
                let place = flat(&result.aval.shape, &index);
                result.data[place] = join(s.mode, result.data[place], at(1, i), dtype);
            }
            result
        }
        Op::Dot(_) => dot(&inputs[0], &inputs[1], out),
        Op::Conv(c) => conv(c, &inputs[0], &inputs[1], out),
        Op::Pool(p) => pool(p, inputs, out),
        Op::RandomBits(r) => random_bits(r, &inputs[0], out),
    })
}

fn unary(f: Unary, x: Complex64, dtype: DType) -> Complex64 {
    let v = x.re;
    if dtype == DType::C64 {
        match f {
            Unary::Neg => return -x,
            Unary::Abs => return real(x.norm()),
            Unary::Square => return x * x,
            Unary::Exp => return x.exp(),
            Unary::Conj => return x.conj(),
            Unary::Real => return real(x.re),
            Unary::Imag => return real(x.im),
            _ => {}
        }
    }
    real(match f {
        Unary::Neg => -v,
        Unary::Abs => v.abs(),
        Unary::Sign if v == 0.0 || v.is_nan() => v,
        Unary::Sign => v.signum(),
        Unary::Square => v * v,
        Unary::Floor => v.floor(),
        Unary::Ceil => v.ceil(),
        Unary::Round => v.round_ties_even(),
        Unary::Sqrt => v.sqrt(),
        Unary::Rsqrt => 1.0 / v.sqrt(),
        Unary::Exp => v.exp(),
        Unary::Expm1 => v.exp_m1(),
        Unary::Log => v.ln(),
        Unary::Log2 => v.log2(),
        Unary::Log10 => v.log10(),
        Unary::Log1p => v.ln_1p(),
        Unary::Sin => v.sin(),
        Unary::Cos => v.cos(),
        Unary::Tan => v.tan(),
        Unary::Asin => v.asin(),
        Unary::Acos => v.acos(),
        Unary::Atan => v.atan(),
        Unary::Sinh => v.sinh(),
        Unary::Cosh => v.cosh(),
        Unary::Tanh => v.tanh(),
        Unary::Asinh => v.asinh(),
        Unary::Acosh => v.acosh(),
        Unary::Atanh => v.atanh(),
        Unary::Sigmoid => 1.0 / (1.0 + (-v).exp()),
        Unary::Erf => libm::erf(v),
        Unary::ErfInv => erf_inverse(v),
        Unary::Not => truth(v == 0.0).re,
        Unary::Invert if dtype.is_signed() => -v - 1.0,
        Unary::Invert => 2f64.powi(8 * dtype.size() as i32) - 1.0 - v,
        Unary::Conj | Unary::Real | Unary::Imag => v,
    })
}

/// By bisection: slow and sure.
fn erf_inverse(y: f64) -> f64 {
    if y.abs() >= 1.0 || y.is_nan() {
        return if y.abs() == 1.0 { y * f64::INFINITY } else { f64::NAN };
    }
    let (mut low, mut high) = (-7.0f64, 7.0f64);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if libm::erf(middle) < y { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

fn binary(f: Binary, x: Complex64, y: Complex64, dtype: DType) -> Complex64 {
    match (f, dtype) {
        (Binary::Add, _) => return x + y,
        (Binary::Sub, _) => return x - y,
        (Binary::Mul, DType::C64) => return x * y,
        (Binary::Div, DType::C64) => return x / y,
        _ => {}
    }
    let (a, b) = (x.re, y.re);
    let integer = dtype.is_integer();
    let (i, j) = (a as i128, b as i128);
    let bits = 8 * dtype.size() as i128;
    real(match f {
        Binary::Add | Binary::Sub | Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::FloorDivide | Binary::Remainder if integer && j == 0 => 0.0,
        Binary::FloorDivide if integer => (i as f64 / j as f64).floor(),
        Binary::FloorDivide => (a / b).floor(),
        Binary::Remainder => {
            let rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
        }
        Binary::Power if integer => wrapping_power(i, j) as f64,
        Binary::Power => a.powf(b),
        Binary::Maximum => {
            if a.is_nan() || a > b {
                a
            } else {
                b
            }
        }
        Binary::Minimum => {
            if a.is_nan() || a < b {
                a
            } else {
                b
            }
        }
        Binary::Atan2 => a.atan2(b),
        Binary::LogAddExp if a == b => a + std::f64::consts::LN_2,
        Binary::LogAddExp if a.is_nan() || b.is_nan() => f64::NAN,
        Binary::LogAddExp => a.max(b) + (-(a - b).abs()).exp().ln_1p(),
        Binary::BitAnd => (i & j) as f64,
        Binary::BitOr => (i | j) as f64,
        Binary::BitXor => (i ^ j) as f64,
        Binary::ShiftLeft if j < 0 || j >= bits => 0.0,
        Binary::ShiftLeft => (i << j) as f64,
        Binary::ShiftRight if j < 0 || j >= bits => {
            if i < 0 {
                -1.0
            } else {
                0.0
            }
        }
        Binary::ShiftRight => (i >> j) as f64,
    })
}

fn wrapping_power(base: i128, exponent: i128) -> i128 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 => {
                if exponent % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        };
    }
    (0..exponent).fold(1i128, |p, _| p.wrapping_mul(base))
}

fn compare(f: Compare, x: Complex64, y: Complex64) -> bool {
    match f {
        Compare::Eq => x == y,
        Compare::Ne => x != y,
        Compare::Lt => x.re < y.re,
        Compare::Le => x.re <= y.re,
        Compare::Gt => x.re > y.re,
        Compare::Ge => x.re >= y.re,
    }
}

/// A float as an integer: towards zero, and saturating.
fn cast(v: Complex64, to: DType) -> Complex64 {
    let (low, high) = match to.is_signed() {
        true => (-2f64.powi(8 * to.size() as i32 - 1), 2f64.powi(8 * to.size() as i32 - 1) - 1.0),
        false => (0.0, 2f64.powi(8 * to.size() as i32) - 1.0),
    };
    real(if v.re.is_nan() { 0.0 } else { v.re.trunc().clamp(low, high) })
}

fn movement(m: &Movement, inputs: &[Host], out: &Aval) -> Host {
    let x = &inputs[0];
    let from = |f: &dyn Fn(&[usize]) -> Vec<usize>| {
        let all: Vec<_> = indices(&out.shape).collect();
        Host::from_fn(out.clone(), |i| x.data[flat(&x.aval.shape, &f(&all[i]))])
    };
    match m {
        Movement::Reshape(_)
        | Movement::Flatten { .. }
        | Movement::Unflatten { .. }
        | Movement::Squeeze(_)
        | Movement::ExpandDims(_) => Host { aval: out.clone(), data: x.data.clone() },
        Movement::Transpose(axes) => from(&|o| {
            let mut index = vec![0; o.len()];
            axes.iter().enumerate().for_each(|(i, &a)| index[a] = o[i]);
            index
        }),
        Movement::Broadcast(_) => {
            let lead = out.shape.rank() - x.aval.shape.rank();
            from(&|o| {
                let size = |a: usize| x.aval.shape[a];
                (0..x.aval.shape.rank())
                    .map(|a| if size(a) == 1 { 0 } else { o[lead + a] })
                    .collect()
            })
        }
        Movement::Flip(axes) => from(&|o| {
            let mut index = o.to_vec();
            axes.iter().for_each(|&a| index[a] = out.shape[a] - 1 - o[a]);
            index
        }),
        Movement::Slice { start, strides, .. } => {
            from(&|o| (0..o.len()).map(|a| start[a] + strides[a] * o[a]).collect())
        }
        Movement::SliceUpdate { start, strides } => {
            let mut result = x.clone();
            for (i, o) in indices(&inputs[1].aval.shape).enumerate() {
                let index: Vec<_> = (0..o.len()).map(|a| start[a] + strides[a] * o[a]).collect();
                result.data[flat(&x.aval.shape, &index)] = inputs[1].data[i];
            }
            result
        }
        Movement::Pad { low, high: _, interior } => {
            let mut result = Host::from_fn(out.clone(), |_| inputs[1].data[0]);
            for (i, o) in indices(&x.aval.shape).enumerate() {
                let index: Vec<_> =
                    (0..o.len()).map(|a| low[a] + (interior[a] + 1) * o[a]).collect();
                result.data[flat(&out.shape, &index)] = x.data[i];
            }
            result
        }
        Movement::Concatenate { axis } => {
            let mut result = Host::from_fn(out.clone(), |_| real(0.0));
            let mut first = 0;
            for piece in inputs {
                for (i, mut index) in indices(&piece.aval.shape).enumerate() {
                    index[*axis] += first;
                    result.data[flat(&out.shape, &index)] = piece.data[i];
                }
                first += piece.aval.shape[*axis];
            }
            result
        }
    }
}

fn truth(v: bool) -> Complex64 {
    real(f64::from(u8::from(v)))
}

fn reduce(r: &Reduce, x: &Host, out: &Aval) -> Host {
    let empty = match r.kind {
        ReduceKind::Sum | ReduceKind::Any => 0.0,
        ReduceKind::Prod | ReduceKind::All => 1.0,
        ReduceKind::Max => f64::NEG_INFINITY,
        ReduceKind::Min => f64::INFINITY,
    };
    let mut data = vec![real(empty); out.shape.size()];
    for (i, index) in indices(&x.aval.shape).enumerate() {
        let kept: Vec<_> = index
            .iter()
            .enumerate()
            .filter(|(a, _)| !r.axes.contains(a))
            .map(|(_, &v)| v)
            .collect();
        let place = &mut data[flat(&out.shape, &kept)];
        let v = x.data[i];
        *place = match r.kind {
            ReduceKind::Sum => *place + v,
            // Integers wrap at every step, or the product would leave what f64 holds.
            ReduceKind::Prod if out.dtype.is_integer() => {
                let product = (place.re as i128).wrapping_mul(v.re as i128);
                let low = product.rem_euclid(1 << (8 * out.dtype.size()));
                round_to(out.dtype, real(low as f64))
            }
            ReduceKind::Prod => *place * v,
            ReduceKind::Max => binary(Binary::Maximum, *place, v, DType::F64),
            ReduceKind::Min => binary(Binary::Minimum, *place, v, DType::F64),
            ReduceKind::All => truth(*place != real(0.0) && v != real(0.0)),
            ReduceKind::Any => truth(*place != real(0.0) || v != real(0.0)),
        };
    }
    Host::from_fn(out.clone(), |i| data[i])
}

/// Runs `f` over each lane of `x` along `axis` and lays its results out along the same axis, or
/// without it where `out` lacks it.
fn lanes(x: &Host, axis: usize, out: &Aval, f: impl Fn(&[Complex64]) -> Vec<Complex64>) -> Host {
    let mut result = Host::from_fn(out.clone(), |_| real(0.0));
    let keeps = out.shape.rank() == x.aval.shape.rank();
    for index in indices(&x.aval.shape.with(axis, 1)) {
        let place = |i: usize| {
            let mut index = index.clone();
            index[axis] = i;
            index
        };
        let lane: Vec<_> =
            (0..x.aval.shape[axis]).map(|i| x.data[flat(&x.aval.shape, &place(i))]).collect();
        if lane.is_empty() {
            continue;
        }
        for (i, v) in f(&lane).into_iter().enumerate() {
            let mut at = place(i);
            if !keeps {
                at.remove(axis);
            }
            result.data[flat(&out.shape, &at)] = v;
        }
    }
    result
}

fn scan(s: &Scan, lane: &[Complex64], dtype: DType) -> Vec<Complex64> {
    let float = dtype.is_float();
    let mut total = match s.kind {
        ScanKind::Sum => real(0.0),
        ScanKind::Prod => real(1.0),
        ScanKind::Max | ScanKind::LogAddExp if float => real(f64::NEG_INFINITY),
        ScanKind::Min if float => real(f64::INFINITY),
        ScanKind::Max | ScanKind::LogAddExp => extreme(dtype, false),
        ScanKind::Min => extreme(dtype, true),
    };
    let mut out = vec![total; lane.len()];
    for i in 0..lane.len() {
        let at = if s.reverse { lane.len() - 1 - i } else { i };
        let before = total;
        total = match s.kind {
            ScanKind::Sum => total + lane[at],
            // With an imaginary part of 0 an infinity would become NaN.
            ScanKind::Prod if dtype != DType::C64 => real(total.re * lane[at].re),
            ScanKind::Prod => total * lane[at],
            _ if total.re.is_nan() || lane[at].re.is_nan() => real(f64::NAN),
            ScanKind::Max => real(total.re.max(lane[at].re)),
            ScanKind::Min => real(total.re.min(lane[at].re)),
            ScanKind::LogAddExp => real((total.re.exp() + lane[at].re.exp()).ln()),
        };
        // Integers wrap at once; not twice, because f64 holds the largest of 64 bits as one more.
        let exact = !dtype.is_inexact();
        if exact && matches!(s.kind, ScanKind::Sum | ScanKind::Prod) {
            total = round_to(dtype, total);
        }
        let value = if s.exclusive { before } else { total };
        out[at] = if exact { value } else { round_to(dtype, value) };
    }
    out
}

/// The largest or the least number of an integer dtype, or of bool.
fn extreme(dtype: DType, largest: bool) -> Complex64 {
    let bits = if dtype == DType::Bool { 1 } else { 8 * dtype.size() as i32 };
    real(match (largest, dtype.is_signed()) {
        // −1 wraps to the largest number.
        (true, false) if bits == 64 => u64::MAX as f64,
        (true, false) => 2f64.powi(bits) - 1.0,
        (false, false) => 0.0,
        (true, true) => i64::MAX.wrapping_shr(64 - bits as u32) as f64,
        (false, true) => -(2f64.powi(bits - 1)),
    })
}

fn gather(g: &Gather, inputs: &[Host], out: &Aval) -> Host {
    let x = &inputs[0];
    let lead = out.shape.rank() - x.aval.shape.rank();
    let all: Vec<_> = indices(&out.shape).collect();
    Host::from_fn(out.clone(), |i| {
        let (which, within) = all[i].split_at(lead);
        let mut index = within.to_vec();
        for (n, &axis) in g.axes.iter().enumerate() {
            let list = &inputs[1 + n];
            index[axis] += list.data[flat(&list.aval.shape, which)].re as usize;
        }
        x.data[flat(&x.aval.shape, &index)]
    })
}

fn join(mode: ScatterMode, old: Complex64, new: Complex64, dtype: DType) -> Complex64 {
    let joined = match mode {
        ScatterMode::Set => new,
        ScatterMode::Add => old + new,
        ScatterMode::Prod => old * new,
        ScatterMode::Max => binary(Binary::Maximum, old, new, DType::F64),
        ScatterMode::Min => binary(Binary::Minimum, old, new, DType::F64),
    };
    round_to(dtype, joined)
}

fn scatter(s: &Scatter, inputs: &[Host]) -> Host {
    let mut result = inputs[0].clone();
    let updates = &inputs[1];
    let lead = updates.aval.shape.rank() - result.aval.shape.rank();
    for (i, index) in indices(&updates.aval.shape).enumerate() {
        let (which, within) = index.split_at(lead);
        let mut place = within.to_vec();
        for (n, &axis) in s.axes.iter().enumerate() {
            let list = &inputs[2 + n];
            place[axis] += list.data[flat(&list.aval.shape, which)].re as usize;
        }
        let at = flat(&result.aval.shape, &place);
        result.data[at] = join(s.mode, result.data[at], updates.data[i], result.aval.dtype);
    }
    result
}

fn dot(a: &Host, b: &Host, out: &Aval) -> Host {
    let rank = out.shape.rank();
    let all: Vec<_> = indices(&out.shape).collect();
    Host::from_fn(out.clone(), |i| {
        let index = &all[i];
        let mut sum = real(0.0);
        for k in 0..a.aval.shape[rank - 1] {
            let (mut left, mut right) = (index.clone(), index.clone());
            left[rank - 1] = k;
            right[rank - 2] = k;
            sum += a.data[flat(&a.aval.shape, &left)] * b.data[flat(&b.aval.shape, &right)];
        }
        sum
    })
}

/// Walks every term of a convolution's sum: the places in x, w and y.
fn conv(c: &Conv, a: &Host, b: &Host, out: &Aval) -> Host {
    let (x, w, y) = match c.role {
        ConvRole::Forward => (&a.aval.shape, &b.aval.shape, &out.shape),
        ConvRole::InputGrad => (&out.shape, &b.aval.shape, &a.aval.shape),
        ConvRole::WeightGrad => (&a.aval.shape, &out.shape, &b.aval.shape),
    };
    let last = x.rank() - 1;
    let (per_group, outs_per_group) = (w[last], y[last] / c.groups);
    let mut data = vec![real(0.0); out.shape.size()];
    for at_y in indices(y) {
        for at_k in indices(&w[1..last]) {
            let mut at_x = at_y.clone();
            let inside = (0..last - 1).all(|s| {
                let k = if c.flip { c.kernel[s] - 1 - at_k[s] } else { at_k[s] };
                let dilated = at_y[1 + s] * c.stride[s] + k * c.dilation[s];
                let Some(dilated) = dilated.checked_sub(c.padding[s].0) else { return false };
                at_x[1 + s] = dilated / c.input_dilation[s];
                dilated % c.input_dilation[s] == 0 && at_x[1 + s] < c.input[s]
            });
            if !inside {
                continue;
            }
            at_x[last] = at_y[last] / outs_per_group * per_group;
            let at_w: Vec<_> =
                std::iter::once(at_y[last]).chain(at_k.iter().copied()).chain([0]).collect();
            // Channels are neighbours in both.
            let (x, w, y) = (flat(x, &at_x), flat(w, &at_w), flat(y, &at_y));
            for channel in 0..per_group {
                let (x, w) = (x + channel, w + channel);
                match c.role {
                    ConvRole::Forward => data[y] += a.data[x] * b.data[w],
                    ConvRole::InputGrad => data[x] += a.data[y] * b.data[w],
                    ConvRole::WeightGrad => data[w] += a.data[x] * b.data[y],
                }
            }
        }
    }
    Host::from_fn(out.clone(), |i| data[i])
}

fn pool(p: &Pool, inputs: &[Host], out: &Aval) -> Host {
    let a = &inputs[0];
    let x_shape: Shape = match p.role {
        PoolRole::SumTranspose => out.shape.clone(),
        _ => a.aval.shape.clone(),
    };
    let y_shape: Shape = match p.role {
        PoolRole::Max | PoolRole::MaxGather | PoolRole::Sum => out.shape.clone(),
        PoolRole::MaxScatter => inputs[1].aval.shape.clone(),
        PoolRole::SumTranspose => a.aval.shape.clone(),
    };
    let last = x_shape.rank() - 1;
    let integer = out.dtype.is_integer();
    let least = match (integer, out.dtype.is_signed()) {
        (false, _) => f64::NEG_INFINITY,
        (true, false) => 0.0,
        (true, true) => -2f64.powi(8 * out.dtype.size() as i32 - 1),
    };
    let mut data = vec![real(0.0); out.shape.size()];
    for (i, at_y) in indices(&y_shape).enumerate() {
        let mut places = Vec::new();
        for k in indices(&p.window) {
            let mut at = at_y.clone();
            let inside = (0..last - 1).all(|s| {
                let padded = at_y[1 + s] * p.stride[s] + k[s];
                at[1 + s] = padded.wrapping_sub(p.padding[s].0);
                padded >= p.padding[s].0 && at[1 + s] < p.input[s]
            });
            if inside {
                places.push(flat(&x_shape, &at));
            }
        }
        let best = || {
            let mut best: Option<usize> = None;
            for &place in &places {
                let v = a.data[place].re;
                let wins = best.is_none_or(|b| {
                    let old = a.data[b].re;
                    !old.is_nan() && (v.is_nan() || v > old)
                });
                if wins {
                    best = Some(place);
                }
            }
            best
        };
        match p.role {
            PoolRole::Max => data[i] = best().map_or(real(least), |b| a.data[b]),
            PoolRole::MaxGather => data[i] = best().map_or(real(0.0), |b| inputs[1].data[b]),
            PoolRole::MaxScatter => {
                if let Some(b) = best() {
                    data[b] += inputs[1].data[i];
                }
            }
            PoolRole::Sum => data[i] = places.iter().map(|&b| a.data[b]).sum(),
            PoolRole::SumTranspose => places.iter().for_each(|&b| data[b] += a.data[i]),
        }
    }
    Host::from_fn(out.clone(), |i| data[i])
}

/// Threefry-2x32 with 20 rounds (Salmon et al., SC 2011), laid out as MLX 0.32 does: word i of the
/// first half and its partner in the second half come from the counter (i, i + half).
fn random_bits(r: &RandomBits, keys: &Host, out: &Aval) -> Host {
    let bytes = r.shape.size() * r.width;
    let words = bytes.div_ceil(4);
    let half = words / 2;
    let odd = words % 2;
    let mut data = Vec::new();
    for key in keys.data.chunks(2) {
        let key = [key[0].re as u32, key[1].re as u32];
        let mut stream = vec![0u32; words];
        for i in 0..half {
            let second = half + odd + i;
            [stream[i], stream[second]] = threefry(key, [i as u32, second as u32]);
        }
        if odd == 1 {
            stream[half] = threefry(key, [half as u32, 0])[0];
        }
        let stream: Vec<u8> = stream.iter().flat_map(|w| w.to_le_bytes()).collect();
        for element in stream.chunks(r.width).take(r.shape.size()) {
            let value = element.iter().rev().fold(0u64, |v, &b| v << 8 | u64::from(b));
            data.push(real(value as f64));
        }
    }
    Host::from_fn(out.clone(), |i| data[i])
}

fn threefry(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
    let keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD1_1BDA];
    let rotations = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let mut x = [counter[0].wrapping_add(keys[0]), counter[1].wrapping_add(keys[1])];
    for round in 0..5usize {
        for rotation in rotations[round % 2] {
            x[0] = x[0].wrapping_add(x[1]);
            x[1] = x[1].rotate_left(rotation) ^ x[0];
        }
        x[0] = x[0].wrapping_add(keys[(round + 1) % 3]);
        x[1] = x[1].wrapping_add(keys[(round + 2) % 3]).wrapping_add(round as u32 + 1);
    }
    x
}
