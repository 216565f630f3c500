//! The part of a convolution's input that a block has in shared memory: what some neighbouring
//! places of the output read, with the padding around it.
//!
//! Every element that a place reads through a tap lies there as far from the place's first one as
//! for all other places. So a product takes its rows from the patch as they are: an element is at
//! the sum of two offsets, one for the place, one for the tap and channel.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::{Conv, ConvRole};

use super::super::Draft;
use super::super::view::{View, place, side_by_side, unflatten};
use super::gather::Overhead;
use super::taps::unsigned;
use crate::ir::{Number, Shared, Target, Ty, Val};

/// Vectors that a thread loads before it stores the first.
const TOGETHER: u32 = 8;
/// Threads that bring a row together.
const LANES: u32 = 32;

/// How an input is shared.
#[derive(Clone, Debug)]
pub struct Patch {
    /// The kernel's sizes, and how far apart its taps are.
    pub kernel: [usize; 2],
    dilation: [usize; 2],
    /// The spatial sizes of what is read and of the places that read it, and images.
    input: [usize; 2],
    pub output: [usize; 2],
    pub images: usize,
    /// What is padded before the first place; less than nothing where the kernel does not reach it.
    low: [i64; 2],
    /// Channels, and how many of them are shared at a time.
    pub channels: u32,
    pub chunk: u32,
    /// Elements from a place to the next one.
    pitch: u32,
    /// Rows.
    tall: u32,
    /// The strides of the input along images, rows, columns and channels.
    from: [isize; 4],
    /// The vector width of loads, and their dtype.
    width: u32,
    dtype: DType,
}

/// A row of the patch: where the input has its first column, where that goes, whether the input has
/// it, and whether the patch does.
struct Row<'k> {
    from: Val<'k>,
    to: Val<'k>,
    there: Val<'k>,
    within: Val<'k>,
}

/// A vector that was loaded: its values, whether they are there, where they go and whether they do.
struct Vector<'k> {
    values: Vec<Val<'k>>,
    there: Val<'k>,
    to: Val<'k>,
    within: Val<'k>,
}

/// Which offset of the patch the threads of a matrix unit read next to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rows {
    /// Rows are places: neighbouring threads have 8 places and 4 channels.
    Places,
    /// Rows are channels: neighbouring threads have 8 channels and 4 places.
    Channels,
}

/// The sizes of up to two axes as those of two: one axis is the second.
fn two(sizes: &[usize], first: usize) -> [usize; 2] {
    match *sizes {
        [only] => [first, only],
        _ => [sizes[0], sizes[1]],
    }
}

/// The strides of images or output channels, up to two axes, and channels, likewise.
pub fn four(strides: &[isize]) -> [isize; 4] {
    match *strides {
        [outer, only, channels] => [outer, 0, only, channels],
        _ => [strides[0], strides[1], strides[2], strides[3]],
    }
}

/// An element of `dtype` as it is multiplied, and 0 for what is not there.
pub fn prepared<'k>(v: Val<'k>, dtype: DType, there: Val<'k>) -> Val<'k> {
    let v = Number::Real(v).cast(dtype, DType::F32).real();
    there.select(if dtype == DType::F32 { v.tf32() } else { v }, 0.0)
}

impl Patch {
    /// The patch of the first operand of a convolution, if it can be shared: all of its channels,
    /// no rows of it yet.
    pub fn of(conv: &Conv, output: &[usize], segment: &Segment, target: &Target) -> Option<Patch> {
        let s = conv.input.len();
        let ones = |sizes: &[usize]| sizes.iter().all(|&size| size == 1);
        let fits = matches!(s, 1 | 2)
            && conv.groups == 1
            && ones(&conv.stride)
            && ones(&conv.input_dilation)
            && target.copies
            && segment.outputs[0].aval.shape.size() < 1 << 30;
        if !fits {
            return None;
        }
        let x = &segment.inputs[0];
        let is_back = conv.role == ConvRole::InputGrad;
        let low: Vec<i64> = (0..s)
            .map(|a| {
                let before = conv.padding[a].0 as i64;
                let reach = (conv.kernel[a] as i64 - 1) * conv.dilation[a] as i64;
                if is_back { reach - before } else { before }
            })
            .collect();
        let (input, output) = match is_back {
            true => (two(output, 1), two(&conv.input, 1)),
            false => (two(&conv.input, 1), two(output, 1)),
        };
        let channels = u32::try_from(x.aval.shape[s + 1]).ok()?;
        let most = (target.vector_bytes / x.aval.dtype.size()) as u32;
        Some(Patch {
            kernel: two(&conv.kernel, 1),
            dilation: two(&conv.dilation, 1),
            input,
            output,
            images: x.aval.shape[0],
            low: if s == 1 { [0, low[0]] } else { [low[0], low[1]] },
            channels,
            chunk: channels,
            pitch: channels,
            tall: 0,
            from: four(&x.strides),
            width: side_by_side(x, s + 1, most),
            dtype: x.aval.dtype,
        })
    }

