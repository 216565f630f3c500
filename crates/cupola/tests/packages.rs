//! Packages as files: what is saved is what is loaded, and damaged ones are an error.

use std::path::Path;
use std::sync::Arc;

use cupola::package::{Function, Package, Port, Size, System, Target, Trace};
use cupola::prim::{Custom, CustomOp};
use cupola::transform::{checkpoint, custom_function, grad};
use cupola::{Array, Aval, DType, Device, Result, ops};

fn numbers(count: usize, shape: &[usize]) -> Array {
    let values: Vec<f32> = (0..count).map(|i| (i as f32 * 0.7).sin()).collect();
    Array::from_slice(&values, shape).unwrap()
}

/// Two layers, of `shape` for an example.
fn network(shape: &[usize], weights: &[Array]) -> Trace {
    let x = Aval::new(shape, DType::F32);
    // Features cannot be of any size: the weights have theirs.
    Trace::of_any_size(vec![Port::new("x", &x)], &[x], |x| {
        let hidden = ops::tanh(&ops::matmul(&x[0], &weights[0])?)?;
        Ok(vec![ops::softmax(&ops::matmul(&hidden, &weights[1])?, -1)?])
    })
    .unwrap()
}

fn save(path: &Path) -> (Vec<Array>, Array) {
    let weights = vec![numbers(12, &[3, 4]), numbers(8, &[4, 2])];
    let x = numbers(6, &[2, 3]);
    let twin =
        [weights[0].clone(), Array::from_vec(weights[1].to_vec::<f32>().unwrap(), [4, 2]).unwrap()];
    let first = Function { name: "first".into(), traces: vec![network(&[2, 3], &weights)] };
    let second = Function { name: "second".into(), traces: vec![network(&[5, 3], &twin)] };
    let package = Package::new(vec![first, second]).unwrap();
    package.with_metadata(Some("about\nit".into())).save(path).unwrap();
    (weights, x)
}

fn expected(x: &Array, weights: &[Array]) -> Result<Array> {
    let hidden = ops::tanh(&ops::matmul(x, &weights[0])?)?;
    ops::softmax(&ops::matmul(&hidden, &weights[1])?, -1)
}

#[test]
fn what_is_saved_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.cupola", "a/"] {
        let path = folder.path().join(name);
        let (weights, x) = save(&path);
        // Once more over the one that is there.
        save(&path);
        let package = Package::verify(&path).unwrap();
        assert_eq!(package.metadata(), Some("about\nit"));
        let trace = &package.functions()[0].traces[0];
        assert_eq!(trace.inputs()[0].to_string(), "float32[x.0, 3]");
        assert_eq!(trace.outputs()[0].to_string(), "float32[x.0, 2]");
        let loaded = package.load(Device::CPU).unwrap();
        for x in [x, numbers(21, &[7, 3])] {
            let want = expected(&x, &weights).unwrap().to_vec::<f32>().unwrap();
            for function in ["first", "second"] {
                let have = loaded.call(function, std::slice::from_ref(&x)).unwrap();
                assert_eq!(have[0].to_vec::<f32>().unwrap(), want, "{function}");
            }
        }
        let error = loaded.call("first", &[numbers(8, &[2, 4])]).err().unwrap().to_string();
        assert!(error.contains("float32[x.0, 3]") && error.contains("[2, 4]"), "{error}");
        assert!(loaded.call("third", &[]).err().unwrap().to_string().contains("first, second"));
        // Nothing is left beside it.
        let beside = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(beside, if name == "a.cupola" { 1 } else { 2 });
    }
}

#[test]
fn equal_weights_are_there_once_and_data_is_aligned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cupola");
    save(&path);
    let bytes = std::fs::read(&path).unwrap();
    let find = |what: &[u8]| bytes.windows(what.len()).position(|w| w == what).unwrap();
    assert_eq!(find(b"cupola-g") % 64, 0);
    assert_eq!(find(b"{\n  \"format\"") % 64, 0);
    let manifest = &bytes[find(b"{\n  \"format\"")..];
    let end = manifest.windows(3).position(|w| w == b"\n}P").unwrap() + 2;
    let manifest: serde_json::Value = serde_json::from_slice(&manifest[..end]).unwrap();
    assert_eq!(manifest["weights"].as_array().unwrap().len(), 2);
    assert_eq!(manifest["functions"][1]["traces"][0]["program"], 1);
}

