//! Which part of the suite a GPU's tests run.

use cupola_core::DType;

/// Whether sample `number` runs in `dtype`. Kernels take long to make on a GPU in software, so each
/// sample runs in `float32` and in every fourth of the other dtypes; `CUPOLA_SUITE=all` runs all, as
/// `cupola selftest` does.
pub fn share(number: usize, dtype: DType) -> bool {
    all() || dtype == DType::F32 || (dtype as usize) % 4 == number % 4
}

/// The same for families whose kernels take seconds each: every third sample in `float32`, and one in
/// sixteen in each of the other dtypes.
pub fn small_share(number: usize, dtype: DType) -> bool {
    let is_drawn = match dtype {
        DType::F32 => number.is_multiple_of(3),
        other => other as usize % 16 == number % 16,
    };
    all() || is_drawn
}

fn all() -> bool {
    std::env::var_os("CUPOLA_SUITE").is_some_and(|value| value == "all")
}
