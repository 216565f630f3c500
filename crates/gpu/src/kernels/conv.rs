//! Convolutions and their gradients, as products whose operands are read where they lie.

use cupola_core::backend::{Operand, Segment};
use cupola_core::prim::{Conv, ConvRole};

use super::gemm::{Product, Sizes, Source, product};
use super::{Draft, Missing, Program};
use crate::ir::{Target, Ty, Val};

/// Which index of the convolution an operand's place follows from.
struct Taps<'a> {
    conv: &'a Conv,
    operand: &'a Operand,
    role: Tap,
    /// Spatial sizes of y.
    output: Vec<usize>,
    /// Channels of x and of y in a group.
    channels: [usize; 2],
}

/// The operands of the three roles, by what their rows and their summed axis count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tap {
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

    /// From o and k to the element of x: its place along the spatial axes, and whether it is there.
    /// What belongs to o alone and to k alone has been multiplied before.
    fn input_of(
        &self,
        draft: &mut Draft<'_>,
        o: &[Val],
        k: &[Val],
        strides: &[isize],
    ) -> (Val, Option<Val>) {
        let mut at = draft.index(0);
        let mut there: Option<Val> = None;
        for axis in 0..self.spatial() {
            // In the padded and dilated input; below the padding it wraps far beyond the size.
            let p = draft.build.add(o[axis], k[axis]);
            let low = draft.index(self.conv.padding[axis].0 as i64);
            let p = draft.build.sub(p, low);
            let p = draft.build.convert(p, unsigned(draft.index));
            let (p, inside) = match self.conv.input_dilation[axis] {
                1 => (p, None),
                step => {
                    let step = draft.build.int(step as i64, unsigned(draft.index));
                    let zero = draft.build.int(0, unsigned(draft.index));
                    let left = draft.build.rem(p, step);
                    (draft.build.div(p, step), Some(draft.build.eq(left, zero)))
                }
            };
            // A place below zero stays far beyond the size after the division, too.
            let size = self.conv.input[axis];
            let reach = draft.build.int(size as i64, unsigned(draft.index));
            let below = draft.build.lt(p, reach);
            let holds = match inside {
                Some(inside) => draft.build.and(below, inside),
                None => below,
            };
            there = Some(match there {
                Some(known) => draft.build.and(known, holds),
                None => holds,
            });
            let p = draft.build.convert(p, draft.index);
            at = draft.place(at, &[p], &strides[axis..=axis]);
        }
        (at, there)
    }

    /// From i and k to the element of y.
    fn output_of(
        &self,
        draft: &mut Draft<'_>,
        i: &[Val],
        k: &[Val],
        strides: &[isize],
    ) -> (Val, Option<Val>) {
        let ty = unsigned(draft.index);
        let mut at = draft.index(0);
        let mut there: Option<Val> = None;
        for axis in 0..self.spatial() {
            // o·stride = i·input_dilation + low − k·dilation.
            let p = draft.build.sub(i[axis], k[axis]);
            let p = draft.build.convert(p, ty);
            let (o, exact) = match self.conv.stride[axis] {
                1 => (p, None),
                step => {
                    let (step, zero) = (draft.build.int(step as i64, ty), draft.build.int(0, ty));
                    let left = draft.build.rem(p, step);
                    (draft.build.div(p, step), Some(draft.build.eq(left, zero)))
                }
            };
            let size = draft.build.int(self.output[axis] as i64, ty);
            let below = draft.build.lt(o, size);
            let holds = match exact {
                Some(exact) => draft.build.and(below, exact),
                None => below,
            };
            there = Some(match there {
                Some(known) => draft.build.and(known, holds),
                None => holds,
            });
            let o = draft.build.convert(o, draft.index);
            at = draft.place(at, &[o], &strides[axis..=axis]);
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
fn unsigned(index: Ty) -> Ty {
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
                let mut needs = vec![start];
                needs.extend(Self::scaled(draft, &place[1..], &self.conv.stride));
                needs
            }
            Tap::Spread => {
                let place = Self::split(draft, index, &[&[usize::MAX], &self.conv.input]);
                let first = channel(draft, None, cout);
                let start = draft.place(zero, &[place[0], first], &[strides[0], strides[s + 1]]);
                let mut needs = vec![start];
                let scaled = Self::scaled(draft, &place[1..], &self.conv.input_dilation);
                for (&i, padding) in scaled.iter().zip(&self.conv.padding) {
                    let low = draft.index(padding.0 as i64);
                    needs.push(draft.build.add(i, low));
                }
                needs
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
                let mut needs = vec![start];
                needs.extend(Self::scaled(draft, &k, &self.conv.dilation));
                needs
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
                let mut needs = vec![start];
                needs.extend(Self::scaled(draft, &place[..s], &self.conv.dilation));
                needs
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
                let place = Self::split(draft, depth, &[&[usize::MAX], &self.output]);
                vec![draft.place(zero, &place, &strides[..=s])]
            }
            Tap::Windows => {
                let place = Self::split(draft, depth, &[&[usize::MAX], &self.output]);
                let start = draft.place(zero, &place[..1], &strides[..1]);
                let mut needs = vec![start];
                needs.extend(Self::scaled(draft, &place[1..], &self.conv.stride));
                needs
            }
        }
    }

    fn place(&self, draft: &mut Draft<'_>, outer: &[Val], inner: &[Val]) -> (Val, Option<Val>) {
        let start = draft.build.add(outer[0], inner[0]);
        let strides = &self.operand.strides[1..=self.spatial()];
        let (at, there) = match self.role {
            Tap::Patches => self.input_of(draft, &outer[1..], &inner[1..], strides),
            Tap::Windows => self.input_of(draft, &inner[1..], &outer[1..], strides),
            Tap::Spread => self.output_of(draft, &outer[1..], &inner[1..], strides),
            Tap::Weights | Tap::Turned | Tap::Outputs => return (start, None),
        };
        (draft.build.add(start, at), there)
    }

    fn along_depth(&self) -> bool {
        match self.role {
            Tap::Patches | Tap::Weights | Tap::Spread => true,
            Tap::Turned | Tap::Outputs | Tap::Windows => false,
        }
    }
}

