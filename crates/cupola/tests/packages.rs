//! Packages as files: what is saved is what is loaded, and damaged ones are an error.

use std::path::Path;
use std::sync::Arc;

use cupola::graph::{self, Program};
use cupola::package::{
    Function, Options, Package, Port, Save, Size, System, Target, Trace, binary,
};
use cupola::prim::{Custom, CustomOp};
use cupola::transform::{LoopOptions, checkpoint, cond, custom_function, grad, scan, while_loop};
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
    let refused = |f: fn(&[Array]) -> Result<Vec<Array>>, says: &str| {
        let error = Trace::of(vec![port.clone()], &[aval.clone()], f).err().unwrap().to_string();
        assert!(error.contains(says), "{error}");
    };
    // A half, where it is one; a cube; other work; numbers that are there before.
    let half = |x: &[Array]| {
        let rows: Vec<i32> = (0..x[0].shape()[0] as i32 / 2).collect();
        let rows = Array::from_slice(&rows, [rows.len()])?;
        Ok(vec![ops::take(&x[0], &rows, 0)?])
    };
    refused(half, "other arrays for other sizes");
    refused(|x| Ok(vec![&x[0] * (x[0].shape()[0].pow(3) as f64)]), "'constant'");
    let odd = |x: &[Array]| match x[0].shape()[0] % 2 {
        0 => Ok(vec![ops::exp(&x[0])?]),
        _ => Ok(vec![ops::sin(&x[0])?]),
    };
    refused(odd, "'unary'");
    let rows = Trace::of(vec![port], &[aval], |x| Ok(vec![ops::sum(&x[0], 1, false)?])).unwrap();
    assert_eq!(rows.outputs()[0].to_string(), "float32[n]");
}

/// Attention over any number of tokens and a convolution over any images: sizes are in reshapes, slices, masks, means,
/// positions, the body of a call and weights that are sliced.
fn of_sizes(x: &[Array], table: &Array, kernel: &Array) -> Result<Vec<Array>> {
    let [batch, tokens, width] = x[0].shape()[..] else { panic!("{:?}", x[0].shape()) };
    let end = tokens as isize;
    let places = ops::slice(table, &[0, 0], &[end, width as isize], &[1, 1])?;
    let x0 = ops::add(&x[0], &places)?;
    let heads = ops::transpose(&ops::reshape(&x0, [batch, tokens, 2, width / 2])?, [0, 2, 1, 3])?;
    let scores = ops::matmul(&heads, &ops::transpose(&heads, [0, 1, 3, 2])?)?;
    let mask = ops::triu(&ops::full([tokens, tokens], f32::NEG_INFINITY, DType::F32)?, 1)?;
    let soft = checkpoint(|s| Ok(vec![ops::softmax(&s[0], -1)?]))(&[&scores + &mask])?.remove(0);
    let mixed = ops::transpose(&ops::matmul(&soft, &heads)?, [0, 2, 1, 3])?;
    let mixed = ops::reshape(&mixed, [batch, tokens, width])?;
    let last = ops::slice(&mixed, &[0, end - 1, 0], &[batch as isize, end, 4], &[1, 1, 1])?;
    let images = ops::conv2d(&x[1], kernel, &ops::ConvOptions::new().stride(2).padding(1))?;
    let images = ops::add(&images, &Array::from_slice(&[0.5f32, -0.5], [2])?)?;
    let images = ops::avg_pool(&ops::tanh(&images)?, &ops::PoolOptions::new(2))?;
    let rows = ops::max(&ops::conv2d(&x[1], kernel, &ops::ConvOptions::new())?, 1, false)?;
    let features = ops::mean(&rows, 1, false)?;
    // Sizes as numbers of an array.
    let counts = Array::from_slice(&[tokens as i64, i64::MAX - 1, batch as i64, 0], [4])?;
    let counts = ops::where_(&ops::equal(&counts, i64::MAX - 1)?, 0.5, &counts)?;
    let weighed = ops::multiply(&ops::mean(&mixed, 1, false)?, &counts)?;
    Ok(vec![weighed, last, images, features, ops::var(&x0, (), false, 1)?])
}