    /// The same with this many rows and channels at a time, for products with such rows.
    pub fn cut(&self, tall: u32, parts: u32, rows: Rows) -> Patch {
        let chunk = self.channels.div_ceil(parts).next_multiple_of(self.width);
        let pitch = match rows {
            // Neighbouring taps are neighbours, too.
            _ if chunk < 8 => chunk,
            Rows::Places if chunk % 8 == 4 => chunk,
            Rows::Places => chunk.next_multiple_of(8) + 4,
            Rows::Channels if chunk % 16 <= 8 => (chunk - chunk % 16) + 8,
            Rows::Channels => chunk.next_multiple_of(16) + 8,
        };
        Patch { tall, chunk, pitch, ..self.clone() }
    }

    /// Rows of the patch of so many neighbouring places, wherever they start.
    pub fn tall_of(&self, places: u32) -> u32 {
        let rows = (places as usize - 1).div_ceil(self.output[1]) + 1;
        // They go on in the next image, whose padding comes between.
        let images = (self.output[0] + rows - 2) / self.output[0];
        let around = self.padded()[0] - self.output[0];
        (rows + around + images * around) as u32
    }

    /// Rows and columns of the input with its padding.
    pub fn padded(&self) -> [usize; 2] {
        [0, 1].map(|a: usize| self.output[a] + (self.kernel[a] - 1) * self.dilation[a])
    }

    /// The pitch of rows: their places, and padding against bank conflicts of threads that go on in
    /// the next row.
    fn row(&self) -> u32 {
        let wide = self.padded()[1] as u32;
        let beyond = (wide - self.output[1] as u32) * self.pitch;
        wide * self.pitch + (32 - beyond % 32) % 32
    }

    /// Elements of the patch.
    pub fn len(&self) -> u32 {
        self.tall * self.row()
    }

    /// How many times as many channels as are shared at a time there are.
    pub fn chunks(&self) -> u32 {
        self.channels.div_ceil(self.chunk)
    }

    pub fn taps(&self) -> u32 {
        (self.kernel[0] * self.kernel[1]) as u32
    }

