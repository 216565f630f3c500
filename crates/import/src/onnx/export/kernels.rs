//! Primitives with kernels as operators.

#![deny(clippy::wildcard_enum_match_arm)]

use cupola_core::prim::{
    Conv, ConvRole, Dot, Gather, KernelOp, Pool, PoolRole, Scan, ScanKind, Scatter, ScatterMode,
    Sort, SortPart,
};
use cupola_core::{Aval, DType, Dims};

use super::{Attr, Exporter, ints};
use crate::onnx::error::Fault;

/// Channels behind the batch, where they were last.
fn channels_second(rank: usize) -> Vec<usize> {
    [0, rank - 1].into_iter().chain(1..rank - 1).collect()
}

/// The way back.
fn channels_last(rank: usize) -> Vec<usize> {
    std::iter::once(0).chain(2..rank).chain([1]).collect()
}

/// The padding before each axis, then that after each.
fn pads(padding: &[(usize, usize)]) -> Attr<'static> {
    let before = padding.iter().map(|&(low, _)| low as i64);
    Attr::Ints(before.chain(padding.iter().map(|&(_, high)| high as i64)).collect())
}

/// Where indices are along `axes` of `x` and slices take one element there and all along the others.
fn picks_elements(axes: &[usize], sizes: &[usize], x: &Aval) -> bool {
    (0..x.shape.rank()).all(|axis| match axes.contains(&axis) {
        true => sizes[axis] == 1,
        false => sizes[axis] == x.shape[axis],
    })
}

impl Exporter {
    pub(super) fn kernel(
        &mut self,
        op: &KernelOp,
        names: &[&str],
        avals: &[&Aval],
        out: &Aval,
    ) -> Result<String, Fault> {
        let none = || Err(Fault::unsupported("has no operators of ONNX"));
        Ok(match op {
            KernelOp::Iota(iota) => {
                let [start, end, step] =
                    [0, iota.shape[iota.axis] as i64, 1].map(|n| self.number(n, DType::I64));
                let counted = self.op("Range", &[&start, &end, &step]);
                let counted = self.cast(&counted, iota.dtype);
                let mut shape = vec![1; iota.shape.rank()];
                shape[iota.axis] = iota.shape[iota.axis];
                let counted = self.reshape(&counted, &shape);
                self.expand(&counted, &iota.shape)
            }
            KernelOp::ArgReduce(arg) => {
                let name = if arg.max { "ArgMax" } else { "ArgMin" };
                let axis = ("axis", Attr::Int(arg.axis as i64));
                let found = self.with(name, &[names[0]], &[axis, ("keepdims", Attr::Int(0))]);
                self.cast(&found, out.dtype)
            }
            KernelOp::Scan(Scan { kind: ScanKind::Sum, axis, reverse, exclusive }) => {
                let axis = self.number(*axis as i64, DType::I64);
                let flags = [
                    ("exclusive", Attr::Int((*exclusive).into())),
                    ("reverse", Attr::Int((*reverse).into())),
                ];
                self.with("CumSum", &[names[0], &axis], &flags)
            }
            KernelOp::Gather(gather) => return self.gather(gather, names, avals, out),
            KernelOp::Scatter(scatter) => return self.scatter(scatter, names, avals),
            KernelOp::GatherAxis(gather) => {
                let indices = self.indices(names[1], avals[1]);
                let axis = ("axis", Attr::Int(gather.axis as i64));
                self.with("GatherElements", &[names[0], &indices], &[axis])
            }
            KernelOp::ScatterAxis(scatter) => {
                let indices = self.indices(names[2], avals[2]);
                let axis = ("axis", Attr::Int(scatter.axis as i64));
                let how = ("reduction", Attr::Text(self.reduction(scatter.mode)?));
                self.with("ScatterElements", &[names[0], &indices, names[1]], &[axis, how])
            }
            KernelOp::Dot(dot) => self.dot(dot, names, avals),
            KernelOp::Conv(conv) => return self.conv(conv, names, avals),
            KernelOp::Pool(pool) => return self.pool(pool, names[0], avals[0]),
            KernelOp::Sort(sort) => self.sort(sort, names[0], avals[0]),
            KernelOp::Scan(_)
            | KernelOp::Bitcast(_)
            | KernelOp::RandomBits(_)
            | KernelOp::Fft(_)
            | KernelOp::Linalg(_) => return none(),
        })
    }

