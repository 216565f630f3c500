//! The operands of a convolution as those of a product, read where they lie (implicit GEMM).

use cupola_core::backend::Operand;
use cupola_core::prim::Conv;

use super::super::Draft;
use super::super::gemm::{Addresses, Source};
use super::super::view::{Axes, Walk, place, side_by_side, unflatten};
use crate::ir::{Divisor, Ty, Val};

/// Which index of the convolution an operand's place follows from.
pub struct Taps<'a> {
    pub conv: &'a Conv,
    pub operand: &'a Operand,
    pub role: Tap,
    /// Spatial sizes of y.
    pub output: Vec<usize>,
    /// Channels of x and of y in a group.
    pub channels: [usize; 2],
}

/// The operands of the three roles, by what their rows and their summed axis count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tap {
    /// x at rows (n, o) and depths (k, ci).
    Patches,
    /// w at columns co and depths (k, ci).
    Weights,
    /// dy at rows (n, i) and depths (k, co).
    Spread,
    /// w at columns ci and depths (k, co).
    Turned,
    /// dy at rows co and depths (n, o).
    Outputs,
    /// x at columns (k, ci) and depths (n, o).
    Windows,
}

impl Taps<'_> {
    fn spatial(&self) -> usize {
        self.conv.input.len()
    }

    /// How far apart the operand's places stand along the spatial axes, and how many there are.
    fn grid(&self) -> (&[usize], &[usize]) {
        match self.role {
            Tap::Patches | Tap::Windows => (&self.conv.input_dilation, &self.conv.input),
            Tap::Spread => (&self.conv.stride, &self.output),
            // Every place is there.
            Tap::Weights | Tap::Turned | Tap::Outputs => (&[], &[]),
        }
    }

    /// Whether a place of the operand is a sum of what its row and what its depth give: nothing has
    /// to be divided.
    fn is_linear(&self) -> bool {
        self.grid().0.iter().all(|&step| step == 1)
    }
}

