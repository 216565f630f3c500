//! The output's gradient in the order in which the tiles of a weight gradient read it.

use cupola_simd::{Split, Tiled};

use super::Geometry;

/// Channels of dy that lie together in the buffer of a pass: those of a tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct DyTile {
    pub channel: usize,
    pub width: usize,
    /// Start, in channels.
    pub start: usize,
}

/// How the channels of dy are cut in the buffer of a pass.
pub(super) fn dy_tiles(
    geo: &Geometry,
    split: &Split,
    lanes: usize,
    patch_lanes: bool,
) -> Vec<DyTile> {
    let (mut tiles, mut start) = (Vec::new(), 0);
    for group in 0..geo.groups {
        let mut channel = group * geo.c_out;
        for &size in if patch_lanes { &split.rows } else { &split.vectors } {
            let width = if patch_lanes { size } else { size * lanes };
            tiles.push(DyTile { channel, width, start });
            channel += width;
            start += width;
        }
    }
    tiles
}

/// Elements that are copied at once.
pub(super) const COPY: usize = 16;

/// Copies a tile's channels, one position after the other; those past the last channel, and up to
/// `COPY` elements past the end, get arbitrary values.
pub(super) fn copy_tile<A: Tiled>(
    dy: &[A],
    len: usize,
    channels: usize,
    tile: &DyTile,
    to: &mut [A],
) {
    let (positions, width) = (len / channels, tile.width);
    let reach = width.next_multiple_of(COPY);
    // Positions whose blocks can be read and written whole.
    let read = (dy.len() + channels).saturating_sub(tile.channel + reach) / channels;
    let written = (to.len() + width).saturating_sub(reach) / width;
    let whole = positions.min(read).min(written);
    for position in 0..whole {
        for i in (0..width).step_by(COPY) {
            // SAFETY: blocks end before both slices do.
            unsafe {
                let from = dy.as_ptr().add(position * channels + tile.channel + i);
                let block = from.cast::<[A; COPY]>().read_unaligned();
                let to = to.as_mut_ptr().add(position * width + i);
                to.cast::<[A; COPY]>().write_unaligned(block);
            }
        }
    }
    for position in whole..positions {
        let n = width.min(channels - tile.channel);
        let from = &dy[position * channels + tile.channel..][..n];
        to[position * width..][..n].copy_from_slice(from);
    }
}
