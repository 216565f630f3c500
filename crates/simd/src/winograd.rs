//! The transforms of Winograd's convolution F(2×2, 3×3): Lavin and Gray, *Fast Algorithms for Convolutional Neural
//! Networks*, 2015. With `d` four inputs, `g` three weights and `⊙` the product of each with each, two outputs along an
//! axis are `Aᵀ((G g) ⊙ (Bᵀ d))`:
//!
//! ```text
//!      ⎡1  0 −1  0⎤        ⎡ 1    0    0 ⎤        ⎡1  1  1  0⎤
//! Bᵀ = ⎢0  1  1  0⎥    G = ⎢ ½    ½    ½ ⎥   Aᵀ = ⎣0  1 −1 −1⎦
//!      ⎢0 −1  1  0⎥        ⎢ ½   −½    ½ ⎥
//!      ⎣0  1  0 −1⎦        ⎣ 0    0    1 ⎦
//! ```

use half::{bf16, f16};

use super::vector::{Load, Portable, Vector};
use super::{Element, Isa, Level, Real, Residual, Tail};

/// Points at which a tile of two by two outputs is multiplied.
pub const POINTS: usize = 16;

/// Weights of three by three taps, which become those of the [`POINTS`]: vector `i` of tap `t` is at
/// `from[t * step + i]`, and of point `p` it is written to `to[p * step + i]`.
#[derive(Clone, Copy)]
pub struct PointWeights<T> {
    /// The taps.
    pub from: *const T,
    /// The points.
    pub to: *mut T,
    /// Elements of a tap, whole vectors.
    pub step: usize,
}

/// Inputs of some tiles, which become those of the points.
#[derive(Clone, Copy)]
pub struct PointInputs<'t, T: Element> {
    /// Where the channels of each of the four by four positions of a tile lie.
    pub tiles: &'t [[*const T; POINTS]],
    /// Channels.
    pub channels: usize,
    /// Those of the first tile at the first point; as many as make whole vectors are written.
    pub to: *mut T::Acc,
    /// From one tile to the next.
    pub tile: usize,
    /// From one point to the next.
    pub point: usize,
}

/// Sums at the points of some tiles, which become outputs.
#[derive(Clone, Copy)]
pub struct PointSums<'t, T> {
    /// Those of the first tile at the first point.
    pub from: *const T,
    /// From one tile to the next: the channels, whole vectors.
    pub tile: usize,
    /// From one point to the next.
    pub point: usize,
    /// Where the two by two outputs of a tile are written, null for those that there are not.
    pub tiles: &'t [[*mut T; 4]],
    /// Channels that are written.
    pub channels: usize,
    /// What is done to them before.
    pub tail: Tail<'t, T>,
}

/// `a − b`
///
/// # Safety
/// The instruction set is present.
#[inline(always)]
unsafe fn less<V: Vector>(a: V, b: V, minus_one: V) -> V {
    // SAFETY: the caller vouches for the instruction set.
    unsafe { b.fma(minus_one, a) }
}

/// A number in all lanes.
///
/// # Safety
/// The instruction set is present.
#[inline(always)]
unsafe fn every<V: Vector>(x: f32) -> V {
    // SAFETY: the caller vouches for the instruction set.
    unsafe { V::splat(&V::Elem::of(x)) }
}

