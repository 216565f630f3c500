//! The op suite on every device of this machine, a test a family: the same samples that `cupola
//! selftest` runs. Where the CPU is the only device, nothing else is tested.

use cupola::backend::backends;
use cupola::{Device, suite};

/// What Metal would be given for a kernel: checked here, since no test of ours runs on a Mac.
#[cfg(feature = "wgpu")]
fn translate_to_metal(kernel: &cupola_gpu::ir::Kernel, text: &str) {
    use naga::back::msl;
    // Metal has no doubles, and a device without them gets no such kernel.
    if text.contains(": f64") || text.contains("<f64>") {
        return;
    }
    let name = &kernel.name;
    let module = naga::front::wgsl::parse_str(text)
        .unwrap_or_else(|e| panic!("{name}: {}\n{text}", e.emit_to_string(text)));
    let flags = naga::valid::ValidationFlags::all();
    let info = naga::valid::Validator::new(flags, naga::valid::Capabilities::all())
        .validate(&module)
        .unwrap_or_else(|e| panic!("{name}: {}\n{text}", e.emit_to_string(text)));
    // As wgpu binds: buffers in order, their sizes behind them.
    let mut resources = msl::EntryPointResources { sizes_buffer: Some(30), ..Default::default() };
    for (_, variable) in module.global_variables.iter() {
        if let Some(binding) = variable.binding {
            let slot = binding.binding as u8;
            let target =
                msl::BindTarget { buffer: Some(slot), mutable: true, ..Default::default() };
            resources.resources.insert(binding, target);
        }
    }
    let options = msl::Options {
        lang_version: (2, 4),
        per_entry_point_map: [("main".to_owned(), resources)].into(),
        ..Default::default()
    };
    let (metal, _) = msl::write_string(&module, &info, &options, &msl::PipelineOptions::default())
        .unwrap_or_else(|e| panic!("{name} has no Metal text: {e}\n{text}"));
    for binding in 0..kernel.bindings.len() {
        let place = format!("[[buffer({binding})]]");
        assert!(metal.contains(&place), "{name}: {place} is missing in\n{metal}");
    }
    let mut needed = vec!["kernel void main_(", "#include <metal_stdlib>"];
    if !kernel.shared.is_empty() {
        needed.extend(["threadgroup ", "threadgroup_barrier(metal::mem_flags::mem_threadgroup)"]);
    }
    for text in needed {
        assert!(metal.contains(text), "{name}: '{text}' is missing in\n{metal}");
    }
}

fn family(family: suite::Family) {
    #[cfg(feature = "wgpu")]
    cupola_gpu::wgpu::observe(translate_to_metal);
    for device in backends().map(|backend| backend.device()) {
        let mut checked = 0;
        let mut failures = Vec::new();
        suite::run(device, Some(&format!("{}/", family.name())), &mut |report| {
            checked += report.passed;
            failures.extend(report.failures);
            // Only functions of doubles have no kernel everywhere.
            let missing = report.missing.iter().filter(|reason| !reason.contains("float64"));
            failures.extend(missing.map(|reason| format!("no kernel: {reason}")));
            if device == Device::CPU {
                failures.extend(report.missing);
            }
        });
        let count = failures.len();
        assert!(count == 0, "{count} failed on {device}:\n{}", failures.join("\n"));
        assert!(checked > 0, "no sample of {} ran on {device}", family.name());
    }
}

macro_rules! families {
    ($($name:ident $family:ident;)*) => {
        $(
            #[test]
            fn $name() {
                family(suite::Family::$family);
            }
        )*

        #[test]
        fn every_family_has_a_test() {
            let here = [$(suite::Family::$family),*];
            assert_eq!(here, suite::Family::ALL);
        }
    };
}

families! {
    create Create;
    unary Unary;
    binary Binary;
    compare Compare;
    select Select;
    cast Cast;
    mark Mark;
    movement Movement;
    reduce Reduce;
    arg_reduce ArgReduce;
    scan Scan;
    gather Gather;
    dot Dot;
    conv Conv;
    pool Pool;
    random Random;
    sort Sort;
    call Call;
}