/// The operand in a kernel.
struct TapAddresses<'k> {
    k: &'k Draft,
    taps: &'k Taps<'k>,
    strides: Vec<Val<'k>>,
    /// Spatial sizes of x, y and w, behind one for images that nothing is divided by.
    input: Vec<Divisor<'k>>,
    output: Vec<Divisor<'k>>,
    kernel: Vec<Divisor<'k>>,
    /// Channels of x and of y in a group.
    channels: [Divisor<'k>; 2],
    stride: Vec<Val<'k>>,
    dilation: Vec<Val<'k>>,
    input_dilation: Vec<Val<'k>>,
    /// What is padded before the first place.
    low: Vec<Val<'k>>,
    /// The last place of the kernel.
    last: Vec<Val<'k>>,
    /// How far apart the operand's places stand, and how many there are.
    grid: [Vec<Val<'k>>; 2],
    /// The places of y, where they are the summed axis of its own operand.
    outputs: Option<Walk<'k>>,
}

impl<'k> TapAddresses<'k> {
    /// The kernel's place as it stands in memory.
    fn turned(&self, tap: &[Val<'k>]) -> Vec<Val<'k>> {
        if !self.taps.conv.flip {
            return tap.to_vec();
        }
        tap.iter().zip(&self.last).map(|(&tap, &last)| last - tap).collect()
    }

    /// The places along the spatial axes of the operand.
    fn spatial(&self) -> &[Val<'k>] {
        &self.strides[1..=self.taps.spatial()]
    }

    /// Where the element is whose places along the spatial axes are these sums, and whether it is
    /// there. What lies below the first place wraps far beyond the size.
    fn linear(&self, outer: &[Val<'k>], inner: &[Val<'k>]) -> (Val<'k>, Option<Val<'k>>) {
        let unsigned = unsigned(self.k.index);
        let below = outer[1..].iter().zip(&inner[1..]).zip(&self.grid[1]);
        let below =
            below.map(|((&a, &b), &size)| (a + b).convert(unsigned).lt(size.convert(unsigned)));
        let there = below.reduce(|known, below| known & below);
        (outer[0] + inner[0], there)
    }

    /// What a row or a depth needs: where it starts and its places along the spatial axes, which in
    /// the linear form move the start, too.
    fn needs(&self, start: Val<'k>, places: Vec<Val<'k>>) -> Vec<Val<'k>> {
        let start =
            if self.taps.is_linear() { place(start, &places, self.spatial()) } else { start };
        std::iter::once(start).chain(places).collect()
    }

    /// `index` minus what is padded before the first place.
    fn without_padding(&self, index: Vec<Val<'k>>) -> Vec<Val<'k>> {
        index.into_iter().zip(&self.low).map(|(i, &low)| i - low).collect()
    }

    /// The same where places stand apart: of x in its dilated input, and of y, since
    /// o·stride = i·input_dilation + low − tap·dilation. Nothing is there between them.
    fn divided(&self, outer: &[Val<'k>], inner: &[Val<'k>]) -> (Val<'k>, Option<Val<'k>>) {
        let unsigned = unsigned(self.k.index);
        let [steps, sizes] = &self.grid;
        let mut at = outer[0] + inner[0];
        let mut there: Option<Val<'k>> = None;
        for axis in 0..self.taps.spatial() {
            let p = (outer[axis + 1] + inner[axis + 1]).convert(unsigned);
            let step = steps[axis].convert(unsigned);
            let exact = (p % step).eq(0);
            let p = p / step;
            // A place below zero stays far beyond the size after the division, too.
            let holds = p.lt(sizes[axis].convert(unsigned)) & exact;
            there = Some(there.map_or(holds, |known| known & holds));
            at = place(at, &[self.k.as_index(p)], &self.spatial()[axis..=axis]);
        }
        (at, there)
    }
}

fn scaled<'k>(index: &[Val<'k>], by: &[Val<'k>]) -> Vec<Val<'k>> {
    index.iter().zip(by).map(|(&i, &by)| i * by).collect()
}

/// The unsigned type of an index: what is below zero is then beyond every size.
pub fn unsigned(index: Ty) -> Ty {
    if index == Ty::I64 { Ty::U64 } else { Ty::U32 }
}

impl<'k> Addresses<'k> for TapAddresses<'k> {
    fn outer(&self, group: Val<'k>, index: Val<'k>) -> Vec<Val<'k>> {
        let s = self.taps.spatial();
        let strides = &self.strides;
        let [cin, cout] = self.channels.map(|c| c.size);
        let zero = index.like(0);
        match self.taps.role {
            Tap::Patches => {
                let at = unflatten(index, &self.output);
                let start = place(zero, &[at[0], group * cin], &[strides[0], strides[s + 1]]);
                self.needs(start, self.without_padding(scaled(&at[1..], &self.stride)))
            }
            Tap::Spread => {
                let at = unflatten(index, &self.input);
                let start = place(zero, &[at[0], group * cout], &[strides[0], strides[s + 1]]);
                let places = scaled(&at[1..], &self.input_dilation);
                let places = places.into_iter().zip(&self.low);
                self.needs(start, places.map(|(i, &low)| i + low).collect())
            }
            Tap::Weights => vec![place(zero, &[group * cout + index], &strides[..1])],
            Tap::Turned => {
                vec![place(zero, &[group * cout, index], &[strides[0], strides[s + 1]])]
            }
            Tap::Outputs => vec![place(zero, &[group * cout + index], &strides[s + 1..])],
            Tap::Windows => {
                let at = unflatten(index, &[&self.kernel[..], &self.channels[..1]].concat());
                let start = place(zero, &[group * cin + at[s]], &strides[s + 1..]);
                // The result is w's own place, so taps run as the kernel lies.
                let taps = scaled(&self.turned(&at[..s]), &self.dilation);
                self.needs(start, self.without_padding(taps))
            }
        }
    }

    fn inner(&self, depth: Val<'k>) -> Vec<Val<'k>> {
        let s = self.taps.spatial();
        let strides = &self.strides;
        let zero = depth.like(0);
        // A depth as the tap and channel that it is.
        let tap =
            |of: usize| unflatten(depth, &[&self.kernel[..], &self.channels[of..=of]].concat());
        match self.taps.role {
            Tap::Patches | Tap::Spread => {
                let at = tap(usize::from(self.taps.role == Tap::Spread));
                let start = place(zero, &at[s..], &strides[s + 1..]);
                let mut places = scaled(&at[..s], &self.dilation);
                if self.taps.role == Tap::Spread {
                    // The kernel leads back from the output.
                    places = places.iter().map(|&tap| zero - tap).collect();
                }
                self.needs(start, places)
            }
            Tap::Weights => {
                let at = tap(0);
                let start = place(zero, &self.turned(&at[..s]), self.spatial());
                vec![place(start, &at[s..], &strides[s + 1..])]
            }
            Tap::Turned => {
                let at = tap(1);
                let start = place(zero, &self.turned(&at[..s]), self.spatial());
                vec![place(start, &at[s..], &strides[..1])]
            }
            Tap::Outputs => {
                let places = self.outputs.iter();
                let places =
                    places.map(|w| place(zero, &unflatten(depth, &w.sizes), &w.strides[0]));
                places.collect()
            }
            Tap::Windows => {
                let at = unflatten(depth, &self.output);
                let start = place(zero, &at[..1], &strides[..1]);
                self.needs(start, scaled(&at[1..], &self.stride))
            }
        }
    }

    fn place(&self, outer: &[Val<'k>], inner: &[Val<'k>]) -> (Val<'k>, Option<Val<'k>>) {
        match self.taps.is_linear() {
            true => self.linear(outer, inner),
            false => self.divided(outer, inner),
        }
    }
}

impl Source for Taps<'_> {
    fn bind<'k>(&'k self, k: &'k Draft) -> Box<dyn Addresses<'k> + 'k> {
        let conv = self.conv;
        let extents = |sizes: &[usize]| sizes.iter().map(|&n| k.extent(n)).collect::<Vec<_>>();
        let steps_of =
            |steps: &[usize]| steps.iter().map(|&n| k.step(n as i64, k.index)).collect::<Vec<_>>();
        let behind = |sizes: &[usize]| {
            std::iter::once(k.fixed(1, k.index)).chain(k.divisors(sizes)).collect::<Vec<_>>()
        };
        let (steps, sizes) = self.grid();
        let outputs = (self.role == Tap::Outputs).then(|| {
            let sizes = [&[self.operand.aval.shape[0]], &self.output[..]].concat();
            k.walk(&Axes::joined(&sizes, &[&self.operand.strides[..=self.spatial()]]))
        });
        Box::new(TapAddresses {
            k,
            taps: self,
            strides: k.strides(&self.operand.strides),
            input: behind(&conv.input),
            output: behind(&self.output),
            kernel: k.divisors(&conv.kernel),
            channels: self.channels.map(|n| k.divisor(n, k.index)),
            stride: steps_of(&conv.stride),
            dilation: steps_of(&conv.dilation),
            input_dilation: steps_of(&conv.input_dilation),
            low: steps_of(&conv.padding.iter().map(|padding| padding.0).collect::<Vec<_>>()),
            last: extents(&conv.kernel.iter().map(|size| size - 1).collect::<Vec<_>>()),
            grid: [steps_of(steps), extents(sizes)],
            outputs,
        })
    }

    fn along_depth(&self) -> bool {
        match self.role {
            Tap::Patches | Tap::Weights | Tap::Spread => true,
            Tap::Turned | Tap::Outputs | Tap::Windows => false,
        }
    }

    fn width(&self, most: u32) -> u32 {
        // Neighbours are channels in every role; those of a group stay together.
        let [cin, cout] = self.channels;
        let channels = match self.role {
            Tap::Patches | Tap::Windows | Tap::Weights | Tap::Turned => cin,
            Tap::Spread | Tap::Outputs => cout,
        };
        let mut most = most.max(1);
        while !channels.is_multiple_of(most as usize) {
            most /= 2;
        }
        side_by_side(self.operand, self.spatial() + 1, most)
    }
}
