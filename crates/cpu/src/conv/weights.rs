//! Weights in the order in which kernels read them.

use cupola_simd::{Element, Isa, Out, Tiled, Transpose};

use super::Geometry;
use crate::memory::Scratch;
use crate::threads::parallel_for;

/// Weights as `[group][tile][tap][c_in][channel in tile]`; taps in growing order, channels past
/// the last zero.
pub(super) struct Weights<T: Tiled> {
    data: Scratch<T>,
    /// Width, first channel, and start within a group, of each tile.
    pub tiles: Vec<WeightTile>,
    group: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct WeightTile {
    pub width: usize,
    pub channel: usize,
    start: usize,
}

/// Elements below which packing is not shared out.
const PARALLEL: usize = 1 << 15;

impl<A: Tiled> Weights<A> {
    pub fn pack<T: Element<Acc = A>>(geo: &Geometry, isa: Isa, widths: &[usize], w: &[T]) -> Self {
        let depth = geo.taps() * geo.c_in;
        let (mut tiles, mut channel) = (Vec::new(), 0);
        for &width in widths {
            tiles.push(WeightTile { width, channel, start: channel * depth });
            channel += width;
        }
        let group = channel * depth;
        let mut data = Scratch::new(group * geo.groups);
        let wide;
        let w = match T::as_acc(w) {
            Some(w) => w,
            None => {
                let mut buffer = Scratch::new(w.len());
                T::widen(w, &mut buffer);
                wide = buffer;
                &wide
            }
        };
        let out = Out::new(&mut data);
        let one = |i: usize| {
            let (g, tile) = (i / tiles.len(), tiles[i % tiles.len()]);
            let start = g * group + tile.start;
            // SAFETY: each tile has its own part.
            let out = unsafe { out.slice(start..start + tile.width * depth) };
            pack_tile(geo, isa, g, tile, w, out);
        };
        let count = geo.groups * tiles.len();
        if group * geo.groups < PARALLEL {
            (0..count).for_each(one)
        } else {
            parallel_for(count, one)
        }
        Weights { data, tiles, group }
    }

    /// Weights with another number of taps, each tile of which `fill` makes of the tile here.
    pub fn with_taps(
        &self,
        geo: &Geometry,
        taps: usize,
        fill: impl Fn(&[A], &mut [A]) + Sync,
    ) -> Weights<A> {
        let depths = [geo.taps() * geo.c_in, taps * geo.c_in];
        let starts = |tile: &WeightTile| WeightTile { start: tile.channel * depths[1], ..*tile };
        let tiles: Vec<WeightTile> = self.tiles.iter().map(starts).collect();
        let group = self.width() * depths[1];
        let mut data = Scratch::new(group * geo.groups);
        let out = Out::new(&mut data);
        parallel_for(geo.groups * tiles.len(), |i| {
            let (g, i) = (i / tiles.len(), i % tiles.len());
            let [from, to] = [(self.group, self.tiles[i]), (group, tiles[i])]
                .map(|(group, tile)| g * group + tile.start);
            let [from_len, to_len] = depths.map(|depth| depth * tiles[i].width);
            // SAFETY: each tile has its own part.
            let out = unsafe { out.slice(to..to + to_len) };
            fill(&self.data[from..from + from_len], out);
        });
        Weights { data, tiles, group }
    }

    /// The same, to live long.
    pub fn into_lasting(self) -> Self {
        Weights { data: self.data.into_lasting(), ..self }
    }

    /// A bias with an element for each channel, those past the last of a group's tiles zero.
    pub fn spread(&self, geo: &Geometry, bias: &[A]) -> Scratch<A> {
        let width = self.width();
        let mut spread = Scratch::new(width * geo.groups);
        for (to, from) in spread.chunks_exact_mut(width.max(1)).zip(bias.chunks_exact(geo.c_out)) {
            to[..geo.c_out].copy_from_slice(from);
            to[geo.c_out..].fill(A::default());
        }
        spread
    }

    /// Where a tile of a group begins in what [`Weights::spread`] gives.
    pub fn spread_at(&self, g: usize, tile: &WeightTile) -> usize {
        g * self.width() + tile.channel
    }

    /// Channels of a group, with those past the last.
    fn width(&self) -> usize {
        self.tiles.last().map_or(0, |tile| tile.channel + tile.width)
    }

    /// How far behind a tile of a group the one after it lies; 0 behind the last.
    pub fn next(&self, g: usize, tile: &WeightTile) -> usize {
        let len = self.group / self.width().max(1) * tile.width;
        if g * self.group + tile.start + len < self.data.len() { len } else { 0 }
    }

    /// The address of a tile of a group.
    pub fn at(&self, g: usize, tile: &WeightTile) -> *const A {
        self.data[g * self.group + tile.start..].as_ptr()
    }
}

fn pack_tile<T: Tiled>(
    geo: &Geometry,
    isa: Isa,
    g: usize,
    tile: WeightTile,
    w: &[T],
    out: &mut [T],
) {
    let (taps, width) = (geo.taps(), tile.width);
    let channels = width.min(geo.c_out - tile.channel);
    if channels < width {
        out.fill(T::default());
    }
    if out.is_empty() {
        return;
    }
    if geo.transposed {
        for (i, out) in out.chunks_exact_mut(width).enumerate() {
            let (t, ci) = (i / geo.c_in, i % geo.c_in);
            let at = geo.weight_at(g, tile.channel, geo.stored_tap(t), ci);
            out[..channels].copy_from_slice(&w[at..at + channels]);
        }
        return;
    }
    // Without a flip all taps are one block of columns.
    let whole = (0..taps).all(|t| geo.stored_tap(t) == t);
    let (blocks, columns) = if whole { (1, taps * geo.c_in) } else { (taps, geo.c_in) };
    for block in 0..blocks {
        let src = &w[geo.weight_at(g, tile.channel, geo.stored_tap(block), 0)..];
        let dst = &mut out[block * columns * width..][..columns * width];
        let t = Transpose {
            src: src.as_ptr(),
            src_step: taps * geo.c_in,
            rows: channels,
            columns,
            dst: dst.as_mut_ptr(),
            dst_step: width,
        };
        // SAFETY: `channels` rows of the weights, and `columns` rows of the tile.
        unsafe { T::transpose(isa, t) };
    }
}
