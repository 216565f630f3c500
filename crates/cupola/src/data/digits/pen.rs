//! The hand: how one image of a digit departs from its skeleton.

use super::super::rng::Rng;
use super::glyphs::{GLYPHS, Stroke};
use super::raster::{SIDE, Segment, Sheet};

/// Straight pieces that a curve between two points is drawn with.
const PIECES: usize = 5;

/// The departures of one image: an affine map, a bend, and the pen.
struct Hand {
    matrix: [[f32; 2]; 2],
    centre: [f32; 2],
    jitter: f32,
    bend: [Wave; 2],
    radius: f32,
    pressure: f32,
    level: f32,
    softness: f32,
}

/// A sideways displacement, `size · sin(2π(rate · position + phase))`.
struct Wave {
    size: f32,
    rate: f32,
    phase: f32,
}

impl Wave {
    fn new(rng: &mut Rng) -> Self {
        Self {
            size: rng.uniform(0.0, 0.08),
            rate: rng.uniform(0.5, 1.3),
            phase: rng.uniform(0.0, 1.0),
        }
    }

    fn at(&self, position: f32) -> f32 {
        self.size * sine(self.rate * position + self.phase)
    }
}

impl Hand {
    fn new(rng: &mut Rng) -> Self {
        let height = rng.uniform(15.0, 21.5);
        let width = height * rng.uniform(0.42, 0.85);
        let slant = (0.12 + 0.24 * rng.bell()).clamp(-0.6, 0.75);
        let turn = 0.022 * rng.bell();
        let (sin, cos) = (sine(turn), sine(turn + 0.25));
        // Stretch, then slant (the top goes right where it is positive), then turn.
        let stretched = [[width, -slant * height], [0.0, height]];
        let matrix = [
            [cos * stretched[0][0], cos * stretched[0][1] - sin * stretched[1][1]],
            [sin * stretched[0][0], sin * stretched[0][1] + cos * stretched[1][1]],
        ];
        let middle = (SIDE as f32 - 1.0) * 0.5;
        Self {
            matrix,
            centre: [middle + 1.15 * rng.bell(), middle + 1.15 * rng.bell()],
            jitter: rng.uniform(0.018, 0.058),
            bend: [Wave::new(rng), Wave::new(rng)],
            radius: rng.uniform(0.75, 1.75),
            pressure: rng.uniform(-0.3, 0.3),
            level: rng.uniform(0.7, 1.0),
            softness: rng.uniform(0.9, 1.5),
        }
    }

    /// Where a point of the unit box lies on the sheet.
    fn place(&self, [x, y]: [f32; 2]) -> [f32; 2] {
        let x = x + self.bend[0].at(y) - 0.5;
        let y = y + self.bend[1].at(x) - 0.5;
        let [[a, b], [c, d]] = self.matrix;
        [self.centre[0] + a * x + b * y, self.centre[1] + c * x + d * y]
    }

    /// The points of a stroke, each moved a little; the two of a corner move together.
    fn shake(&self, rng: &mut Rng, stroke: Stroke) -> Vec<[f32; 2]> {
        let mut points: Vec<[f32; 2]> = Vec::with_capacity(stroke.len());
        for (i, &(x, y)) in stroke.iter().enumerate() {
            let corner = i > 0 && stroke[i - 1] == (x, y);
            points.push(if corner {
                points[i - 1]
            } else {
                [x + self.jitter * rng.bell(), y + self.jitter * rng.bell()]
            });
        }
        points
    }

    fn draw(&self, sheet: &mut Sheet, points: &[[f32; 2]]) {
        let steps = (points.len() - 1) * PIECES;
        let radius =
            |step: usize| self.radius * (1.0 + self.pressure * (step as f32 / steps as f32 - 0.5));
        let mut from = self.place(points[0]);
        for i in 0..points.len() - 1 {
            if points[i] == points[i + 1] {
                continue;
            }
            for piece in 1..=PIECES {
                let to = self.place(curve(points, i, piece as f32 / PIECES as f32));
                let step = i * PIECES + piece;
                let radius = [radius(step - 1), radius(step)];
                sheet.draw(Segment { from, to, radius }, self.level, self.softness);
                from = to;
            }
        }
    }
}

/// Draws `digit` by the hand that `rng` gives.
pub(super) fn draw(rng: &mut Rng, digit: usize, bytes: &mut [u8]) {
    let styles = GLYPHS[digit];
    let glyph = styles[rng.below(styles.len() as u64) as usize];
    let hand = Hand::new(rng);
    let mut sheet = Sheet::new();
    for &stroke in glyph {
        let points = hand.shake(rng, stroke);
        hand.draw(&mut sheet, &points);
    }
    let grain = rng.uniform(0.0, 0.15);
    sheet.finish(rng, grain, bytes);
}

/// The Catmull–Rom curve from point `i` to the next, at `t` in 0..=1.
fn curve(points: &[[f32; 2]], i: usize, t: f32) -> [f32; 2] {
    let [before, from, to, after] =
        [i.saturating_sub(1), i, i + 1, (i + 2).min(points.len() - 1)].map(|k| points[k]);
    std::array::from_fn(|k| {
        let (p0, p1, p2, p3) = (before[k], from[k], to[k], after[k]);
        let linear = p2 - p0;
        let square = 2.0 * p0 - 5.0 * p1 + 4.0 * p2 - p3;
        let cube = 3.0 * (p1 - p2) + p3 - p0;
        p1 + 0.5 * t * (linear + t * (square + t * cube))
    })
}

/// `sin(2π·turns)` to about 1e-4, of the same bits everywhere: the platform's own sine is not.
fn sine(turns: f32) -> f32 {
    let x = turns - turns.floor();
    // Fold onto the first quarter, where the odd polynomial holds.
    let (x, sign) = if x < 0.5 { (x, 1.0) } else { (x - 0.5, -1.0) };
    let x = if x > 0.25 { 0.5 - x } else { x };
    let y = x * (2.0 * std::f32::consts::PI);
    let z = y * y;
    sign * y * (1.0 + z * (-1.0 / 6.0 + z * (1.0 / 120.0 - z * (1.0 / 5040.0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sine_follows_the_platform() {
        for step in -400..400 {
            let turns = step as f32 * 0.01;
            let expected = (f64::from(turns) * std::f64::consts::TAU).sin();
            assert!((f64::from(sine(turns)) - expected).abs() < 2e-4, "{turns}");
        }
    }

    #[test]
    fn curve_passes_through_its_points() {
        let points = [[0.0, 0.0], [0.25, 1.0], [0.5, 0.5], [1.0, 0.0]];
        for i in 0..3 {
            assert_eq!(curve(&points, i, 0.0), points[i]);
            let end = curve(&points, i, 1.0);
            assert!((end[0] - points[i + 1][0]).abs() < 1e-6, "{end:?}");
            assert!((end[1] - points[i + 1][1]).abs() < 1e-6, "{end:?}");
        }
    }
}
