//! Convolution of any number of spatial dimensions: forward, input gradient, weight gradient.
//!
//! Arrays are channels-last and contiguous: x `[batch, input.., in_channels]`, w
//! `[out_channels, kernel.., in_channels / groups]`, y `[batch, output.., out_channels]`.

mod channels;
mod depthwise;
mod dy;
mod geometry;
mod images;
mod op;
mod pad;
mod runs;
#[cfg(test)]
mod tests;
mod weight_grad;
mod weights;

use std::ops::Range;
use std::sync::Arc;

use cupola_core::backend::{Kept, KeptKey, Lookup};
use cupola_core::prim::ConvRole;

use crate::simd::{Element, Isa, Out, Tiled};

use channels::Channels;
use depthwise::Depthwise;
use geometry::{Axis, Geometry};
use images::Images;
pub(crate) use op::ConvKernel;
use weights::Weights;

/// Sizes and parameters of a convolution.
///
/// `y[n, o, co] = Σ x~[n, o·stride + k·dilation − pad_lo, g·Cg + ci] · w[co, k, ci]`, where `x~` is
/// `x` with `input_dilation − 1` zeros between its elements, and `flip` reverses `k`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ConvProblem {
    /// Images.
    pub batch: usize,
    /// Channel groups; divides both channel counts.
    pub groups: usize,
    /// Channels of x.
    pub in_channels: usize,
    /// Channels of y.
    pub out_channels: usize,
    /// Spatial sizes of x.
    pub input: Vec<usize>,
    /// Spatial sizes of w.
    pub kernel: Vec<usize>,
    /// Spatial sizes of y.
    pub output: Vec<usize>,
    /// Steps between windows.
    pub stride: Vec<usize>,
    /// Zeros before and after each spatial dimension.
    pub padding: Vec<(usize, usize)>,
    /// Steps between taps.
    pub dilation: Vec<usize>,
    /// Steps between elements of x.
    pub input_dilation: Vec<usize>,
    /// Reverses the taps: convolution instead of correlation.
    pub flip: bool,
}

/// Called once for each part of the output, when the part is final and still in cache.
pub type Epilogue<'a> = Option<&'a (dyn Fn(Range<usize>) + Sync)>;

impl ConvProblem {
    /// Elements of x.
    pub fn input_len(&self) -> usize {
        self.batch * self.input.iter().product::<usize>() * self.in_channels
    }

    /// Elements of w.
    pub fn weight_len(&self) -> usize {
        let taps = self.kernel.iter().product::<usize>();
        self.out_channels * taps * (self.in_channels / self.groups)
    }

    /// Elements of y.
    pub fn output_len(&self) -> usize {
        self.batch * self.output.iter().product::<usize>() * self.out_channels
    }

    /// Elements of the two inputs and the result of a role.
    pub fn lens(&self, role: ConvRole) -> [usize; 3] {
        role.arranged([self.input_len(), self.weight_len(), self.output_len()])
    }
}

/// Computes one role of a convolution, overwriting `out`.
///
/// Weights that were seen before are packed once for as long as they are in their memory, if that is `kept`.
pub fn conv_with<T: Element>(
    p: &ConvProblem,
    role: ConvRole,
    a: &[T],
    b: &[T],
    kept: Option<(&Kept, KeptKey)>,
    out: Out<'_, T>,
    epilogue: Epilogue<'_>,
) {
    if let Some((kept, key)) = kept.filter(|_| role != ConvRole::WeightGrad && out.len() > 0) {
        match kept.find::<PackedConv<T>>(key) {
            Lookup::Have(packed) => return packed.run(a, out, epilogue),
            Lookup::Again => {
                let packed = Arc::new(PackedConv::new(p, role, b));
                packed.run(a, out, epilogue);
                return kept.keep(key, packed);
            }
            Lookup::First => {}
        }
    }
    conv(p, role, a, b, out, epilogue);
}

/// Computes one role of a convolution, overwriting `out`.
pub fn conv<T: Element>(
    p: &ConvProblem,
    role: ConvRole,
    a: &[T],
    b: &[T],
    out: Out<'_, T>,
    epilogue: Epilogue<'_>,
) {
    assert_eq!([a.len(), b.len(), out.len()], p.lens(role), "conv {role:?}: lengths of {p:?}");
    if out.len() == 0 {
        return;
    }
    match role {
        ConvRole::WeightGrad => {
            let geo = Geometry::forward(p);
            match Depthwise::new(&geo, Isa::best()) {
                Some(depthwise) => depthwise.weight_grad(&geo, a, b, out, epilogue),
                None => weight_grad::weight_grad(&geo, a, b, out, epilogue),
            }
        }
        _ => PackedConv::new(p, role, b).run(a, out, epilogue),
    }
}

/// A forward convolution or input gradient with its weights packed: worth keeping as long as the
/// weights stay the same, above all for small batches.
pub struct PackedConv<T: Element> {
    geometry: Geometry,
    path: Path,
    weights: Weights<T::Acc>,
    lens: [usize; 2],
}

/// What the lanes of vectors are.
enum Path {
    Images(Images),
    Channels(Channels),
    /// Channels too, where each is a group of its own.
    Depthwise(Depthwise),
}

impl<T: Element> PackedConv<T> {
    /// Prepares a convolution and packs its weights. The role is not `WeightGrad`.
    pub fn new(p: &ConvProblem, role: ConvRole, w: &[T]) -> Self {
        assert_eq!(w.len(), p.weight_len(), "conv {role:?}: length of the weights of {p:?}");
        let (geometry, lens) = match role {
            ConvRole::Forward => (Geometry::forward(p), [p.input_len(), p.output_len()]),
            ConvRole::InputGrad => (Geometry::input_grad(p), [p.output_len(), p.input_len()]),
            ConvRole::WeightGrad => panic!("conv: a weight gradient has no weights to pack"),
        };
        let isa = Isa::best();
        let path = Path::new::<T::Acc>(&geometry, isa);
        let widths = match &path {
            Path::Images(images) => images.widths(),
            Path::Channels(channels) => channels.widths(),
            Path::Depthwise(_) => vec![1],
        };
        let weights = Weights::pack(&geometry, isa, &widths, w);
        PackedConv { geometry, path, weights, lens }
    }

    /// Computes the convolution of `x`, overwriting `out`.
    pub fn run(&self, x: &[T], out: Out<'_, T>, epilogue: Epilogue<'_>) {
        assert_eq!([x.len(), out.len()], self.lens, "conv: lengths of input and output");
        if out.len() == 0 {
            return;
        }
        match &self.path {
            Path::Images(images) => images.run(&self.geometry, x, &self.weights, out, epilogue),
            Path::Channels(channels) => {
                channels.run(&self.geometry, x, &self.weights, out, epilogue)
            }
            Path::Depthwise(depthwise) => {
                depthwise.run(&self.geometry, x, &self.weights, out, epilogue)
            }
        }
    }
}

impl Path {
    fn new<A: Tiled>(geo: &Geometry, isa: Isa) -> Path {
        if let Some(depthwise) = Depthwise::new(geo, isa) {
            return Path::Depthwise(depthwise);
        }
        let (images, channels) = (Images::new::<A>(geo, isa), Channels::new::<A>(geo, isa));
        #[cfg(test)]
        match tests::FORCED.get() {
            Some(true) => return Path::Images(images),
            Some(false) => return Path::Channels(channels),
            None => {}
        }
        if images.cost < channels.cost { Path::Images(images) } else { Path::Channels(channels) }
    }
}