#[test]
fn sizes_with_names_are_any() {
    let (table, kernel) = (numbers(1000, &[250, 4]), numbers(54, &[2, 3, 3, 3]));
    let named = |name: &str, sizes: &[&str]| {
        let size = |text: &&str| match text.parse() {
            Ok(known) => Size::Known(known),
            Err(_) => Size::Named((*text).into()),
        };
        let sizes = sizes.iter().map(size).collect();
        Port { name: name.into(), dtype: DType::F32, sizes, is_keyword: false }
    };
    let ports = vec![
        named("tokens", &["batch", "length", "4"]),
        named("images", &["batch", "rows", "columns", "3"]),
    ];
    let f = |x: &[Array]| of_sizes(x, &table, &kernel);
    let avals = [Aval::new([2, 5, 4], DType::F32), Aval::new([2, 8, 9, 3], DType::F32)];
    let trace = Trace::of(ports, &avals, f).unwrap();
    let shown: Vec<String> = trace.outputs().iter().map(Port::to_string).collect();
    let want = ["[batch, 4]", "[batch, 1, 4]", "[batch, ?, ?, 2]", "[batch, 2]", "[]"]
        .map(|s| format!("float32{s}"));
    assert_eq!(shown, want);
    assert!(trace.graph().input_avals().take(2).eq(&avals));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p");
    let function = |trace| Package::new(vec![Function { name: "f".into(), traces: vec![trace] }]);
    function(trace).unwrap().save(&path).unwrap();
    for target in [None, Some(Target::new(System::Macos, None))] {
        let mut package = Package::open(&path).unwrap();
        if let Some(target) = target {
            package = package.for_target(target).unwrap();
        }
        let loaded = package.load(Device::CPU).unwrap();
        for [batch, length, rows, columns] in [[2, 5, 8, 9], [1, 1, 7, 4], [3, 199, 5, 30]] {
            let tokens = numbers(batch * length * 4, &[batch, length, 4]);
            let images = numbers(batch * rows * columns * 3, &[batch, rows, columns, 3]);
            let x = [tokens, images];
            let (have, want) = (loaded.call("f", &x).unwrap(), f(&x).unwrap());
            for (have, want) in have.iter().zip(&want) {
                assert_eq!(have.aval(), want.aval());
                let (have, want) = (have.to_vec::<f32>().unwrap(), want.to_vec::<f32>().unwrap());
                let close =
                    |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 || a.is_nan() && b.is_nan();
                assert!(have.iter().zip(&want).all(close), "{have:?} {want:?}");
            }
        }
        // The table has no more rows; one name is one number.
        let x = [numbers(1200, &[1, 300, 4]), numbers(192, &[1, 8, 8, 3])];
        assert!(loaded.call("f", &x).is_err());
        let x = [numbers(20, &[1, 5, 4]), numbers(384, &[2, 8, 8, 3])];
        assert!(loaded.call("f", &x).is_err());
    }
}

#[test]
fn targets_refuse_all_that_they_lack() {
    let aval = Aval::new([4], DType::F32);
    let trace = Trace::of(vec![Port::new("x", &aval)], &[aval], |x| {
        let wide = ops::astype(&x[0], DType::F64)?;
        Ok(vec![ops::exp(&wide)?, ops::astype(&x[0], DType::BF16)?])
    });
    let package =
        Package::new(vec![Function { name: "main".into(), traces: vec![trace.unwrap()] }]).unwrap();
    let old = Target::new(System::Macos, Some(13));
    assert_eq!(old.lacks(&package).unwrap().len(), 2);
    let error = package.for_target(old).err().unwrap().to_string();
    assert_eq!(error.matches("float64").count(), 2, "{error}");
    assert!(error.contains("linux, windows") && !error.contains("bfloat16"), "{error}");
}

/// What a package gives on a target, beside what the function gives.
fn on(
    target: Target,
    inputs: &[Array],
    f: impl Fn(&[Array]) -> Result<Vec<Array>>,
) -> (Vec<Array>, Vec<Array>) {
    let ports = inputs.iter().enumerate().map(|(n, x)| Port::new(format!("x{n}"), x.aval()));
    let avals: Vec<Aval> = inputs.iter().map(|x| x.aval().clone()).collect();
    let trace = Trace::of(ports.collect(), &avals, &f).unwrap();
    let function = Function { name: "f".into(), traces: vec![trace] };
    let package = Package::new(vec![function]).unwrap().for_target(target).unwrap();
    for node in &package.functions()[0].traces[0].graph().nodes {
        assert!(node.outputs.iter().all(|aval| target.has(aval.dtype)), "{:?}", node.op);
    }
    let ports = package.functions()[0].traces[0].inputs().to_vec();
    let narrow = inputs.iter().zip(&ports).map(|(x, port)| ops::astype(x, port.dtype).unwrap());
    let narrow: Vec<Array> = narrow.collect();
    let folder = tempfile::tempdir().unwrap();
    package.save(folder.path().join("p")).unwrap();
    let loaded = Package::open(folder.path().join("p")).unwrap().load(Device::CPU).unwrap();
    (loaded.call("f", &narrow).unwrap(), f(inputs).unwrap())
}

