//! Ink on a 28×28 sheet: round-capped segments by their distance, then grain.

use super::super::rng::Rng;

/// Width and height of an image.
pub(super) const SIDE: usize = 28;
/// Bytes in an image.
pub(super) const AREA: usize = SIDE * SIDE;

/// A piece of a stroke: its ends in pixels, and half the pen's width at each of them.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub(super) from: [f32; 2],
    pub(super) to: [f32; 2],
    pub(super) radius: [f32; 2],
}

/// The ink on one sheet, from 0 to 1 a pixel.
pub(super) struct Sheet {
    ink: [f32; AREA],
}

impl Sheet {
    pub(super) fn new() -> Self {
        Self { ink: [0.0; AREA] }
    }

    /// Draws `segment` in the shade `level`, its edge faded over `softness` pixels.
    pub(super) fn draw(&mut self, segment: Segment, level: f32, softness: f32) {
        let Segment { from, to, radius } = segment;
        let reach = radius[0].max(radius[1]) + softness * 0.5;
        let along = [to[0] - from[0], to[1] - from[1]];
        let length = (along[0] * along[0] + along[1] * along[1]).max(1e-6);
        let columns = span(from[0].min(to[0]) - reach, from[0].max(to[0]) + reach);
        let rows = span(from[1].min(to[1]) - reach, from[1].max(to[1]) + reach);
        for row in rows {
            for column in columns.clone() {
                let at = [column as f32 - from[0], row as f32 - from[1]];
                let t = ((at[0] * along[0] + at[1] * along[1]) / length).clamp(0.0, 1.0);
                let away = [at[0] - t * along[0], at[1] - t * along[1]];
                let distance = (away[0] * away[0] + away[1] * away[1]).sqrt();
                let pen = radius[0] + (radius[1] - radius[0]) * t;
                let ink = ((pen - distance) / softness + 0.5).clamp(0.0, 1.0) * level;
                let pixel = &mut self.ink[row * SIDE + column];
                // The darker of two strokes, so that crossings do not show.
                *pixel = pixel.max(ink);
            }
        }
    }

    /// The finished bytes, with grain of the given deviation.
    pub(super) fn finish(&self, rng: &mut Rng, grain: f32, bytes: &mut [u8]) {
        for (byte, &ink) in bytes.iter_mut().zip(&self.ink) {
            let value = (ink + grain * rng.bell()).clamp(0.0, 1.0);
            *byte = (value * 255.0 + 0.5) as u8;
        }
    }
}

/// The pixels between `low` and `high` that lie on the sheet.
fn span(low: f32, high: f32) -> std::ops::Range<usize> {
    // Casts saturate, so what lies left of the sheet starts at 0.
    let start = low.ceil().max(0.0) as usize;
    let end = (high.floor() + 1.0).max(0.0) as usize;
    start..end.min(SIDE)
}
