//! Which part of the suite a GPU's tests run.

use cupola_core::DType;
use cupola_suite::Family;

/// Whether a family's sample of a number runs in a dtype. Kernels take long to make on a GPU in software;
/// `CUPOLA_SUITE=all` runs all, as `cupola selftest` does.
pub fn of(family: Family) -> fn(usize, DType) -> bool {
    let kernels_take_seconds = matches!(
        family,
        Family::Sort | Family::Scan | Family::Conv | Family::Attention | Family::Quantized
    );
    match std::env::var_os("CUPOLA_SUITE").is_some_and(|value| value == "all") {
        true => |_, _| true,
        false if kernels_take_seconds => small,
        false => usual,
    }
}

/// Each sample in `float32`, and in every fourth of the other dtypes.
fn usual(number: usize, dtype: DType) -> bool {
    dtype == DType::F32 || (dtype as usize) % 4 == number % 4
}

/// Every third sample in `float32`, and one in sixteen in each of the other dtypes.
fn small(number: usize, dtype: DType) -> bool {
    match dtype {
        DType::F32 => number.is_multiple_of(3),
        other => other as usize % 16 == number % 16,
    }
}