    fn dot(&mut self, dot: &Dot, names: &[&str], avals: &[&Aval]) -> String {
        let [a, b] = [names[0], names[1]];
        if avals[0].dtype == dot.result {
            return self.op("MatMul", &[a, b]);
        }
        let [a, b] = [a, b].map(|x| self.cast(x, dot.result));
        self.op("MatMul", &[&a, &b])
    }

    fn reduction(&self, mode: ScatterMode) -> Result<&'static str, Fault> {
        match mode {
            ScatterMode::Set => Ok("none"),
            ScatterMode::Add => Ok("add"),
            ScatterMode::Prod => Ok("mul"),
            ScatterMode::Max if self.opset >= 18 => Ok("max"),
            ScatterMode::Min if self.opset >= 18 => Ok("min"),
            ScatterMode::Max | ScatterMode::Min => {
                Err(Fault::unsupported(format!("has no operator in opset {}", self.opset)))
            }
        }
    }

    /// Index arrays of one shape side by side, in a new last axis.
    fn together(&mut self, names: &[&str], avals: &[&Aval]) -> String {
        let shape: Vec<usize> = avals[0].shape.iter().copied().chain([1]).collect();
        let mut parts = Vec::with_capacity(names.len());
        for (name, aval) in names.iter().zip(avals) {
            let indices = self.indices(name, aval);
            parts.push(self.reshape(&indices, &shape));
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        self.with("Concat", &parts, &[("axis", Attr::Int(-1))])
    }

    fn gather(
        &mut self,
        gather: &Gather,
        names: &[&str],
        avals: &[&Aval],
        out: &Aval,
    ) -> Result<String, Fault> {
        let x = avals[0];
        if gather.axes.is_empty() || !picks_elements(&gather.axes, &gather.sizes, x) {
            return Err(Fault::unsupported(format!(
                "of slices {:?} has no operator",
                gather.sizes
            )));
        }
        let picked = match gather.axes[..] {
            [0] => {
                let indices = self.indices(names[1], avals[1]);
                self.with("Gather", &[names[0], &indices], &[("axis", Attr::Int(0))])
            }
            _ => {
                let first = self.transpose(names[0], &leading(&gather.axes, x.shape.rank()));
                let indices = self.together(&names[1..], &avals[1..]);
                self.op("GatherND", &[&first, &indices])
            }
        };
        Ok(self.reshape(&picked, &out.shape))
    }

    fn scatter(
        &mut self,
        scatter: &Scatter,
        names: &[&str],
        avals: &[&Aval],
    ) -> Result<String, Fault> {
        let [x, updates] = [avals[0], avals[1]];
        let rank = x.shape.rank();
        let lead = updates.shape.rank() - rank;
        let sizes = &updates.shape[lead..];
        if scatter.axes.is_empty() || !picks_elements(&scatter.axes, sizes, x) {
            return Err(Fault::unsupported(format!("of slices {sizes:?} has no operator")));
        }
        let order = leading(&scatter.axes, rank);
        let first = self.transpose(names[0], &order);
        let indices = self.together(&names[2..], &avals[2..]);
        let rest = (0..rank).filter(|axis| !scatter.axes.contains(axis)).map(|axis| x.shape[axis]);
        let shape: Vec<usize> = updates.shape[..lead].iter().copied().chain(rest).collect();
        let updates = self.reshape(names[1], &shape);
        let how = ("reduction", Attr::Text(self.reduction(scatter.mode)?));
        let result = self.with("ScatterND", &[&first, &indices, &updates], &[how]);
        let mut back = vec![0; rank];
        order.iter().enumerate().for_each(|(to, &from)| back[from] = to);
        Ok(self.transpose(&result, &back))
    }

    fn conv(&mut self, conv: &Conv, names: &[&str], avals: &[&Aval]) -> Result<String, Fault> {
        if conv.input_dilation.iter().any(|&n| n > 1) || conv.role == ConvRole::WeightGrad {
            return Err(Fault::unsupported("of this kind has no operator"));
        }
        let rank = conv.input.len() + 2;
        let wide = |this: &mut Self, x: &str, aval: &Aval| match aval.dtype == conv.result {
            true => x.to_owned(),
            false => this.cast(x, conv.result),
        };
        let x = wide(self, names[0], avals[0]);
        let w = wide(self, names[1], avals[1]);
        let x = self.transpose(&x, &channels_second(rank));
        let w = self.transpose(&w, &channels_second(rank));
        let spatial: Vec<usize> = (2..rank).collect();
        let w = if conv.flip { self.flip(&w, &spatial) } else { w };
        let list = |dims: &Dims| Attr::Ints(ints(dims));
        let mut attributes = vec![
            ("kernel_shape", list(&conv.kernel)),
            ("strides", list(&conv.stride)),
            ("dilations", list(&conv.dilation)),
            ("pads", pads(&conv.padding)),
            ("group", Attr::Int(conv.groups as i64)),
        ];
        let name = match conv.role {
            ConvRole::Forward => "Conv",
            ConvRole::InputGrad | ConvRole::WeightGrad => {
                let outputs = conv.output()?;
                let more = |i: usize| {
                    let (low, high) = conv.padding[i];
                    let reach = (conv.kernel[i] - 1) * conv.dilation[i] + 1;
                    (conv.input[i] + low + high) - (outputs[i] - 1) * conv.stride[i] - reach
                };
                let more: Vec<usize> = (0..outputs.len()).map(more).collect();
                attributes.push(("output_padding", Attr::Ints(ints(&more))));
                "ConvTranspose"
            }
        };
        let y = self.with(name, &[&x, &w], &attributes);
        Ok(self.transpose(&y, &channels_last(rank)))
    }

    fn pool(&mut self, pool: &Pool, x: &str, aval: &Aval) -> Result<String, Fault> {
        let rank = pool.input.len() + 2;
        let x = self.transpose(x, &channels_second(rank));
        let mut attributes = vec![
            ("kernel_shape", Attr::Ints(ints(&pool.window))),
            ("strides", Attr::Ints(ints(&pool.stride))),
            ("pads", pads(&pool.padding)),
        ];
        let y = match pool.role {
            PoolRole::Max => self.with("MaxPool", &[&x], &attributes),
            PoolRole::Sum => {
                attributes.push(("count_include_pad", Attr::Int(1)));
                let mean = self.with("AveragePool", &[&x], &attributes);
                let count: usize = pool.window.iter().product();
                let count = self.number(count as f64, aval.dtype);
                self.op("Mul", &[&mean, &count])
            }
            PoolRole::MaxGather | PoolRole::MaxScatter | PoolRole::SumTranspose => {
                return Err(Fault::unsupported("of this kind has no operator"));
            }
        };
        Ok(self.transpose(&y, &channels_last(rank)))
    }

    /// The elements of an axis in order, or their places.
    fn sort(&mut self, sort: &Sort, x: &str, aval: &Aval) -> String {
        let (start, count, all) = match sort.part {
            SortPart::Whole | SortPart::Around(_) => {
                (0, aval.shape[sort.axis], aval.shape[sort.axis])
            }
            SortPart::Range { start, count } => (start, count, start + count),
        };
        let many = self.list(&[all as i64]);
        let axis = ("axis", Attr::Int(sort.axis as i64));
        let [values, places] = self.nodes("TopK", &[x, &many], &[axis, ("largest", Attr::Int(0))]);
        let sorted = match sort.indices {
            true => self.cast(&places, DType::U32),
            false => values,
        };
        if start == 0 {
            return sorted;
        }
        let [from, to, axis] = [start, start + count, sort.axis].map(|n| self.list(&[n as i64]));
        self.op("Slice", &[&sorted, &from, &to, &axis])
    }
}

/// The axes in an order in which these come first.
fn leading(axes: &[usize], rank: usize) -> Vec<usize> {
    let rest = (0..rank).filter(|axis| !axes.contains(axis));
    axes.iter().copied().chain(rest).collect()
}
