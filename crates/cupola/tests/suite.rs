//! The op suite on the CPU, a test a family: the same samples that `cupola selftest` runs.

use cupola::{Device, suite};

fn family(family: suite::Family) {
    let mut checked = 0;
    let mut failures = Vec::new();
    suite::run(Device::CPU, Some(&format!("{}/", family.name())), &mut |report| {
        checked += report.passed;
        failures.extend(report.failures);
    });
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
    assert!(checked > 0, "no sample of {} ran", family.name());
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
    gather Gather;
    dot Dot;
    conv Conv;
    pool Pool;
    random Random;
    sort Sort;
    call Call;
}