/// # Safety
/// The instruction set is present, and the pointers reach what the sizes say. So it is for the next two.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // Indices below a constant unroll into registers.
unsafe fn point_weights<V: Vector>(w: PointWeights<V::Elem>) {
    // SAFETY: the caller vouches for the instruction set and the pointers.
    unsafe {
        let (half, minus_half) = (every::<V>(0.5), every::<V>(-0.5));
        macro_rules! along {
            ($g:expr) => {{
                let g: [V; 3] = $g;
                let ends = g[0].add(g[2]).fma(half, V::zero());
                [g[0], g[1].fma(half, ends), g[1].fma(minus_half, ends), g[2]]
            }};
        }
        let mut at = 0;
        while at < w.step {
            let tap = |t: usize| w.from.add(t * w.step + at);
            // By columns, and then by rows.
            let columns: [[V; 4]; 3] =
                each!(c in [0 1 2] => along!(each!(r in [0 1 2] => V::load(tap(3 * r + c)))));
            for row in 0..4 {
                let points = along!(each!(c in [0 1 2] => columns[c][row]));
                for (column, point) in points.into_iter().enumerate() {
                    point.store(w.to.add((row * 4 + column) * w.step + at));
                }
            }
            at += V::LANES;
        }
    }
}

/// # Safety
/// As above.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // As above.
unsafe fn point_inputs<V: Vector, L: Load<V> + Element<Acc = V::Elem>>(p: PointInputs<'_, L>) {
    // SAFETY: the caller vouches for the instruction set and the pointers.
    unsafe {
        let minus_one = every::<V>(-1.0);
        macro_rules! along {
            ($d:expr) => {{
                let d: [V; 4] = $d;
                [
                    less(d[0], d[2], minus_one),
                    d[1].add(d[2]),
                    less(d[2], d[1], minus_one),
                    less(d[1], d[3], minus_one),
                ]
            }};
        }
        let mut to = p.to;
        for tile in p.tiles {
            let mut at = 0;
            while at < p.channels {
                let left = p.channels - at;
                let mut inputs = [V::zero(); POINTS];
                for i in 0..POINTS {
                    let from = tile[i].wrapping_add(at);
                    let is_whole = left >= V::LANES;
                    inputs[i] = if is_whole { L::load(from) } else { L::load_first(from, left) };
                }
                let columns: [[V; 4]; 4] =
                    each!(c in [0 1 2 3] => along!(each!(r in [0 1 2 3] => inputs[4 * r + c])));
                for row in 0..4 {
                    let points = along!(each!(c in [0 1 2 3] => columns[c][row]));
                    for (column, point) in points.into_iter().enumerate() {
                        point.store(to.add((row * 4 + column) * p.point + at));
                    }
                }
                at += V::LANES;
            }
            to = to.wrapping_add(p.tile);
        }
    }
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn point_sums<V: Vector>(s: PointSums<'_, V::Elem>) -> bool {
    // SAFETY: the caller vouches for the instruction set and the pointers.
    unsafe {
        let (minus_one, mut all) = (every::<V>(-1.0), V::zero());
        macro_rules! along {
            ($m:expr) => {{
                let m: [V; 4] = $m;
                [m[0].add(m[1]).add(m[2]), less(less(m[1], m[2], minus_one), m[3], minus_one)]
            }};
        }
        let mut from = s.from;
        for tile in s.tiles {
            let mut at = 0;
            while at < s.channels {
                let point = |i: usize| from.add(i * s.point + at);
                let columns: [[V; 2]; 4] = each!(c in [0 1 2 3] =>
                    along!(each!(r in [0 1 2 3] => V::load(point(4 * r + c)))));
                let [top, bottom]: [[V; 2]; 2] =
                    each!(row in [0 1] => along!(each!(c in [0 1 2 3] => columns[c][row])));
                let mut sums = [[top[0]], [top[1]], [bottom[0]], [bottom[1]]];
                all = sums.iter().fold(all, |all, [sum]| sum.maximum(all));
                let left = s.channels - at;
                let beside = |residual: &Residual<V::Elem>, m: usize, _: usize| {
                    let from = residual.at(tile[m].wrapping_add(at));
                    match tile[m].is_null() {
                        true => V::zero(),
                        false if left >= V::LANES => V::load(from),
                        false => V::load_first(from, left),
                    }
                };
                s.tail.of_lanes_from(at).apply(&mut sums, |p| V::load(p), beside);
                for ([sum], &to) in sums.into_iter().zip(tile) {
                    if to.is_null() {
                    } else if left >= V::LANES {
                        sum.store(to.add(at));
                    } else {
                        sum.store_first(to.add(at), left);
                    }
                }
                at += V::LANES;
            }
            if let Some(then) = s.tail.then {
                tile.iter().filter(|to| !to.is_null()).for_each(|&to| then(to, 0, 1, s.channels));
            }
            from = from.wrapping_add(s.tile);
        }
        let mut lanes = [V::Elem::default(); 16];
        all.store(lanes.as_mut_ptr());
        // What nothing was written to is 0.
        lanes.iter().any(|x| x.partial_cmp(x).is_none())
    }
}

/// A type of sums with these transforms.
pub trait InPoints: Real {
    /// Transforms weights.
    ///
    /// # Safety
    /// Here and below: all that the sizes say can be read and written; loads of sums, weights and a bias are of whole
    /// vectors.
    unsafe fn point_weights(isa: Isa, w: PointWeights<Self>);
    /// Transforms sums to outputs; whether one of them is NaN, before the tail.
    ///
    /// # Safety
    /// As above.
    unsafe fn point_sums(isa: Isa, s: PointSums<'_, Self>) -> bool;
}

/// An element type whose inputs are transformed.
pub trait ToPoints: Element {
    /// Transforms inputs.
    ///
    /// # Safety
    /// All channels of all positions can be read, and all points written.
    unsafe fn point_inputs(isa: Isa, p: PointInputs<'_, Self>);
}

/// `$f` for the vectors of an instruction set.
macro_rules! by_isa {
    ($f:ident, $args:ty, $out:ty, $portable:ty, $avx2:ident $avx512:ident $(, $element:ty)?) => {
        unsafe fn $f(isa: Isa, args: $args) -> $out {
            #[cfg(target_arch = "x86_64")]
            {
                use super::x86;
                #[target_feature(enable = "avx2,fma,f16c")]
                unsafe fn avx2(args: $args) -> $out {
                    // SAFETY: the caller vouches for the pointers.
                    unsafe { $f::<x86::$avx2 $(, $element)?>(args) }
                }
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
                unsafe fn avx512(args: $args) -> $out {
                    // SAFETY: as above.
                    unsafe { $f::<x86::$avx512 $(, $element)?>(args) }
                }
                match isa.level() {
                    // SAFETY: an `Isa` of this level exists only where its features are.
                    Level::Avx512 | Level::Avx512Bf16 => return unsafe { avx512(args) },
                    // SAFETY: as above.
                    Level::Avx2 => return unsafe { avx2(args) },
                    Level::Portable => {}
                }
            }
            let _ = isa;
            // SAFETY: as above.
            unsafe { $f::<$portable $(, $element)?>(args) }
        }
    };
}

macro_rules! in_points {
    ($($t:ident: $portable:ty, $avx2:ident $avx512:ident;)*) => {$(
        impl InPoints for $t {
            by_isa!(point_weights, PointWeights<$t>, (), $portable, $avx2 $avx512);
            by_isa!(point_sums, PointSums<'_, $t>, bool, $portable, $avx2 $avx512);
        }
    )*};
}
in_points! {
    f32: Portable<f32, 4>, F32x8 F32x16;
    f64: Portable<f64, 2>, F64x4 F64x8;
}

macro_rules! to_points {
    ($($t:ident: $portable:ty, $avx2:ident $avx512:ident;)*) => {$(
        impl ToPoints for $t {
            by_isa!(point_inputs, PointInputs<'_, $t>, (), $portable, $avx2 $avx512, $t);
        }
    )*};
}
to_points! {
    f32: Portable<f32, 4>, F32x8 F32x16;
    f64: Portable<f64, 2>, F64x4 F64x8;
    f16: Portable<f32, 4>, F32x8 F32x16;
    bf16: Portable<f32, 4>, F32x8 F32x16;
}