#[test]
fn what_is_loaded_has_derivatives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cupola");
    let x = numbers(4, &[4]);
    let aval = x.aval().clone();
    let trace = Trace::of(vec![Port::new("x", &aval)], &[aval], |x| {
        let y = checkpoint(|x| Ok(vec![ops::sin(&x[0])?]))(x)?;
        let own = custom_function(|x: &[Array]| Ok(vec![ops::exp(&x[0])?]))
            .with_vjp(|_, _, ct| Ok(vec![ct[0].clone()]));
        Ok(vec![ops::sum(&y[0], (), false)?, ops::sum(&own.call(x)?[0], (), false)?])
    })
    .unwrap();
    Package::new(vec![Function { name: "main".into(), traces: vec![trace] }])
        .unwrap()
        .save(&path)
        .unwrap();
    let loaded = Package::open(&path).unwrap().load(Device::CPU).unwrap();
    let slope = grad(|x: &[Array]| Ok(vec![loaded.call("main", x)?[0].clone()]), &[0])(
        std::slice::from_ref(&x),
    );
    let want = ops::cos(&x).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(slope.unwrap()[0].to_vec::<f32>().unwrap(), want);
    // The other one's derivative stayed with the program.
    let slope = grad(|x: &[Array]| Ok(vec![loaded.call("main", x)?[1].clone()]), &[0])(
        std::slice::from_ref(&x),
    );
    assert!(slope.err().unwrap().to_string().contains("no part of the package"));
}

struct Own;

impl CustomOp for Own {
    fn name(&self) -> &'static str {
        "my_operator"
    }

    fn key(&self) -> Vec<u8> {
        Vec::new()
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Vec<Aval>> {
        Ok(vec![inputs[0].clone()])
    }

    fn run_host(&self, _: &[cupola::prim::call::HostInput<'_>], _: &mut [&mut [u8]]) -> Result<()> {
        Ok(())
    }
}

#[test]
fn users_operators_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let aval = Aval::new([2], DType::F32);
    let trace = Trace::of(vec![Port::new("x", &aval)], &[aval], |x| {
        Array::apply_multi(Custom(Arc::new(Own)), &[&x[0]])
    });
    let function = Function { name: "main".into(), traces: vec![trace.unwrap()] };
    let package = Package::new(vec![function]).unwrap();
    let error = package.save(folder.path().join("a")).unwrap_err().to_string();
    assert!(error.contains("my_operator"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn sizes_that_do_not_follow_are_refused() {
    let aval = Aval::new([4, 3], DType::F32);
    let mut port = Port::new("x", &aval);
    let fixed = |x: &[Array]| Ok(vec![ops::reshape(&x[0], [2, 6])?]);
    let error = Trace::of_any_size(vec![port.clone()], &[aval.clone()], fixed).err().unwrap();
    assert!(error.to_string().contains("shapeless"), "{error}");
    port.sizes[0] = Size::Named("n".into());
    assert!(Trace::of(vec![port.clone()], &[aval.clone()], fixed).is_err());
    let rows = Trace::of(vec![port], &[aval], |x| Ok(vec![ops::sum(&x[0], 1, false)?])).unwrap();
    assert_eq!(rows.outputs()[0].to_string(), "float32[n]");
}

#[test]
fn targets_refuse_all_that_they_lack() {
    let aval = Aval::new([4], DType::F32);
    let trace = Trace::of(vec![Port::new("x", &aval)], &[aval], |x| {
        let wide = ops::astype(&x[0], DType::F64)?;
        Ok(vec![ops::exp(&wide)?, ops::astype(&x[0], DType::BF16)?])
    });
    let make = || {
        let aval = Aval::new([4], DType::F32);
        let trace = Trace::of(vec![Port::new("x", &aval)], &[aval], |x| {
            Ok(vec![ops::astype(&x[0], DType::BF16)?])
        });
        Package::new(vec![Function { name: "f".into(), traces: vec![trace.unwrap()] }]).unwrap()
    };
    let package =
        Package::new(vec![Function { name: "main".into(), traces: vec![trace.unwrap()] }]).unwrap();
    let old = Target { system: System::Macos, minimum: Some(13) };
    let error = package.for_target(old).err().unwrap().to_string();
    assert_eq!(error.matches("float64").count(), 2, "{error}");
    assert!(error.contains("bfloat16") && error.contains("macos 14"), "{error}");
    assert!(make().for_target(old).is_err());
    let new = make().for_target(Target { system: System::Macos, minimum: Some(14) }).unwrap();
    assert_eq!(new.targets(), ["macos 14"]);
}

#[test]
fn damaged_packages_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cupola");
    save(&path);
    let bytes = std::fs::read(&path).unwrap();
    let other = folder.path().join("b.cupola");
    for end in (0..bytes.len()).step_by(37).chain([bytes.len() - 1]) {
        std::fs::write(&other, &bytes[..end]).unwrap();
        let error = Package::open(&other).err().unwrap().to_string();
        assert!(error.contains("b.cupola") && !error.contains('\n'), "{error}");
    }
    let mut seen = 0;
    for place in (0..bytes.len()).step_by(11) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x55;
        std::fs::write(&other, &damaged).unwrap();
        seen += usize::from(Package::verify(&other).is_err());
    }
    assert!(seen > bytes.len() / 11 / 2, "{seen} damages were seen");
}
