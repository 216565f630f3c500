//! The part of a convolution's input that a block shares: what some neighbouring places of the
//! output read, with the padding around it.
//!
//! Every element that a place reads through a tap lies there as far from the place's first one as
//! for all other places. So a product takes its rows from the patch as they are: an element is at
//! the sum of two offsets, one for the place, one for the tap and channel.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::{Conv, ConvRole};

use super::super::Draft;
use super::super::view::{View, side_by_side};
use super::gather::Work;
use super::taps::unsigned;
use crate::ir::{Build, Number, Shared, Target, Ty, Un, Val};

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
    /// How far apart places are.
    pitch: u32,
    /// Rows.
    tall: u32,
    /// The strides of the input along images, rows, columns and channels.
    from: [isize; 4],
    /// How many channels are loaded at once, and what they are.
    width: u32,
    dtype: DType,
}

/// A row of the patch: where the input has its first column, where that goes, whether the input has
/// it, and whether the patch does.
struct Row {
    from: Val,
    to: Val,
    there: Val,
    within: Val,
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

/// An element as it is multiplied, and 0 for what is not there.
pub fn prepared(b: &mut Build<'_>, dtype: DType, v: Val, there: Val) -> Val {
    let v = b.cast(Number::Real(v), dtype, DType::F32).real();
    let v = if dtype == DType::F32 { b.un(Un::Tf32, v) } else { v };
    let zero = b.f32(0.0);
    b.select(there, v, zero)
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

    /// How far apart rows are: their places, and a gap that lets threads meet other banks where
    /// they go on in the next row, too.
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
    pub fn start(&self, draft: &mut Draft<'_>, place: Val) -> [Val; 2] {
        let place = draft.unflatten(place, &[usize::MAX, self.output[0], self.output[1]]);
        let tall = draft.index(self.padded()[0] as i64);
        let row = draft.build.mul(place[0], tall);
        [draft.build.add(row, place[1]), place[2]]
    }

    /// Where a place reads first in the patch that starts at `first_row`.
    pub fn of_place(&self, draft: &mut Draft<'_>, place: Val, first_row: Val) -> Val {
        let [row, column] = self.start(draft, place);
        let row = draft.build.sub(row, first_row);
        let b = &mut draft.build;
        let (row, column) = (b.convert(row, Ty::U32), b.convert(column, Ty::U32));
        let (apart, pitch) = (b.u32(self.row()), b.u32(self.pitch));
        let (row, column) = (b.mul(row, apart), b.mul(column, pitch));
        b.add(row, column)
    }

    /// How far from there a tap and channel are, counted together.
    pub fn of_tap(&self, draft: &mut Draft<'_>, index: Val, is_turned: bool) -> Val {
        let sizes = [self.taps() as usize, self.chunk as usize];
        let at = draft.unflatten(index, &sizes);
        let tap = if is_turned { self.turned(draft, at[0]) } else { at[0] };
        let tap = draft.unflatten(tap, &self.kernel);
        let apart = [self.dilation[0] as u32 * self.row(), self.dilation[1] as u32 * self.pitch];
        let mut place = draft.build.convert(at[1], Ty::U32);
        for (k, apart) in tap.into_iter().zip(apart) {
            let k = draft.build.convert(k, Ty::U32);
            let apart = draft.build.u32(apart);
            let away = draft.build.mul(k, apart);
            place = draft.build.add(place, away);
        }
        place
    }

    /// A tap of the kernel turned round.
    pub fn turned(&self, draft: &mut Draft<'_>, tap: Val) -> Val {
        let last = draft.build.int(i64::from(self.taps()) - 1, tap.ty);
        draft.build.sub(last, tap)
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
    pub fn work(&self, threads: u32) -> Work {
        let [vectors, together] = self.vectors(threads);
        let turns = f64::from(self.tall.div_ceil(threads / LANES * together));
        let each = f64::from(vectors.div_ceil(LANES));
        let rows = f64::from(self.tall);
        let bytes = f64::from(vectors * self.width) * self.dtype.size() as f64;
        Work {
            instructions: rows * f64::from(LANES) * (each * f64::from(12 + 5 * self.width) + 30.0),
            waits: turns * (each / f64::from(TOGETHER)).ceil(),
            bytes: rows * bytes,
        }
    }

    /// Clears the patch: what lies beside the input's columns is not written again.
    pub fn clear(&self, draft: &mut Draft<'_>, to: Shared) {
        let (thread, threads) = (draft.build.thread(), draft.build.block_size());
        let (all, step, zero) =
            (draft.build.u32(to.len), draft.build.u32(threads), draft.build.f32(0.0));
        draft.range(thread, all, step, |draft, at| draft.build.store_shared(to, at, zero));
    }

    /// Brings a chunk of channels of the rows from `first_row` on into a patch that was cleared.
    pub fn share(&self, draft: &mut Draft<'_>, x: View, to: Shared, first_row: Val, chunk: Val) {
        let threads = draft.build.block_size();
        let [vectors, together] = self.vectors(threads);
        let (thread, lanes) = (draft.build.thread(), draft.build.u32(LANES));
        let (warp, lane) = (draft.build.div(thread, lanes), draft.build.rem(thread, lanes));
        let warps = threads / LANES;
        let (all, step) = (draft.build.u32(self.tall), draft.build.u32(warps * together));
        let turns: Vec<u32> = (0..vectors.div_ceil(LANES)).collect();
        draft.range(warp, all, step, |draft, first| {
            let rows: Vec<Row> = (0..together)
                .map(|i| {
                    let away = draft.build.u32(i * warps);
                    let row = draft.build.add(first, away);
                    self.find_row(draft, x, first_row, row, chunk)
                })
                .collect();
            for turns in turns.chunks(TOGETHER as usize) {
                let mut held = Vec::new();
                for row in &rows {
                    for turn in turns {
                        let away = draft.build.u32(turn * LANES);
                        let vector = draft.build.add(lane, away);
                        held.push(self.load(draft, x, row, vector, chunk, vectors));
                    }
                }
                for (values, there, place, within) in held {
                    self.store(draft, to, &values, there, place, within);
                }
            }
        });
    }

    /// A row of the patch, counted from `first_row` of the padded input.
    fn find_row(
        &self,
        draft: &mut Draft<'_>,
        x: View,
        first_row: Val,
        row: Val,
        chunk: Val,
    ) -> Row {
        let [first, own, _] = self.columns();
        let limit = draft.build.u32(self.tall);
        let within = draft.build.lt(row, limit);
        let (apart, before) = (draft.build.u32(self.row()), draft.build.u32(first * self.pitch));
        let to = draft.build.mul(row, apart);
        let to = draft.build.add(to, before);
        let row = draft.build.convert(row, draft.index);
        let row = draft.build.add(first_row, row);
        let tall = draft.index(self.padded()[0] as i64);
        let (image, y) = (draft.build.div(row, tall), draft.build.rem(row, tall));
        let low = draft.index(self.low[0]);
        let y = draft.build.sub(y, low);
        // Below the first place it wraps far beyond the size.
        let ty = unsigned(draft.index);
        let reach = draft.build.convert(y, ty);
        let size = draft.build.int(self.input[0] as i64, ty);
        let holds = draft.build.lt(reach, size);
        let images = draft.index(self.images as i64);
        let known = draft.build.lt(image, images);
        let there = draft.build.and(within, holds);
        let there = draft.build.and(there, known);
        let size = draft.build.u32(self.chunk);
        let channel = draft.build.mul(chunk, size);
        let channel = draft.build.convert(channel, draft.index);
        let column = draft.index(i64::from(own));
        let from = draft.place(x.offset, &[image, y, column, channel], &self.from);
        Row { from, to, there, within }
    }

    /// A vector of a row: its values, whether they are there, where they go and whether they do.
    fn load(
        &self,
        draft: &mut Draft<'_>,
        x: View,
        row: &Row,
        vector: Val,
        chunk: Val,
        vectors: u32,
    ) -> (Vec<Val>, Val, Val, Val) {
        let limit = draft.build.u32(vectors);
        let known = draft.build.lt(vector, limit);
        let within = draft.build.and(row.within, known);
        let mut there = draft.build.and(row.there, known);
        let (lanes, width) =
            (draft.build.u32(self.chunk / self.width), draft.build.u32(self.width));
        let (column, lane) = (draft.build.div(vector, lanes), draft.build.rem(vector, lanes));
        let own = draft.build.mul(lane, width);
        if self.chunks() * self.chunk > self.channels {
            let size = draft.build.u32(self.chunk);
            let channel = draft.build.mul(chunk, size);
            let channel = draft.build.add(channel, own);
            let channels = draft.build.u32(self.channels);
            let holds = draft.build.lt(channel, channels);
            there = draft.build.and(there, holds);
        }
        let pitch = draft.build.u32(self.pitch);
        let right = draft.build.mul(column, pitch);
        let to = draft.build.add(row.to, right);
        let to = draft.build.add(to, own);
        let place =
            [draft.build.convert(column, draft.index), draft.build.convert(own, draft.index)];
        let at = draft.place(row.from, &place, &self.from[2..]);
        let at = draft.build.select(there, at, x.offset);
        (draft.build.load_vector(x.buf, at, self.width), there, to, within)
    }

    fn store(
        &self,
        draft: &mut Draft<'_>,
        to: Shared,
        values: &[Val],
        there: Val,
        place: Val,
        within: Val,
    ) {
        draft.build.open_when();
        let values: Vec<Val> =
            values.iter().map(|&v| prepared(&mut draft.build, self.dtype, v, there)).collect();
        draft.build.store_shared_vector(to, place, &values);
        draft.build.close_when(within);
    }

    /// What a kernel that shares the patch takes for granted of its input.
    pub fn assume(&self, draft: &mut Draft<'_>, x: View) {
        draft.assume(x.place, self.width);
    }
}
