//! What kernels see of a convolution: channels, and for each axis which taps meet which inputs.

use super::ConvProblem;
use crate::memory::listed;

/// One spatial axis. Output `o` takes tap `t` at dilated input position
/// `o * stride + t * dilation - pad`, which exists if `input_dilation` divides it and the
/// quotient is below `input`. Taps count in the direction in which that position grows.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub input: usize,
    pub taps: usize,
    pub output: usize,
    pub stride: isize,
    pub dilation: isize,
    pub input_dilation: isize,
    pub pad: isize,
    /// Whether tap `t` is stored at `taps - 1 - t` in the weights.
    pub flip: bool,
}

/// The taps of one output along one axis: tap `first_tap + i * tap_step` meets input
/// `first_input + i * input_step`, for `i < count`; the steps belong to the axis.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taps {
    pub first_tap: usize,
    pub first_input: usize,
    pub count: usize,
}

impl Taps {
    /// Whether another output meets the same taps, elsewhere.
    pub fn is_like(&self, other: &Taps) -> bool {
        (self.first_tap, self.count) == (other.first_tap, other.count)
    }
}

impl Axis {
    pub fn tap_step(&self) -> usize {
        (self.input_dilation / gcd(self.dilation, self.input_dilation)) as usize
    }

    pub fn input_step(&self) -> usize {
        (self.dilation / gcd(self.dilation, self.input_dilation)) as usize
    }

    pub fn taps(&self, o: usize) -> Taps {
        let base = o as isize * self.stride - self.pad;
        let period = self.tap_step() as isize;
        let meets = |t: &isize| (base + t * self.dilation).rem_euclid(self.input_dilation) == 0;
        let Some(phase) = (0..period.min(self.taps as isize)).find(meets) else {
            return Taps::default();
        };
        let input_at = |t: isize| (base + t * self.dilation).div_euclid(self.input_dilation);
        let step = self.input_step() as isize;
        let skipped = (-input_at(phase)).max(0).div_ceil_signed(step);
        // Behind the last tap there may be no number for what it would meet.
        let first = phase.saturating_add(skipped.saturating_mul(period));
        if first >= self.taps as isize {
            return Taps::default();
        }
        let first_input = input_at(first);
        let by_taps = (self.taps as isize - first).div_ceil_signed(period);
        let by_input = (self.input as isize - first_input).max(0).div_ceil_signed(step);
        let count = by_taps.min(by_input) as usize;
        if count == 0 {
            return Taps::default();
        }
        Taps { first_tap: first as usize, first_input: first_input as usize, count }
    }

    /// Where tap `t` is stored.
    pub fn stored(&self, t: usize) -> usize {
        if self.flip { self.taps - 1 - t } else { t }
    }
}

/// A convolution as a forward one.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub batch: usize,
    pub groups: usize,
    /// Channels of the operand that is read, in one group and in all.
    pub c_in: usize,
    pub c_out: usize,
    pub axes: Vec<Axis>,
    /// Whether the weights are stored with the two channel axes of a group exchanged.
    pub transposed: bool,
}

impl Geometry {
    pub fn forward(p: &ConvProblem) -> Geometry {
        let axes = (0..p.input.len()).map(|d| Axis {
            input: p.input[d],
            taps: p.kernel[d],
            output: p.output[d],
            stride: p.stride[d] as isize,
            dilation: p.dilation[d] as isize,
            input_dilation: p.input_dilation[d] as isize,
            pad: p.padding[d].0 as isize,
            flip: p.flip,
        });
        Geometry {
            batch: p.batch,
            groups: p.groups,
            c_in: p.in_channels / p.groups,
            c_out: p.out_channels / p.groups,
            axes: axes.collect(),
            transposed: false,
        }
    }

