//! The op suite on a wgpu device without subgroups, elements of 16 bits and mapped memory, for the
//! families whose kernels differ by them. `suite.rs` runs with what the adapter has.

#![cfg(feature = "wgpu")]

use cupola_core::backend::devices_of;
use cupola_core::device::DeviceKind;
use cupola_gpu::wgpu::{Restrictions, restrict};

#[test]
fn a_bare_device_passes_the_suite() {
    restrict(Restrictions {
        no_subgroups: true,
        no_int16: true,
        no_mapping: true,
        ..Default::default()
    });
    let Some(device) = devices_of(DeviceKind::Wgpu).first().map(|b| b.device()) else {
        println!("there is no wgpu device: nothing was tested");
        return;
    };
    for family in ["reduce/", "cast/", "select/", "sort/"] {
        let mut checked = 0;
        cupola_suite::run(device, Some(family), &mut |report| {
            checked += report.passed;
            assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
        });
        assert!(checked > 0, "no sample of {family} ran");
    }
}