#[test]
fn what_a_target_lacks_is_done_otherwise() {
    let old = Target::new(System::Macos, Some(13));
    let x = numbers(24, &[6, 4]);
    let w = ops::astype(&numbers(12, &[4, 3]), DType::BF16).unwrap();
    let halves = |x: &[Array]| {
        let x = ops::astype(&x[0], DType::BF16)?;
        let y = ops::matmul(&ops::exp(&x)?, &w)?;
        Ok(vec![ops::softmax(&y, -1)?, ops::sum(&ops::multiply(&y, &y)?, 0, false)?])
    };
    let (have, want) = on(old, &[x], halves);
    for (have, want) in have.iter().zip(&want) {
        assert_eq!((have.dtype(), want.dtype()), (DType::F32, DType::BF16));
        let want = ops::astype(want, DType::F32).unwrap().to_vec::<f32>().unwrap();
        // Sums may be in another order, and are rounded to 8 bits.
        for (have, want) in have.to_vec::<f32>().unwrap().iter().zip(want) {
            assert!((have - want).abs() <= want.abs() / 100.0, "{have} {want}");
            assert_eq!(have.to_bits() & 0xffff, 0);
        }
    }
    // Every pattern of bits, rounded as the CPU does it.
    let all: Vec<f32> =
        (0..1u32 << 16).map(|bits| f32::from_bits((bits << 16) | (0x7fff + (bits & 1)))).collect();
    let all = Array::from_slice(&all, [1 << 16]).unwrap();
    let (have, want) = on(old, &[all], |x| Ok(vec![ops::astype(&x[0], DType::BF16)?]));
    let want = ops::astype(&want[0], DType::F32).unwrap().to_vec::<f32>().unwrap();
    for (have, want) in have[0].to_vec::<f32>().unwrap().iter().zip(want) {
        assert!(*have == want || have.is_nan() && want.is_nan(), "{have} {want}");
    }
    // Indices of 64 bits, counted from the end, too.
    let web = Target::new(System::Web, None);
    let table = numbers(15, &[5, 3]);
    let index = Array::from_slice(&[4i64, 0, -1, 2], [4]).unwrap();
    let looked = |x: &[Array]| {
        let next = ops::remainder(&ops::add(&x[0], 1)?, 5)?;
        let best = ops::argmax(&table, 0, false)?;
        let places = ops::astype(&best, DType::I64)?;
        Ok(vec![ops::take(&table, &x[0], 0)?, ops::add(&next, 2)?, ops::sum(&places, (), false)?])
    };
    let (have, want) = on(web, &[index], looked);
    for (have, want) in have.iter().zip(&want) {
        let wide = |x: &Array| ops::astype(x, DType::F64).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(wide(have), wide(want));
    }
    // What may be outside of 32 bits is refused, and doubles are narrowed where that is asked for.
    let refused = |f: fn(&[Array]) -> Result<Vec<Array>>, dtype| {
        let aval = Aval::new([4], dtype);
        let trace = Trace::of(vec![Port::new("x", &aval)], &[aval], f).unwrap();
        let function = Function { name: "f".into(), traces: vec![trace] };
        let package = Package::new(vec![function]).unwrap();
        web.lacks(&package).unwrap().iter().map(|lack| lack.op).collect::<Vec<_>>()
    };
    assert_eq!(refused(|x| Ok(vec![ops::multiply(&x[0], &x[0])?]), DType::I64), ["multiply"]);
    assert_eq!(refused(|x| Ok(vec![ops::astype(&x[0], DType::I64)?]), DType::F32), ["astype"]);
    let wide = Array::from_slice(&[1.0f64, 2.0], [2]).unwrap();
    let narrow = Target { narrow: true, ..web };
    let (have, want) = on(narrow, &[wide], |x| Ok(vec![ops::sqrt(&ops::add(&x[0], 0.25)?)?]));
    let want = ops::astype(&want[0], DType::F32).unwrap();
    assert_eq!(have[0].to_vec::<f32>().unwrap(), want.to_vec::<f32>().unwrap());
}

