//! The operands of a convolution as those of a product, read where they lie.

use cupola_core::backend::Operand;
use cupola_core::prim::Conv;

use super::super::Draft;
use super::super::gemm::Source;
use super::super::view::{Axes, side_by_side};
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

    /// The kernel's place k as it stands in memory.
    fn turned(&self, draft: &mut Draft<'_>, k: &[Val]) -> Vec<Val> {
        if !self.conv.flip {
            return k.to_vec();
        }
        (k.iter().zip(&self.conv.kernel))
            .map(|(&k, &size)| {
                let last = draft.index(size as i64 - 1);
                draft.build.sub(last, k)
            })
            .collect()
    }

    /// Splits an index into (lead.., spatial.., trail..) by these sizes.
    fn split(draft: &mut Draft<'_>, index: Val, sizes: &[&[usize]]) -> Vec<Val> {
        draft.unflatten(index, &sizes.concat())
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
    fn linear(&self, draft: &mut Draft<'_>, outer: &[Val], inner: &[Val]) -> (Val, Option<Val>) {
        let mut there: Option<Val> = None;
        for ((&a, &b), &size) in outer[1..].iter().zip(&inner[1..]).zip(self.grid().1) {
            let p = draft.build.add(a, b);
            let p = draft.build.convert(p, unsigned(draft.index));
            let reach = draft.build.int(size as i64, unsigned(draft.index));
            let below = draft.build.lt(p, reach);
            there = Some(match there {
                Some(known) => draft.build.and(known, below),
                None => below,
            });
        }
        (draft.build.add(outer[0], inner[0]), there)
    }

    /// What a row or a depth needs: where it starts and its places along the spatial axes, which in
    /// the linear form move the start, too.
    fn needs(&self, draft: &mut Draft<'_>, start: Val, places: Vec<Val>) -> Vec<Val> {
        let spatial = &self.operand.strides[1..=self.spatial()];
        let start = if self.is_linear() { draft.place(start, &places, spatial) } else { start };
        std::iter::once(start).chain(places).collect()
    }

    /// `index` minus what is padded before the first place.
    fn without_padding(&self, draft: &mut Draft<'_>, index: Vec<Val>) -> Vec<Val> {
        (index.into_iter().zip(&self.conv.padding))
            .map(|(i, padding)| {
                let low = draft.index(padding.0 as i64);
                draft.build.sub(i, low)
            })
            .collect()
    }

    /// The same where places stand apart: of x in its dilated input, and of y, since
    /// o·stride = i·input_dilation + low − k·dilation. Nothing is there between them.
    fn divided(&self, draft: &mut Draft<'_>, outer: &[Val], inner: &[Val]) -> (Val, Option<Val>) {
        let ty = unsigned(draft.index);
        let (steps, sizes) = self.grid();
        let mut at = draft.build.add(outer[0], inner[0]);
        let mut there: Option<Val> = None;
        for axis in 0..self.spatial() {
            let p = draft.build.add(outer[axis + 1], inner[axis + 1]);
            let p = draft.build.convert(p, ty);
            let step = draft.build.int(steps[axis] as i64, ty);
            let zero = draft.build.int(0, ty);
            let left = draft.build.rem(p, step);
            let p = draft.build.div(p, step);
            let exact = draft.build.eq(left, zero);
            // A place below zero stays far beyond the size after the division, too.
            let reach = draft.build.int(sizes[axis] as i64, ty);
            let below = draft.build.lt(p, reach);
            let holds = draft.build.and(below, exact);
            there = Some(match there {
                Some(known) => draft.build.and(known, holds),
                None => holds,
            });
            let p = draft.build.convert(p, draft.index);
            at = draft.place(at, &[p], &self.operand.strides[axis + 1..=axis + 1]);
        }
        (at, there)
    }

    fn scaled(draft: &mut Draft<'_>, index: &[Val], by: &[usize]) -> Vec<Val> {
        (index.iter().zip(by))
            .map(|(&i, &by)| {
                let by = draft.index(by as i64);
                draft.build.mul(i, by)
            })
            .collect()
    }
}

/// The unsigned type of an index: what is below zero is then beyond every size.
pub fn unsigned(index: Ty) -> Ty {
    if index == Ty::I64 { Ty::U64 } else { Ty::U32 }
}