    /// The input gradient reads dy with strides and input dilations exchanged, taps reversed.
    pub fn input_grad(p: &ConvProblem) -> Geometry {
        let axes = (0..p.input.len()).map(|d| {
            let (dilation, taps) = (p.dilation[d] as isize, p.kernel[d] as isize);
            Axis {
                input: p.output[d],
                taps: p.kernel[d],
                output: p.input[d],
                stride: p.input_dilation[d] as isize,
                dilation,
                input_dilation: p.stride[d] as isize,
                pad: dilation * (taps - 1) - p.padding[d].0 as isize,
                flip: !p.flip,
            }
        });
        Geometry {
            batch: p.batch,
            groups: p.groups,
            c_in: p.out_channels / p.groups,
            c_out: p.in_channels / p.groups,
            axes: axes.collect(),
            transposed: true,
        }
    }

    pub fn inputs(&self) -> usize {
        self.axes.iter().map(|a| a.input).product()
    }

    pub fn outputs(&self) -> usize {
        self.axes.iter().map(|a| a.output).product()
    }

    pub fn taps(&self) -> usize {
        self.axes.iter().map(|a| a.taps).product()
    }

    /// The taps of every output, axis by axis.
    pub fn tables(&self) -> Vec<Vec<Taps>> {
        self.axes.iter().map(|a| listed(a.output, |o| a.taps(o))).collect()
    }

    /// Position in the stored weights of a tap, given by its index in growing order.
    pub fn stored_tap(&self, mut t: usize) -> usize {
        let (mut at, mut size) = (0, 1);
        for axis in self.axes.iter().rev() {
            at += axis.stored(t % axis.taps) * size;
            t /= axis.taps;
            size *= axis.taps;
        }
        at
    }

    /// Index in the stored weights of `(group, c_out, stored tap, c_in)`.
    pub fn weight_at(&self, g: usize, co: usize, stored: usize, ci: usize) -> usize {
        let (row, col, cols) = if self.transposed {
            (g * self.c_in + ci, co, self.c_out)
        } else {
            (g * self.c_out + co, ci, self.c_in)
        };
        (row * self.taps() + stored) * cols + col
    }
}

trait DivCeil {
    fn div_ceil_signed(self, by: Self) -> Self;
}

impl DivCeil for isize {
    fn div_ceil_signed(self, by: isize) -> isize {
        self.div_euclid(by) + isize::from(self.rem_euclid(by) != 0)
    }
}

pub(super) fn gcd(a: isize, b: isize) -> isize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_may_be_as_long_as_numbers_go() {
        let axis = Axis {
            input: 5,
            taps: 1,
            output: 5,
            stride: 1,
            dilation: isize::MAX,
            input_dilation: 1,
            pad: 0,
            flip: false,
        };
        for o in 0..5 {
            let taps = axis.taps(o);
            assert_eq!((taps.first_tap, taps.first_input, taps.count), (0, o, 1));
        }
        let far =
            Axis { input: 1, taps: 3, dilation: 1, input_dilation: isize::MAX, pad: 1, ..axis };
        let met: Vec<_> = (0..3).map(|o| (far.taps(o).first_tap, far.taps(o).count)).collect();
        assert_eq!(met, [(1, 1), (0, 1), (0, 0)]);
    }

    #[test]
    fn taps_match_the_definition() {
        for (stride, dilation, input_dilation) in
            (1..4).flat_map(|s| (1..5).flat_map(move |d| (1..5).map(move |i| (s, d, i))))
        {
            for pad in -3..6 {
                let axis = Axis {
                    input: 5,
                    taps: 4,
                    output: 12,
                    stride,
                    dilation,
                    input_dilation,
                    pad,
                    flip: false,
                };
                for o in 0..12usize {
                    let want: Vec<_> = (0..4isize)
                        .filter_map(|t| {
                            let q = o as isize * stride + t * dilation - pad;
                            let i = q.div_euclid(input_dilation);
                            (q % input_dilation == 0 && (0..5).contains(&i))
                                .then_some((t as usize, i as usize))
                        })
                        .collect();
                    let got = axis.taps(o);
                    let got: Vec<_> = (0..got.count)
                        .map(|i| {
                            let tap = got.first_tap + i * axis.tap_step();
                            (tap, got.first_input + i * axis.input_step())
                        })
                        .collect();
                    assert_eq!(got, want, "{axis:?} at {o}");
                }
            }
        }
    }
}
