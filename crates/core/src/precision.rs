//! How precisely products of `float32` are computed.

use std::sync::atomic::{AtomicU8, Ordering};

/// How products and convolutions of `float32` are computed on devices with matrix units.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MatmulPrecision {
    /// On the matrix units, which round factors to TF32: ten bits behind the point, and sums in
    /// `float32`.
    Tf32,
    /// In `float32`.
    Full,
}

/// 0 while nothing was set.
static PRECISION: AtomicU8 = AtomicU8::new(0);

/// Sets how products and convolutions of `float32` that are recorded from now on are computed, in
/// this process. At first it is [`MatmulPrecision::Tf32`], or [`MatmulPrecision::Full`] where the
/// environment has `CUPOLA_TF32=0`. A compiled function is traced again for it.
pub fn set_matmul_precision(precision: MatmulPrecision) {
    PRECISION.store(precision as u8 + 1, Ordering::Relaxed);
}

/// How products and convolutions of `float32` are computed.
pub fn matmul_precision() -> MatmulPrecision {
    match PRECISION.load(Ordering::Relaxed) {
        1 => MatmulPrecision::Tf32,
        2 => MatmulPrecision::Full,
        _ => {
            let precision = match std::env::var("CUPOLA_TF32").as_deref() {
                Ok("0") => MatmulPrecision::Full,
                _ => MatmulPrecision::Tf32,
            };
            set_matmul_precision(precision);
            precision
        }
    }
}
