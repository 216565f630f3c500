//! Which part of the suite a GPU's tests run.

use cupola_core::DType;

/// Whether sample `number` runs in `dtype`. Kernels take long to make on a GPU in software, so each
/// sample runs in `float32` and in every fourth of the other dtypes; `CUPOLA_SUITE=all` runs all, as
/// `cupola selftest` does.
pub fn share(number: usize, dtype: DType) -> bool {
    let all = std::env::var_os("CUPOLA_SUITE").is_some_and(|value| value == "all");
    all || dtype == DType::F32 || (dtype as usize) % 4 == number % 4
}