#[test]
fn an_error_is_one_line_whatever_names_a_file_has() {
    let x = Aval::new([2], DType::F32);
    let trace = Trace::of(vec![Port::new("x", &x)], &[x], |x| Ok(vec![ops::exp(&x[0])?])).unwrap();
    let program = binary::Program { graph: trace.graph().clone(), weights: vec![], formulas: None };
    let mut bytes = binary::write(&[program]).unwrap();
    let name = bytes.windows(5).position(|part| part == b"input").unwrap();
    bytes[name + 1..name + 5].copy_from_slice("\n\u{202e}".as_bytes());
    let error = binary::read(&bytes, "graph.bin").err().unwrap().to_string();
    assert!(error.contains(r"(i\n\u{202e})"), "{error}");
}

/// What does not depend on the inputs has sizes that theirs say nothing of.
#[test]
fn a_function_of_any_size_reduces_its_weights() {
    let x = Aval::new([2, 3], DType::F32);
    let weights = numbers(12, &[4, 3]);
    let scaled = |x: &[Array]| {
        let row = ops::sum(&ops::multiply(&weights, 2)?, 0, false)?;
        Ok(vec![ops::multiply(&ops::add(&x[0], &row)?, &ops::sum(&weights, (), false)?)?])
    };
    let trace = Trace::of_any_size(vec![Port::new("x", &x)], &[x], scaled).unwrap();
    let x = numbers(15, &[5, 3]);
    let (have, want) = (trace.call(&[x.clone()]).unwrap(), scaled(&[x]).unwrap());
    assert_eq!(have[0].to_vec::<f32>().unwrap(), want[0].to_vec::<f32>().unwrap());
}

