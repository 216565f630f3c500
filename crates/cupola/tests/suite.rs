//! The op suite on every device of this machine, a test a family: the same samples that `cupola
//! selftest` runs. Where the CPU is the only device, nothing else is tested.

use cupola::backend::backends;
use cupola::{Device, suite};

#[cfg(feature = "wgpu")]
mod translate;

fn family(family: suite::Family) {
    #[cfg(feature = "wgpu")]
    cupola_gpu::wgpu::observe(translate::translate);
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
