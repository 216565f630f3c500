//! The op suite on every GPU of this machine, a test a family: through wgpu on one in software where
//! there is no other. Kernels take long to make there, so each sample runs in `float32` and in every
//! fourth of the other dtypes; `CUPOLA_SUITE=all` runs all, as `cupola selftest` does.

use cupola_core::backend::backends;
use cupola_core::{DType, Device};
use cupola_suite::{Family, assert_part};

#[cfg(feature = "wgpu")]
mod translate;

fn check(family: Family) {
    #[cfg(feature = "wgpu")]
    cupola_gpu::wgpu::observe(translate::translate);
    let devices: Vec<Device> = backends().map(|backend| backend.device()).collect();
    if devices.is_empty() {
        println!("there is no GPU, not even one in software: nothing was tested");
    }
    for device in devices {
        let all = std::env::var_os("CUPOLA_SUITE").is_some_and(|value| value == "all");
        let part = |number: usize, dtype: DType| {
            all || dtype == DType::F32 || (dtype as usize) % 4 == number % 4
        };
        // Only functions of doubles have no kernel everywhere.
        assert_part(device, family, part, |reason| reason.contains("float64"));
    }
}

cupola_suite::tests!(check);
