//! Boxes.

/// The shared area of two boxes as a part of the area of both.
pub fn overlap(a: &[f64; 4], b: &[f64; 4]) -> f64 {
    let side = |i: usize| (a[i + 2].min(b[i + 2]) - a[i].max(b[i])).max(0.0);
    let area = |x: &[f64; 4]| (x[2] - x[0]) * (x[3] - x[1]);
    let shared = side(0) * side(1);
    let both = area(a) + area(b) - shared;
    if both > 0.0 { shared / both } else { 0.0 }
}
