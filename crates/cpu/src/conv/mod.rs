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
mod winograd;

use std::ops::Range;

use cupola_core::prim::ConvRole;
use cupola_simd::{Bias, Element, Isa, Out, Residual, Tail, Then, Tiled, ToPoints};

use crate::memory::Scratch;
use crate::op::Epilogue;

use channels::Channels;
use depthwise::Depthwise;
use geometry::{Axis, Geometry};
use images::Images;
pub(crate) use op::ConvKernel;
use weights::Weights;
use winograd::Winograd;

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

/// What is done to sums before they are stored, as by a [`Tail`].
#[derive(Clone, Copy)]
pub struct ConvTail<'a, A> {
    /// What is added: an element for each output channel.
    pub bias: Option<&'a [A]>,
    /// What is added then.
    pub residual: Option<Residual<A>>,
    /// What no result is below.
    pub low: Option<A>,
    /// What no result is above.
    pub high: Option<A>,
    /// What the epilogue is, where that is a function of each result. Where tasks do not have all channels of a position
    /// they do this to each tile that they store, and the epilogue is not called; elsewhere the epilogue is, and not
    /// this.
    pub then: Option<Then<'a, A>>,
}

impl<A> Default for ConvTail<'_, A> {
    fn default() -> Self {
        ConvTail { bias: None, residual: None, low: None, high: None, then: None }
    }
}

impl<'a, A: Copy> ConvTail<'a, A> {
    /// The tail of sums whose bias is this one, if there is any.
    fn with(&self, bias: impl FnOnce(&[A]) -> Bias<A>) -> Tail<'a, A> {
        let ConvTail { residual, low, high, then, .. } = *self;
        Tail { bias: self.bias.map_or(Bias::None, bias), residual, low, high, then }
    }
}

impl<A: Tiled> ConvTail<'_, A> {
    /// Does what follows the bias to results that are stored, of sums whose type is that of results.
    ///
    /// # Safety
    /// The residual has an element for each.
    unsafe fn end<T: Element<Acc = A>>(&self, results: &mut [T]) {
        for result in results {
            let mut x = result.to_acc();
            if let Some(residual) = &self.residual {
                // SAFETY: the caller vouches for the residual.
                x += unsafe { *residual.at((&raw const *result).cast()) };
            }
            // NaN stays, and where both are equal the bound is the result.
            let is_nan = |x: A| x.partial_cmp(&x).is_none();
            if let Some(low) = self.low {
                x = if x > low || is_nan(x) { x } else { low };
            }
            if let Some(high) = self.high {
                x = if x < high || is_nan(x) { x } else { high };
            }
            *result = T::from_acc(x);
        }
    }
}

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

/// Elements of the output that stay in the first-level cache until they are finished.
const CACHED: usize = 1 << 12;

/// Computes one role of a convolution, overwriting `out`. A weight gradient has no tail.
pub fn conv<T: Element + ToPoints>(
    p: &ConvProblem,
    role: ConvRole,
    a: &[T],
    b: &[T],
    out: Out<'_, T>,
    tail: ConvTail<'_, T::Acc>,
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
        _ => {
            if !PackedConv::new(p, role, b).run(a, out, tail, epilogue) {
                conv_direct(p, role, a, b, out, tail, epilogue);
            }
        }
    }
}

/// A convolution or input gradient whose sums are of the products themselves, for where [`PackedConv::run`] has none that
/// holds.
pub fn conv_direct<T: Element + ToPoints>(
    p: &ConvProblem,
    role: ConvRole,
    a: &[T],
    b: &[T],
    out: Out<'_, T>,
    tail: ConvTail<'_, T::Acc>,
    epilogue: Epilogue<'_>,
) {
    let holds = PackedConv::by(p, role, b, Path::direct).run(a, out, tail, epilogue);
    debug_assert!(holds, "sums of products hold");
}

/// A forward convolution or input gradient with its weights packed: worth keeping as long as the
/// weights stay the same, above all for small batches.
pub struct PackedConv<T: Element> {
    geometry: Geometry,
    path: Path<T::Acc>,
    lens: [usize; 2],
}

/// How it runs, and the weights as they are read then.
enum Path<A: Tiled> {
    /// Images are the lanes of vectors.
    Images(Images, Weights<A>),
    /// Channels are.
    Channels(Channels, Weights<A>),
    /// Channels too, where each is a group of its own.
    Depthwise(Depthwise, Scratch<A>),
    /// Channels, in tiles of outputs that share products.
    Winograd(Winograd, Weights<A>),
}

impl<T: Element + ToPoints> PackedConv<T> {
    /// Prepares a convolution and packs its weights. The role is not `WeightGrad`.
    pub fn new(p: &ConvProblem, role: ConvRole, w: &[T]) -> Self {
        Self::by(p, role, w, Path::new)
    }