impl Source for Taps<'_> {
    fn outer(&self, draft: &mut Draft<'_>, group: Val, index: Val) -> Vec<Val> {
        let s = self.spatial();
        let strides = &self.operand.strides;
        let [cin, cout] = self.channels;
        let zero = draft.index(0);
        let channel = |draft: &mut Draft<'_>, own: Option<Val>, per: usize| {
            let per = draft.index(per as i64);
            let first = draft.build.mul(group, per);
            own.map_or(first, |own| draft.build.add(first, own))
        };
        match self.role {
            Tap::Patches => {
                let place = Self::split(draft, index, &[&[usize::MAX], &self.output]);
                let first = channel(draft, None, cin);
                let start = draft.place(zero, &[place[0], first], &[strides[0], strides[s + 1]]);
                let scaled = Self::scaled(draft, &place[1..], &self.conv.stride);
                let places = self.without_padding(draft, scaled);
                self.needs(draft, start, places)
            }
            Tap::Spread => {
                let place = Self::split(draft, index, &[&[usize::MAX], &self.conv.input]);
                let first = channel(draft, None, cout);
                let start = draft.place(zero, &[place[0], first], &[strides[0], strides[s + 1]]);
                let scaled = Self::scaled(draft, &place[1..], &self.conv.input_dilation);
                let places = (scaled.into_iter().zip(&self.conv.padding))
                    .map(|(i, padding)| {
                        let low = draft.index(padding.0 as i64);
                        draft.build.add(i, low)
                    })
                    .collect();
                self.needs(draft, start, places)
            }
            Tap::Weights => {
                let co = channel(draft, Some(index), cout);
                vec![draft.place(zero, &[co], &strides[..1])]
            }
            Tap::Turned => {
                let first = channel(draft, None, cout);
                vec![draft.place(zero, &[first, index], &[strides[0], strides[s + 1]])]
            }
            Tap::Outputs => {
                let co = channel(draft, Some(index), cout);
                vec![draft.place(zero, &[co], &strides[s + 1..])]
            }
            Tap::Windows => {
                let place = Self::split(draft, index, &[&self.conv.kernel, &[cin]]);
                let ci = channel(draft, Some(place[s]), cin);
                let start = draft.place(zero, &[ci], &strides[s + 1..]);
                // The result is w's own place, so k runs as the kernel lies.
                let k = self.turned(draft, &place[..s]);
                let scaled = Self::scaled(draft, &k, &self.conv.dilation);
                let places = self.without_padding(draft, scaled);
                self.needs(draft, start, places)
            }
        }
    }

    fn inner(&self, draft: &mut Draft<'_>, depth: Val) -> Vec<Val> {
        let s = self.spatial();
        let strides = &self.operand.strides;
        let [cin, cout] = self.channels;
        let zero = draft.index(0);
        match self.role {
            Tap::Patches | Tap::Spread => {
                let (channels, axis) =
                    if self.role == Tap::Patches { (cin, s + 1) } else { (cout, s + 1) };
                let place = Self::split(draft, depth, &[&self.conv.kernel, &[channels]]);
                let start = draft.place(zero, &[place[s]], &strides[axis..=axis]);
                let mut places = Self::scaled(draft, &place[..s], &self.conv.dilation);
                if self.role == Tap::Spread {
                    // The kernel leads back from the output.
                    let zero = draft.index(0);
                    places = places.iter().map(|&k| draft.build.sub(zero, k)).collect();
                }
                self.needs(draft, start, places)
            }
            Tap::Weights => {
                let place = Self::split(draft, depth, &[&self.conv.kernel, &[cin]]);
                let k = self.turned(draft, &place[..s]);
                let start = draft.place(zero, &k, &strides[1..=s]);
                vec![draft.place(start, &[place[s]], &strides[s + 1..])]
            }
            Tap::Turned => {
                let place = Self::split(draft, depth, &[&self.conv.kernel, &[cout]]);
                let k = self.turned(draft, &place[..s]);
                let start = draft.place(zero, &k, &strides[1..=s]);
                vec![draft.place(start, &[place[s]], &strides[..1])]
            }
            Tap::Outputs => {
                let sizes: Vec<usize> = std::iter::once(self.operand.aval.shape[0])
                    .chain(self.output.clone())
                    .collect();
                let axes = Axes::joined(&sizes, &[&strides[..=s]]);
                let place = draft.unflatten(depth, &axes.sizes);
                vec![draft.place(zero, &place, &axes.strides[0])]
            }
            Tap::Windows => {
                let place = Self::split(draft, depth, &[&[usize::MAX], &self.output]);
                let start = draft.place(zero, &place[..1], &strides[..1]);
                let places = Self::scaled(draft, &place[1..], &self.conv.stride);
                self.needs(draft, start, places)
            }
        }
    }

    fn place(&self, draft: &mut Draft<'_>, outer: &[Val], inner: &[Val]) -> (Val, Option<Val>) {
        match self.is_linear() {
            true => self.linear(draft, outer, inner),
            false => self.divided(draft, outer, inner),
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
