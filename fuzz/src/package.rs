//! Packages in one file: what is read is the same after it was saved.

use cupola::package::{Function, Package, Port, Trace};
use cupola::{Array, Aval, DType, ops};

use crate::scratch;

/// A package of one function with a weight.
fn package() -> Package {
    let aval = Aval::new([2, 3], DType::F32);
    let trace = Trace::of_any_size(vec![Port::new("x", &aval)], &[aval], |x| {
        let w = Array::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
        let scale = ops::sum(&w, (), false)?;
        Ok(vec![ops::multiply(&x[0], &scale)?])
    });
    let function = Function { name: "main".into(), traces: vec![trace.expect("a trace")] };
    Package::new(vec![function]).expect("a package").with_metadata(Some("text".into()))
}

pub fn seeds() -> Vec<Vec<u8>> {
    let path = scratch::path("seed.cupola");
    package().save(&path).expect("a file");
    vec![std::fs::read(&path).expect("the file")]
}

pub fn check(data: &[u8]) {
    let path = scratch::file("package.cupola", data);
    let package = match Package::open(&path) {
        Ok(package) => package,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    };
    let (first, second) = (scratch::path("first.cupola"), scratch::path("second.cupola"));
    package.save(&first).expect("what was read is saved");
    Package::verify(&first).expect("what was saved is read").save(&second).expect("and saved");
    let bytes = |path| std::fs::read(path).expect("the file");
    assert!(bytes(first) == bytes(second), "the bytes are others");
}
