//! The op suite on every GPU of this machine, a test a family: through wgpu on one in software where
//! there is no other.

mod share;

use cupola_core::Device;
use cupola_core::backend::backends;
use cupola_core::device::DeviceKind;
// What some functions leave to it, whatever device they run on.
use cupola_cpu as _;
use cupola_suite::{Family, assert_part};

#[cfg(feature = "wgpu")]
mod translate;

fn check(family: Family) {
    #[cfg(feature = "wgpu")]
    cupola_gpu::wgpu::observe(translate::translate);
    let devices = backends().map(|backend| backend.device());
    let devices: Vec<Device> = devices.filter(|device| device.kind != DeviceKind::Cpu).collect();
    if devices.is_empty() {
        println!("there is no GPU, not even one in software: nothing was tested");
    }
    for device in devices {
        // Functions of doubles have no kernel everywhere; factorizations have none through wgpu, and run on the CPU.
        let factors = Family::Linalg.samples();
        let is_factor = |reason: &str| {
            // What has no sample of its own is in those of functions.
            let mut names = factors.iter().filter_map(|sample| sample.op_name()).chain(["eig"]);
            names.any(|name| reason.ends_with(&format!("no kernel of {name}")))
        };
        let on_cpu = |reason: &str| device.kind == DeviceKind::Wgpu && is_factor(reason);
        let share = share::of(family);
        assert_part(device, family, share, |reason| on_cpu(reason) || reason.contains("float64"));
    }
}

cupola_suite::tests!(check);
