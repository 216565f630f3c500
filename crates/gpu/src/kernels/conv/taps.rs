//! The operands of a convolution as those of a product, read where they lie (implicit GEMM).

use cupola_core::backend::Operand;
use cupola_core::prim::Conv;

use super::super::Draft;
use super::super::gemm::Source;
use super::super::view::{Axes, place, side_by_side, unflatten};
use crate::ir::{Ty, Val};

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

    /// The kernel's place as it stands in memory.
    fn turned<'k>(&self, tap: &[Val<'k>]) -> Vec<Val<'k>> {
        if !self.conv.flip {
            return tap.to_vec();
        }
        tap.iter()
            .zip(&self.conv.kernel)
            .map(|(&tap, &size)| tap.like(size as i64 - 1) - tap)
            .collect()
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

    /// Where the element is whose places along the spatial axes are these sums, and whether it is
    /// there. What lies below the first place wraps far beyond the size.
    fn linear<'k>(
        &self,
        k: &'k Draft,
        outer: &[Val<'k>],
        inner: &[Val<'k>],
    ) -> (Val<'k>, Option<Val<'k>>) {
        let below = outer[1..].iter().zip(&inner[1..]).zip(self.grid().1);
        let below = below.map(|((&a, &b), &size)| (a + b).convert(unsigned(k.index)).lt(size));
        let there = below.reduce(|known, below| known & below);
        (outer[0] + inner[0], there)
    }

    /// What a row or a depth needs: where it starts and its places along the spatial axes, which in
    /// the linear form move the start, too.
    fn needs<'k>(&self, start: Val<'k>, places: Vec<Val<'k>>) -> Vec<Val<'k>> {
        let spatial = &self.operand.strides[1..=self.spatial()];
        let start = if self.is_linear() { place(start, &places, spatial) } else { start };
        std::iter::once(start).chain(places).collect()
    }

    /// `index` minus what is padded before the first place.
    fn without_padding<'k>(&self, index: Vec<Val<'k>>) -> Vec<Val<'k>> {
        index.into_iter().zip(&self.conv.padding).map(|(i, padding)| i - padding.0).collect()
    }

    /// The same where places stand apart: of x in its dilated input, and of y, since
    /// o·stride = i·input_dilation + low − tap·dilation. Nothing is there between them.
    fn divided<'k>(
        &self,
        k: &'k Draft,
        outer: &[Val<'k>],
        inner: &[Val<'k>],
    ) -> (Val<'k>, Option<Val<'k>>) {
        let (steps, sizes) = self.grid();
        let mut at = outer[0] + inner[0];
        let mut there: Option<Val<'k>> = None;
        for axis in 0..self.spatial() {
            let p = (outer[axis + 1] + inner[axis + 1]).convert(unsigned(k.index));
            let exact = (p % steps[axis]).eq(0);
            let p = p / steps[axis];
            // A place below zero stays far beyond the size after the division, too.
            let holds = p.lt(sizes[axis]) & exact;
            there = Some(there.map_or(holds, |known| known & holds));
            at = place(at, &[k.as_index(p)], &self.operand.strides[axis + 1..=axis + 1]);
        }
        (at, there)
    }
}

fn scaled<'k>(index: &[Val<'k>], by: &[usize]) -> Vec<Val<'k>> {
    index.iter().zip(by).map(|(&i, &by)| i * by).collect()
}

/// The unsigned type of an index: what is below zero is then beyond every size.
pub fn unsigned(index: Ty) -> Ty {
    if index == Ty::I64 { Ty::U64 } else { Ty::U32 }
}

impl Source for Taps<'_> {
    fn outer<'k>(&self, _: &'k Draft, group: Val<'k>, index: Val<'k>) -> Vec<Val<'k>> {
        let s = self.spatial();
        let strides = &self.operand.strides;
        let [cin, cout] = self.channels;
        let zero = index.like(0);
        match self.role {
            Tap::Patches => {
                let at = unflatten(index, &[&[usize::MAX], &self.output[..]].concat());
                let start = place(zero, &[at[0], group * cin], &[strides[0], strides[s + 1]]);
                self.needs(start, self.without_padding(scaled(&at[1..], &self.conv.stride)))
            }
            Tap::Spread => {
                let at = unflatten(index, &[&[usize::MAX], &self.conv.input[..]].concat());
                let start = place(zero, &[at[0], group * cout], &[strides[0], strides[s + 1]]);
                let places = scaled(&at[1..], &self.conv.input_dilation);
                let places = places.into_iter().zip(&self.conv.padding);
                self.needs(start, places.map(|(i, padding)| i + padding.0).collect())
            }
            Tap::Weights => vec![place(zero, &[group * cout + index], &strides[..1])],
            Tap::Turned => {
                vec![place(zero, &[group * cout, index], &[strides[0], strides[s + 1]])]
            }
            Tap::Outputs => vec![place(zero, &[group * cout + index], &strides[s + 1..])],
            Tap::Windows => {
                let at = unflatten(index, &[&self.conv.kernel[..], &[cin]].concat());
                let start = place(zero, &[group * cin + at[s]], &strides[s + 1..]);
                // The result is w's own place, so taps run as the kernel lies.
                let taps = scaled(&self.turned(&at[..s]), &self.conv.dilation);
                self.needs(start, self.without_padding(taps))
            }
        }
    }

    fn inner<'k>(&self, _: &'k Draft, depth: Val<'k>) -> Vec<Val<'k>> {
        let s = self.spatial();
        let strides = &self.operand.strides;
        let [cin, cout] = self.channels;
        let zero = depth.like(0);
        // A depth as the tap and channel that it is.
        let tap = |channels| unflatten(depth, &[&self.conv.kernel[..], &[channels]].concat());
        match self.role {
            Tap::Patches | Tap::Spread => {
                let at = tap(if self.role == Tap::Patches { cin } else { cout });
                let start = place(zero, &at[s..], &strides[s + 1..]);
                let mut places = scaled(&at[..s], &self.conv.dilation);
                if self.role == Tap::Spread {
                    // The kernel leads back from the output.
                    places = places.iter().map(|&tap| zero - tap).collect();
                }
                self.needs(start, places)
            }
            Tap::Weights => {
                let at = tap(cin);
                let start = place(zero, &self.turned(&at[..s]), &strides[1..=s]);
                vec![place(start, &at[s..], &strides[s + 1..])]
            }
            Tap::Turned => {
                let at = tap(cout);
                let start = place(zero, &self.turned(&at[..s]), &strides[1..=s]);
                vec![place(start, &at[s..], &strides[..1])]
            }
            Tap::Outputs => {
                let sizes = [&[self.operand.aval.shape[0]], &self.output[..]].concat();
                let axes = Axes::joined(&sizes, &[&strides[..=s]]);
                vec![place(zero, &unflatten(depth, &axes.sizes), &axes.strides[0])]
            }
            Tap::Windows => {
                let at = unflatten(depth, &[&[usize::MAX], &self.output[..]].concat());
                let start = place(zero, &at[..1], &strides[..1]);
                self.needs(start, scaled(&at[1..], &self.conv.stride))
            }
        }
    }

    fn place<'k>(
        &self,
        k: &'k Draft,
        outer: &[Val<'k>],
        inner: &[Val<'k>],
    ) -> (Val<'k>, Option<Val<'k>>) {
        match self.is_linear() {
            true => self.linear(k, outer, inner),
            false => self.divided(k, outer, inner),
        }
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