    /// The same with the path that `path` chooses.
    fn by(
        p: &ConvProblem,
        role: ConvRole,
        w: &[T],
        path: impl FnOnce(&Geometry, Isa, &[T]) -> Path<T::Acc>,
    ) -> Self {
        assert_eq!(w.len(), p.weight_len(), "conv {role:?}: length of the weights of {p:?}");
        let (geometry, lens) = match role {
            ConvRole::Forward => (Geometry::forward(p), [p.input_len(), p.output_len()]),
            ConvRole::InputGrad => (Geometry::input_grad(p), [p.output_len(), p.input_len()]),
            ConvRole::WeightGrad => panic!("conv: a weight gradient has no weights to pack"),
        };
        let path = path(&geometry, Isa::best(), w);
        PackedConv { geometry, path, lens }
    }

    /// The same, to live long.
    pub fn into_lasting(self) -> Self {
        let path = match self.path {
            Path::Images(images, w) => Path::Images(images, w.into_lasting()),
            Path::Channels(channels, w) => Path::Channels(channels, w.into_lasting()),
            Path::Depthwise(depthwise, w) => Path::Depthwise(depthwise, w.into_lasting()),
            Path::Winograd(winograd, w) => Path::Winograd(winograd, w.into_lasting()),
        };
        PackedConv { path, ..self }
    }

    /// Computes the convolution of `x`, overwriting `out`. Whether the result holds: where it has NaN that no sum of
    /// products may have, it has to be computed by [`conv_direct`], epilogue and all.
    #[must_use]
    pub fn run(
        &self,
        x: &[T],
        out: Out<'_, T>,
        tail: ConvTail<'_, T::Acc>,
        epilogue: Epilogue<'_>,
    ) -> bool {
        assert_eq!([x.len(), out.len()], self.lens, "conv: lengths of input and output");
        let channels = self.geometry.groups * self.geometry.c_out;
        assert!(tail.bias.is_none_or(|bias| bias.len() == channels), "conv: length of the bias");
        if out.len() == 0 {
            return true;
        }
        match &self.path {
            Path::Winograd(winograd, w) => {
                return winograd.run(&self.geometry, x, w, out, tail, epilogue);
            }
            Path::Images(images, w) if tail.residual.is_some() => {
                // Sums are not where they are stored while they are in registers.
                let rest = |range: Range<usize>| {
                    // SAFETY: the path calls this for parts that are final, each once.
                    unsafe { tail.end(out.slice(range.clone())) };
                    if let Some(f) = epilogue {
                        f(range);
                    }
                };
                let bias = ConvTail { bias: tail.bias, ..ConvTail::default() };
                images.run(&self.geometry, x, w, out, bias, Some(&rest));
            }
            Path::Images(images, w) => images.run(&self.geometry, x, w, out, tail, epilogue),
            Path::Channels(channels, w) => channels.run(&self.geometry, x, w, out, tail, epilogue),
            Path::Depthwise(depthwise, w) => {
                depthwise.run(&self.geometry, x, w, out, tail, epilogue)
            }
        }
        true
    }
}

impl<A: Tiled> Path<A> {
    fn new<T: Element<Acc = A>>(geo: &Geometry, isa: Isa, w: &[T]) -> Self {
        let is_cheaper = |winograd: &Winograd| {
            let (images, channels) = (Images::new::<A>(geo, isa), Channels::new::<A>(geo, isa));
            winograd.cost < images.cost.min(channels.cost)
        };
        #[cfg(test)]
        let is_cheaper = |winograd: &Winograd| match tests::FORCED.get() {
            None => is_cheaper(winograd),
            Some(way) => way == tests::Way::Winograd,
        };
        let winograd = Winograd::new::<A>(geo, isa).filter(is_cheaper);
        let Some(winograd) = winograd else { return Self::direct(geo, isa, w) };
        let packed = winograd.pack(geo, &Weights::pack(geo, isa, &winograd.widths(), w));
        Path::Winograd(winograd, packed)
    }

    /// One whose sums are of the products themselves.
    fn direct<T: Element<Acc = A>>(geo: &Geometry, isa: Isa, w: &[T]) -> Self {
        if let Some(depthwise) = Depthwise::new(geo, isa) {
            let packed = depthwise.pack(geo, w);
            return Path::Depthwise(depthwise, packed);
        }
        let (images, channels) = (Images::new::<A>(geo, isa), Channels::new::<A>(geo, isa));
        let by_images = images.cost < channels.cost;
        #[cfg(test)]
        let by_images = match tests::FORCED.get() {
            None | Some(tests::Way::Winograd) => by_images,
            Some(way) => way == tests::Way::Images,
        };
        if by_images {
            let packed = Weights::pack(geo, isa, &images.widths(), w);
            Path::Images(images, packed)
        } else {
            let packed = Weights::pack(geo, isa, &channels.widths(), w);
            Path::Channels(channels, packed)
        }
    }
}