/// Adds the launches of a convolution.
pub fn conv(
    program: &mut Program,
    conv: &Conv,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let [a, b] = &segment.inputs[..2] else {
        return Err(Missing("a convolution of other than two operands".into()));
    };
    let out = &segment.outputs[0];
    let s = conv.input.len();
    let output = conv.output().map_err(|e| Missing(e.to_string()))?.to_vec();
    let groups = conv.groups;
    let count = |sizes: &[usize]| sizes.iter().product::<usize>() as u64;
    let (x_channels, y_channels, images) = match conv.role {
        ConvRole::Forward => (a.aval.shape[s + 1], out.aval.shape[s + 1], a.aval.shape[0]),
        ConvRole::InputGrad => (out.aval.shape[s + 1], a.aval.shape[s + 1], a.aval.shape[0]),
        ConvRole::WeightGrad => (a.aval.shape[s + 1], b.aval.shape[s + 1], a.aval.shape[0]),
    };
    let channels = [x_channels / groups, y_channels / groups];
    let (batch, taps) = (groups as u64, count(&conv.kernel));
    let images = images as u64;
    let [cin, cout] = channels.map(|c| c as u64);
    // The operands in the order of the product; the weight gradient has dy first.
    let (sizes, roles) = match conv.role {
        ConvRole::Forward => (
            Sizes { batch, rows: images * count(&output), columns: cout, depth: taps * cin },
            [Tap::Patches, Tap::Weights],
        ),
        ConvRole::InputGrad => (
            Sizes { batch, rows: images * count(&conv.input), columns: cin, depth: taps * cout },
            [Tap::Spread, Tap::Turned],
        ),
        ConvRole::WeightGrad => (
            Sizes { batch, rows: taps * cin, columns: cout, depth: images * count(&output) },
            [Tap::Windows, Tap::Outputs],
        ),
    };
    let source = |operand, role| Taps { conv, operand, role, output: output.clone(), channels };
    let (first, second) = (source(a, roles[0]), source(b, roles[1]));
    let result = |draft: &mut Draft<'_>, group: Val, row: Val, column: Val| {
        let per = |draft: &mut Draft<'_>, own: Val, per: usize| {
            let per = draft.index(per as i64);
            let start = draft.build.mul(group, per);
            draft.build.add(start, own)
        };
        let zero = draft.index(0);
        match conv.role {
            ConvRole::Forward | ConvRole::InputGrad => {
                let (space, own) = match conv.role {
                    ConvRole::Forward => (&output[..], channels[1]),
                    _ => (&conv.input[..], channels[0]),
                };
                let mut index = Taps::split(draft, row, &[&[usize::MAX], space]);
                let channel = per(draft, column, own);
                index.push(channel);
                draft.place(zero, &index, &out.strides)
            }
            ConvRole::WeightGrad => {
                let index = Taps::split(draft, row, &[&conv.kernel, &[channels[0]]]);
                let co = per(draft, column, channels[1]);
                let at = draft.place(zero, &[co], &out.strides[..1]);
                draft.place(at, &index, &out.strides[1..])
            }
        }
    };
    let product_of = Product {
        name: conv.role.name(),
        sizes,
        operand: a.aval.dtype,
        accumulate: conv.accumulate,
        first: &first,
        second: &second,
        result: &result,
    };
    product(program, &product_of, segment, target)
}