    /// The row of the padded input, counted over all images, where a place reads first, and the
    /// place's column.
    pub fn start<'k>(&self, place: Val<'k>) -> [Val<'k>; 2] {
        let [tall, wide] = self.output.map(|n| place.k().fixed(n as u32, place.ty));
        let place = unflatten(place, &[wide, tall, wide]);
        [place[0] * self.padded()[0] as u32 + place[1], place[2]]
    }

    /// Where a place reads first in the patch that starts at `first_row`.
    pub fn of_place<'k>(&self, place: Val<'k>, first_row: Val<'k>) -> Val<'k> {
        let [row, column] = self.start(place);
        let row = row - first_row;
        row.convert(Ty::U32) * self.row() + column.convert(Ty::U32) * self.pitch
    }

    /// How far from there a tap and channel are, counted together.
    pub fn of_tap<'k>(&self, index: Val<'k>, is_turned: bool) -> Val<'k> {
        let fixed = |n| index.k().fixed(n, index.ty);
        let at = unflatten(index, &[self.taps(), self.chunk].map(fixed));
        let tap = if is_turned { self.turned(at[0]) } else { at[0] };
        let tap = unflatten(tap, &self.kernel.map(|n| index.k().fixed(n as u32, index.ty)));
        let apart = [self.dilation[0] as u32 * self.row(), self.dilation[1] as u32 * self.pitch];
        let taps = tap.into_iter().zip(apart);
        taps.fold(at[1].convert(Ty::U32), |at, (tap, apart)| at + tap.convert(Ty::U32) * apart)
    }

    /// A tap of the kernel turned round.
    pub fn turned<'k>(&self, tap: Val<'k>) -> Val<'k> {
        tap.like(i64::from(self.taps()) - 1) - tap
    }

    /// The columns that the input has: where they start in the padded row, the input's own column
    /// there, and how many they are.
    fn columns(&self) -> [u32; 3] {
        let first = self.low[1].max(0);
        let own = first - self.low[1];
        let there = (self.input[1] as i64 - own).min(self.padded()[1] as i64 - first).max(0);
        [first, own, there].map(|v| v as u32)
    }

    /// Vectors of a row, and rows that each 32 of the threads load before they store the first.
    fn vectors(&self, threads: u32) -> [u32; 2] {
        let vectors = self.columns()[2] * (self.chunk / self.width);
        let own = self.tall.div_ceil(threads / LANES).max(1);
        [vectors, (TOGETHER / vectors.div_ceil(LANES).max(1)).clamp(1, own)]
    }

    /// What it takes to share a chunk.
    pub fn overhead(&self, threads: u32) -> Overhead {
        let [vectors, together] = self.vectors(threads);
        let turns = f64::from(self.tall.div_ceil(threads / LANES * together));
        let each = f64::from(vectors.div_ceil(LANES));
        let rows = f64::from(self.tall);
        let bytes = f64::from(vectors * self.width) * self.dtype.size() as f64;
        Overhead {
            instructions: rows * f64::from(LANES) * (each * f64::from(12 + 5 * self.width) + 30.0),
            waits: turns * (each / f64::from(TOGETHER)).ceil(),
            bytes: rows * bytes,
        }
    }

    /// Clears the patch: what lies beside the input's columns is not written again.
    pub fn clear(&self, k: &Draft, to: Shared) {
        let zero = k.f32(0.0);
        k.range(k.thread(), to.len, k.block_size(), |at| to.store(at, zero));
    }

    /// Brings a chunk of channels of the rows from `first_row` on into a patch that was cleared.
    pub fn share<'k>(
        &self,
        k: &'k Draft,
        x: View<'k>,
        to: Shared,
        first_row: Val<'k>,
        chunk: Val<'k>,
    ) {
        let threads = k.block_size();
        let [vectors, together] = self.vectors(threads);
        let thread = k.thread();
        let (warp, lane) = (thread / LANES, thread % LANES);
        let warps = threads / LANES;
        let turns: Vec<u32> = (0..vectors.div_ceil(LANES)).collect();
        k.range(warp, self.tall, warps * together, |first| {
            let rows: Vec<Row<'k>> = (0..together)
                .map(|i| self.find_row(k, x, first_row, first + i * warps, chunk))
                .collect();
            for turns in turns.chunks(TOGETHER as usize) {
                // All loads are under way before the first is waited for.
                let mut held = Vec::new();
                for row in &rows {
                    for turn in turns {
                        held.push(self.load(k, x, row, lane + turn * LANES, chunk));
                    }
                }
                for Vector { values, there, to: at, within } in held {
                    k.when(within, || {
                        let values: Vec<Val<'k>> =
                            values.iter().map(|&v| prepared(v, self.dtype, there)).collect();
                        to.store_vector(at, &values);
                    });
                }
            }
        });
    }

    /// A row of the patch, counted from `first_row` of the padded input.
    fn find_row<'k>(
        &self,
        k: &'k Draft,
        x: View<'k>,
        first_row: Val<'k>,
        row: Val<'k>,
        chunk: Val<'k>,
    ) -> Row<'k> {
        let [first, own, _] = self.columns();
        let within = row.lt(self.tall);
        let to = row * self.row() + first * self.pitch;
        let row = first_row + k.as_index(row);
        let tall = self.padded()[0] as u32;
        let (image, y) = (row / tall, row % tall - self.low[0]);
        // Below the first place it wraps far beyond the size.
        let holds = y.convert(unsigned(k.index)).lt(self.input[0] as u32);
        let there = within & holds & image.lt(self.images);
        let channel = k.as_index(chunk * self.chunk);
        let column = k.index(i64::from(own));
        let from = x.at(&[image, y, column, channel], &k.literals(&self.from));
        Row { from, to, there, within }
    }

    /// A vector of a row.
    fn load<'k>(
        &self,
        k: &'k Draft,
        x: View<'k>,
        row: &Row<'k>,
        vector: Val<'k>,
        chunk: Val<'k>,
    ) -> Vector<'k> {
        let lanes = self.chunk / self.width;
        let known = vector.lt(self.columns()[2] * lanes);
        let within = row.within & known;
        let mut there = row.there & known;
        let (column, lane) = (vector / lanes, vector % lanes);
        let own = lane * self.width;
        if self.chunks() * self.chunk > self.channels {
            there = there & (chunk * self.chunk + own).lt(self.channels);
        }
        let to = row.to + column * self.pitch + own;
        let along = k.literals(&self.from[2..]);
        let at = place(row.from, &[k.as_index(column), k.as_index(own)], &along);
        let at = there.select(at, x.offset);
        Vector { values: x.buf.load_vector(at, self.width), there, to, within }
    }

    /// What a kernel that shares the patch takes for granted of its input.
    pub fn assume(&self, k: &Draft, x: View<'_>) {
        k.assume(x.bound, self.width);
    }
}