#[test]
fn axes_that_have_to_be_alike_are_one_size() {
    let w = numbers(12, &[3, 4]);
    let x = numbers(6, &[2, 3]);
    let f = |x: &[Array]| Ok(vec![ops::matmul(&(&x[0] + &x[1]), &w)?]);
    let ports = ["a", "b"].map(|name| Port::new(name, x.aval())).to_vec();
    let avals = [x.aval().clone(), x.aval().clone()];
    let trace = Trace::of_any_size(ports, &avals, f).unwrap();
    assert_eq!(trace.inputs()[1].to_string(), "float32[a.0, 3]");
    let inputs = [numbers(15, &[5, 3]), numbers(15, &[5, 3])];
    let (have, want) = (trace.call(&inputs).unwrap(), f(&inputs).unwrap());
    assert_eq!(have[0].to_vec::<f32>().unwrap(), want[0].to_vec::<f32>().unwrap());
    assert!(trace.call(&[numbers(15, &[5, 3]), numbers(3, &[1, 3])]).is_err());
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

#[cfg(unix)]
#[test]
fn files_that_claim_to_be_longer_are_not_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/");
    save(&path);
    for name in ["graph.bin", "weights.safetensors"] {
        let file = path.join(name);
        let length = file.metadata().unwrap().len();
        let open = || std::fs::OpenOptions::new().write(true).open(&file).unwrap();
        open().set_len(1 << 40).unwrap();
        let error = Package::verify(&path).err().unwrap().to_string();
        assert!(error.contains(name) && error.contains("1099511627776"), "{error}");
        open().set_len(length).unwrap();
        // What takes a file's place has its permissions.
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    save(&path);
    for name in ["graph.bin", "weights.safetensors"] {
        assert_eq!(path.join(name).metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// A loop over `x`, from a number that says nothing of its size, and what a condition makes of its end.
fn looped(x: &Array) -> Result<Vec<Array>> {
    let start = ops::zeros_like(&ops::sum(x, 0, false)?)?;
    let step = |c: &[Array], x: &[Array]| {
        let next = &c[0] * 0.5 + &x[0];
        Ok((vec![next.clone()], vec![ops::exp(&next)?]))
    };
    let (last, all) = scan(step, &[start], std::slice::from_ref(x), LoopOptions::default())?;
    let far = |c: &[Array]| ops::less(&ops::max(&c[0], (), false)?, 10);
    let grown = while_loop(far, |c| Ok(vec![&c[0] * 2.0 + 1.0]), &last, None)?;
    let is_high = ops::greater(&ops::max(&last[0], (), false)?, 1)?;
    let chosen = cond(
        &is_high,
        |c| Ok(vec![ops::sqrt(&ops::abs(&c[0])?)?]),
        |c| Ok(vec![&c[0] * 0.5]),
        &last,
    )?;
    Ok(vec![all[0].clone(), grown[0].clone(), chosen[0].clone()])
}

#[test]
fn loops_and_choices_are_for_any_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loop.cupola");
    let aval = Aval::new([4, 3, 2], DType::F32);
    let sizes = vec![Size::Named("steps".into()), Size::Named("rows".into()), Size::Known(2)];
    let port = Port { sizes, ..Port::new("x", &aval) };
    let trace = Trace::of(vec![port], &[aval], |x| looped(&x[0])).unwrap();
    assert_eq!(trace.outputs()[0].to_string(), "float32[steps, rows, 2]");
    assert_eq!(trace.outputs()[1].to_string(), "float32[rows, 2]");
    let function = Function { name: "loop".into(), traces: vec![trace] };
    Package::new(vec![function]).unwrap().save(&path).unwrap();
    let loaded = Package::open(&path).unwrap().load(Device::CPU).unwrap();
    for shape in [[4, 3, 2], [7, 5, 2], [3, 4, 2], [2, 9, 2]] {
        let x = numbers(shape.iter().product(), &shape);
        let have = loaded.call("loop", std::slice::from_ref(&x)).unwrap();
        for (have, want) in have.iter().zip(looped(&x).unwrap()) {
            assert_eq!(have.aval(), want.aval());
            assert_eq!(have.to_vec::<f32>().unwrap(), want.to_vec::<f32>().unwrap());
        }
    }
}

#[test]
fn what_a_loop_carries_keeps_its_size() {
    let aval = Aval::new([4, 3], DType::F32);
    let sizes = vec![Size::Known(4), Size::Named("rows".into())];
    let port = Port { sizes, ..Port::new("x", &aval) };
    // As many elements as there are rows now, and as there are at any time.
    let apart = |x: &[Array]| {
        let states = [ops::zeros([3], DType::F32)?, ops::zeros([x[0].shape()[1]], DType::F32)?];
        let step = |c: &[Array], x: &[Array]| {
            Ok((vec![&c[0] + 1.0, &c[1] + &x[0]], vec![ops::sum(&x[0], (), false)?]))
        };
        let (last, _) = scan(step, &states, &[x[0].clone()], LoopOptions::default())?;
        Ok(last)
    };
    let trace = Trace::of(vec![port], &[aval], apart).unwrap();
    let x = ops::ones([4, 5], DType::F32).unwrap();
    let outputs = trace.call(&[x]).unwrap();
    assert_eq!(outputs[0].to_vec::<f32>().unwrap(), [4.0; 3]);
    assert_eq!(outputs[1].to_vec::<f32>().unwrap(), [4.0; 5]);
}

/// A line that is learnt, and that draws what it drops.
fn line() -> Program {
    Program::new(|g| {
        let x = g.placeholder("x", &["batch".into(), 2.into()], DType::F32)?;
        let wanted = g.placeholder("wanted", &["batch".into()], DType::F32)?;
        let w = g.variable("w", || ops::zeros([2], DType::F32))?;
        let scale = g.variable("scale", || Ok(Array::scalar(2.0f32)))?;
        let y = ops::multiply(&ops::matmul(&x, &w)?, &scale)?;
        let loss = ops::sum(&ops::square(&ops::subtract(&y, &wanted)?)?, (), false)?;
        let slope = g.gradients(&loss, &[&w])?.remove(0);
        let noise = ops::random::normal([2], DType::F32, None)?;
        g.function("predict", &[("y", &y)], &[])?;
        g.function("train", &[("loss", &loss)], &[(&w, &(&w - slope * 0.01))])?;
        g.function("shake", &[("noise", &noise)], &[(&w, &(&w + &noise))])
    })
    .unwrap()
}

#[test]
fn functions_of_a_program_are_packaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("line.cupola");
    let train = line().compile(Device::CPU, &graph::Options::default()).unwrap();
    let train = train.function("train").unwrap();
    let (x, wanted) = (numbers(8, &[4, 2]), numbers(4, &[4]));
    train.run(&[("x", &x), ("wanted", &wanted)]).unwrap();
    train.save(&path, &Options { metadata: Some("a line".into()), ..Options::default() }).unwrap();
    let package = Package::verify(&path).unwrap();
    assert_eq!(package.metadata(), Some("a line"));
    let ports = |name: &str| -> Vec<String> {
        let trace = &package.function(name).unwrap().traces[0];
        let all = trace.inputs().iter().chain(trace.outputs());
        all.map(|port| format!("{} {port}", port.name)).collect()
    };
    assert_eq!(ports("predict"), ["x float32[batch, 2]", "y float32[batch]"]);
    let w = "w float32[2]";
    let (fed, loss) = (["x float32[batch, 2]", "wanted float32[batch]"], "loss float32[]");
    assert_eq!(ports("train"), [fed[0], fed[1], w, loss, w]);
    let key = "random uint32[2]";
    assert_eq!(ports("shake"), [w, key, "noise float32[2]", w, key]);
    let loaded = Package::open(&path).unwrap().load(Device::CPU).unwrap();
    // What does not learn holds what was learnt.
    let w = train.program().variables()[0].1.clone();
    let more = numbers(10, &[5, 2]);
    let want = train.function("predict").unwrap().run(&[("x", &more)]).unwrap();
    let have = loaded.call("predict", &[more]).unwrap();
    assert_eq!(have[0].to_vec::<f32>().unwrap(), want["y"].to_vec::<f32>().unwrap());
    // What learns takes it, and gives it on.
    let (mut state, mut losses) = (w, Vec::new());
    for _ in 0..20 {
        let found = loaded.call("train", &[x.clone(), wanted.clone(), state]).unwrap();
        losses.push(found[0].item::<f32>().unwrap());
        state = found[1].clone();
    }
    assert!(losses[19] < losses[0], "{losses:?}");
    // What draws takes a key, and gives the next one.
    let key = cupola::generator::state();
    let first = loaded.call("shake", &[state.clone(), key.clone()]).unwrap();
    let again = loaded.call("shake", &[state.clone(), key]).unwrap();
    let next = loaded.call("shake", &[state.clone(), first[2].clone()]).unwrap();
    let noise = |found: &[Array]| found[0].to_vec::<f32>().unwrap();
    assert!(noise(&first) == noise(&again) && noise(&first) != noise(&next));
    let moved = ops::add(&state, &first[0]).unwrap();
    assert_eq!(first[1].to_vec::<f32>().unwrap(), moved.to_vec::<f32>().unwrap());
}

#[test]
fn a_program_that_depends_on_sizes_is_packaged_for_some() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.cupola");
    let program = Program::new(|g| {
        let x = g.placeholder("x", &["rows".into()], DType::F32)?;
        // So many terms as there are rows.
        let terms = (0..x.shape()[0].min(4)).map(|power| ops::power(&x, power as f32));
        let terms = terms.collect::<Result<Vec<_>>>()?;
        let sum = terms.iter().skip(1).try_fold(terms[0].clone(), |sum, t| ops::add(&sum, t))?;
        g.function("sum", &[("y", &sum)], &[])
    })
    .unwrap();
    let sum = program.compile(Device::CPU, &graph::Options::default()).unwrap();
    let error = sum.save(&path, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("function 'sum'") && error.contains("rows=2"), "{error}");
    let sizes = [2, 3].map(|rows| [("rows".to_owned(), rows)].into()).to_vec();
    sum.save(&path, &Options { sizes, ..Options::default() }).unwrap();
    let loaded = Package::open(&path).unwrap().load(Device::CPU).unwrap();
    for rows in [2, 3] {
        let x = numbers(rows, &[rows]);
        let want = sum.run(&[("x", &x)]).unwrap()["y"].to_vec::<f32>().unwrap();
        assert_eq!(loaded.call("sum", &[x]).unwrap()[0].to_vec::<f32>().unwrap(), want);
    }
    assert!(loaded.call("sum", &[numbers(4, &[4])]).is_err());
}
