//! `cupola convert`, `inspect` and `run`.

mod common;

use common::{Ran, Sandbox};
use cupola::io::npy;
use cupola::package::{Function, Package, Port, Trace};
use cupola::{Array, Aval, DType, ops};
use image::GrayImage;

/// A model of ONNX that says y = x·w + b for x `[N, 2]`, written by hand: fields of protobuf.
fn onnx() -> Vec<u8> {
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        assert!(content.len() < 128);
        [&[number << 3 | 2, content.len() as u8], content].concat()
    }
    fn number(number: u8, value: u8) -> Vec<u8> {
        vec![number << 3, value]
    }
    fn node(op: &str, inputs: [&str; 2], output: &str) -> Vec<u8> {
        let [a, b] = inputs.map(|name| field(1, name.as_bytes()));
        field(1, &[a, b, field(2, output.as_bytes()), field(4, op.as_bytes())].concat())
    }
    fn tensor(name: &str, dims: &[u8], values: &[f32]) -> Vec<u8> {
        let dims: Vec<u8> = dims.iter().flat_map(|&n| number(1, n)).collect();
        let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        field(5, &[dims, number(2, 1), field(8, name.as_bytes()), field(9, &raw)].concat())
    }
    fn port(at: u8, name: &str, last: u8) -> Vec<u8> {
        let dims = [field(1, &field(2, b"N")), field(1, &number(1, last))].concat();
        let of = field(1, &[number(1, 1), field(2, &dims)].concat());
        field(at, &[field(1, name.as_bytes()), field(2, &of)].concat())
    }
    let graph = [
        node("MatMul", ["x", "w"], "h"),
        node("Add", ["h", "b"], "scores/y"),
        field(2, b"g"),
        tensor("w", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        tensor("b", &[3], &[0.5, 0.5, 0.5]),
        port(11, "x", 2),
        port(12, "scores/y", 3),
    ]
    .concat();
    let mut model = number(1, 8);
    // Longer than a byte tells.
    model.push(7 << 3 | 2);
    model.extend([graph.len() as u8 & 0x7f | 0x80, (graph.len() >> 7) as u8]);
    model.extend(graph);
    model.extend(field(8, &number(2, 17)));
    model
}

fn write(sandbox: &Sandbox, name: &str, shape: &[usize], dtypes: [DType; 2]) {
    let aval = Aval::new(shape, dtypes[0]);
    let trace = Trace::of(vec![Port::new("image", &aval)], &[aval], |x| {
        Ok(vec![ops::astype(&x[0], dtypes[1])?])
    });
    let function = Function { name: "main".into(), traces: vec![trace.unwrap()] };
    Package::new(vec![function]).unwrap().save(sandbox.path(name)).unwrap();
}

#[test]
fn a_model_is_converted_inspected_and_run() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("m.onnx"), onnx()).unwrap();
    sandbox.run("convert m.onnx --out m.cupola --report r.json").good();
    let report: serde_json::Value = serde_json::from_slice(&sandbox.read("r.json")).unwrap();
    assert_eq!(report["traces"][0]["inputs"][0]["value"], "float32[N, 2]");
    let ran = sandbox.run("inspect m.cupola --json i.json").good();
    for part in ["main(x: float32[N, 2]) -> (scores/y: float32[N, 3])", "matmul", "float32[2, 3]"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let found: serde_json::Value = serde_json::from_slice(&sandbox.read("i.json")).unwrap();
    assert_eq!(found["bytes"], 36);
    assert_eq!(found["weights"][0]["name"], "w");
    assert!(sandbox.run("inspect m.cupola --graph").good().out.contains("return %"));

    let x = Array::from_slice(&[1.0f32, 0.0, 0.0, 1.0], [2, 2]).unwrap();
    std::fs::write(sandbox.path("x.npy"), npy::write(&x).unwrap()).unwrap();
    sandbox
        .run("run m.cupola --input x=x.npy --output out --device cpu --bench --json b.json")
        .good();
    let y = npy::read(&sandbox.read("out/scores_y.npy"), "y").unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]);
    let bench: serde_json::Value = serde_json::from_slice(&sandbox.read("b.json")).unwrap();
    assert!(bench["bench"]["median_ms"].as_f64().unwrap() > 0.0);
    assert!(bench["bench"]["runs"].as_u64().unwrap() >= 5);

    sandbox.run("run m.cupola --input x=random --size N=4 --device cpu").good();
    let profiled = "run m.cupola --input x=x.npy --device cpu --output out --profile";
    sandbox.run(&format!("{profiled} t.json")).good();
    let trace: serde_json::Value = serde_json::from_slice(&sandbox.read("t.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|event| event["cat"] == "step" && event["name"] == "matmul"));
    sandbox.run(&format!("{profiled} page.html --bench")).good();
    assert!(sandbox.read("page.html").starts_with(b"<!DOCTYPE html>"));
    sandbox.run(&format!("{profiled} m.cupola")).bad(2, &["--profile", "is the package"]);
    sandbox.run(&format!("{profiled} x.npy")).bad(2, &["--profile", "is an input"]);
    sandbox.run(&format!("{profiled} j --json j")).bad(2, &["--profile", "what --json goes to"]);
    let output = sandbox.read("out/scores_y.npy");
    sandbox.run(&format!("{profiled} out/scores_y.npy")).bad(2, &["--profile", "is an output"]);
    assert!(sandbox.read("out/scores_y.npy") == output, "a profile took the place of an output");
    let page = sandbox.read("page.html");
    sandbox
        .run("run m.cupola --input x=none.npy --device cpu --profile page.html")
        .bad(1, &["none"]);
    assert!(sandbox.read("page.html") == page, "a profile of nothing took the place of another");
    sandbox.run(&format!("{profiled} none/t.json")).bad(1, &["--profile", "none"]);
    sandbox.run("run m.cupola --input x=random --device cpu").bad(1, &["--size N=N"]);
    sandbox.run("run m.cupola --device cpu").bad(2, &["x float32[N, 2]"]);
    sandbox.run("run m.cupola --input z=random --device cpu").bad(2, &["x float32[N, 2]"]);
    sandbox.run("run m.cupola --input x --device cpu").bad(2, &["NAME=VALUE"]);
    sandbox.run("run m.cupola --function f --input x=x.npy --device cpu").bad(2, &["main"]);
    let ran = sandbox.run("explain m.cupola --size N=5 --device cpu --json e.json").good();
    assert!(ran.out.contains("float32[5, 3]"), "{}", ran.out);
    let plan: serde_json::Value = serde_json::from_slice(&sandbox.read("e.json")).unwrap();
    assert!(plan["operations"].as_u64().unwrap() >= 2 * 5 * 2 * 3);
    sandbox.run("explain m.cupola --device cpu").bad(2, &["--size N=N", "'x'"]);
    sandbox.run("explain m.cupola --size M=2 --device cpu").bad(2, &["--size M", "no such size"]);
    sandbox.run("explain m.cupola --training --device cpu").bad(2, &["--training", "m.cupola"]);
    // Once more from the package, under another name and into a folder.
    sandbox.run("convert m.cupola --out folder/ --name scores").good();
    sandbox.run("convert m.cupola --out o --size N=2").bad(2, &["--size N"]);
    let ran = sandbox.run("run folder --input x=x.npy --device cpu").good();
    assert!(ran.out.contains("scores/y"), "{}", ran.out);
    sandbox.run("convert m.onnx --out n.cupola --size N=2").good();
    assert!(sandbox.run("inspect n.cupola").good().out.contains("x: float32[2, 2]"));
    sandbox.run("convert m.onnx --out n.cupola --size M=2").bad(2, &["--size M", "N"]);
    // What would count for nothing is refused.
    let run = |more: &str| sandbox.run(&format!("run m.cupola --device cpu --input {more}"));
    run("x=random --size N=4 --size M=3").bad(2, &["--size M"]);
    run("x=x.npy --size N=2").bad(2, &["--size N"]);
    run("x=x.npy --resize").bad(2, &["--resize", "no input is an image"]);
    for command in
        ["run m.cupola --input x=random", "explain m.cupola", "convert m.onnx --out n.cupola"]
    {
        sandbox.run(&format!("{command} --size N=2 --size N=3")).bad(2, &["--size N", "twice"]);
    }
    // Nor does the environment's profile take the place of an input.
    let mut command = sandbox.command();
    command.args("run m.cupola --device cpu --input x=x.npy".split(' '));
    command.env("CUPOLA_PROFILE", "x.npy");
    let input = sandbox.read("x.npy");
    Ran::of(command).bad(1, &["CUPOLA_PROFILE", "x.npy"]);
    assert!(sandbox.read("x.npy") == input);
}

#[test]
fn a_model_of_core_ml_is_converted_and_run() {
    let sandbox = Sandbox::new();
    let model = include_bytes!("../../import/src/coreml/models/layers.mlmodel");
    std::fs::write(sandbox.path("m.mlmodel"), model).unwrap();
    sandbox.run("convert m.mlmodel --out m.cupola --name f").good();
    let ran = sandbox.run("inspect m.cupola").good();
    assert!(ran.out.contains("f(x: float32[1, 2, 4, 4]) -> (y: float32[4, 2])"), "{}", ran.out);
    sandbox.run("run m.cupola --input x=random --output out --device cpu").good();
    let y = npy::read(&sandbox.read("out/y.npy"), "y").unwrap();
    let rows: Vec<f32> = y.to_vec::<f32>().unwrap().chunks(2).map(|row| row.iter().sum()).collect();
    assert!(rows.iter().all(|sum| (sum - 1.0).abs() < 1e-5), "{rows:?}");
    sandbox.run("convert m.mlmodel --out n.cupola --size N=2").bad(2, &["--size N"]);
    std::fs::write(sandbox.path("bad.mlmodel"), b"no model").unwrap();
    sandbox.run("convert bad.mlmodel --out o").bad(1, &["bad.mlmodel"]);
    std::fs::create_dir(sandbox.path("bad.mlpackage")).unwrap();
    sandbox.run("convert bad.mlpackage --out o").bad(1, &["Manifest.json"]);
}

#[test]
fn open_sizes_are_given() {
    let sandbox = Sandbox::new();
    let aval = Aval::new([3, 2], DType::F32);
    let trace =
        Trace::of_any_size(vec![Port::new("x", &aval)], &[aval], |x| Ok(vec![ops::exp(&x[0])?]));
    let function = Function { name: "main".into(), traces: vec![trace.unwrap()] };
    Package::new(vec![function]).unwrap().save(sandbox.path("p")).unwrap();
    let ran = sandbox.run("run p --input x=random --size x.0=4 --size x.1=5 --device cpu").good();
    assert!(ran.out.contains("float32[4, 5]"), "{}", ran.out);
    sandbox.run("run p --input x=random --device cpu").bad(1, &["--size x.0=N"]);
}

#[test]
fn targets_refuse_what_they_lack() {
    let sandbox = Sandbox::new();
    write(&sandbox, "wide", &[2], [DType::F32, DType::F64]);
    write(&sandbox, "half", &[2], [DType::F32, DType::BF16]);
    let convert = |what: &str| sandbox.run(&format!("convert {what} --out o.cupola"));
    let ran = convert("wide --target macos --report r.json");
    assert!(ran.out.contains("float64") && ran.out.contains("linux, windows"), "{}", ran.out);
    ran.bad(1, &["--target macos", "1 nodes"]);
    assert!(!sandbox.path("o.cupola").exists());
    let report: serde_json::Value = serde_json::from_slice(&sandbox.read("r.json")).unwrap();
    assert_eq!(report["lacks"][0]["dtype"], "float64");
    convert("half --target macos --minimum-os 13").good();
    assert!(sandbox.run("inspect o.cupola").good().out.contains("for macos 13"));
    convert("wide --target macos --narrow").good();
    convert("wide --target linux").good();
    convert("wide --target amiga").bad(2, &["amiga", "tvos"]);
    convert("wide --minimum-os 3").bad(2, &["--target"]);
    convert("wide --narrow").bad(2, &["--target"]);
}

#[test]
fn images_are_inputs() {
    let sandbox = Sandbox::new();
    write(&sandbox, "p", &[1, 1, 4, 6], [DType::F32, DType::F32]);
    GrayImage::from_fn(6, 4, |x, y| image::Luma([(x + 6 * y) as u8]))
        .save(sandbox.path("a.png"))
        .unwrap();
    sandbox.run("run p --input image=a.png --output o --device cpu").good();
    let y = npy::read(&sandbox.read("o/output0.npy"), "y").unwrap();
    let want: Vec<f32> = (0..24).map(|v| v as f32 / 255.0).collect();
    assert_eq!(y.to_vec::<f32>().unwrap(), want);
    write(&sandbox, "q", &[1, 1, 8, 8], [DType::F32, DType::F32]);
    sandbox.run("run q --input image=a.png --device cpu").bad(1, &["6×4", "8×8", "--resize"]);
    sandbox.run("run q --input image=a.png --resize --device cpu").good();
    sandbox.run("run p --input image=nothing.npy --device cpu").bad(1, &["nothing.npy"]);
    // What a picture would take to be scaled is more than there is.
    let aval = Aval::new([1, 4, 6, 3], DType::F32);
    let trace =
        Trace::of_any_size(vec![Port::new("x", &aval)], &[aval], |x| Ok(vec![ops::exp(&x[0])?]));
    let function = Function { name: "main".into(), traces: vec![trace.unwrap()] };
    Package::new(vec![function]).unwrap().save(sandbox.path("any")).unwrap();
    let sizes = "--size x.1=4000000 --size x.2=4000000 --size x.3=3";
    sandbox
        .run(&format!("run any --input x=a.png {sizes} --resize --device cpu"))
        .bad(1, &["a.png", "memory"]);
}

#[test]
fn what_is_no_package() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("bad"), b"no package").unwrap();
    std::fs::write(sandbox.path("bad.onnx"), b"no model").unwrap();
    for command in ["inspect bad", "run bad", "convert bad --out o", "inspect nothing"] {
        let name = command.split(' ').nth(1).unwrap();
        sandbox.run(command).bad(1, &[name]);
    }
    sandbox.run("convert bad.onnx --out o").bad(1, &["bad.onnx"]);
    sandbox.run("inspect data").bad(1, &["manifest.json"]);
    // To open a pipe would wait for whoever writes to it.
    #[cfg(unix)]
    for name in ["pipe", "pipe.onnx", "pipe.mlmodel", "pipe.npy"] {
        let made = std::process::Command::new("mkfifo").arg(sandbox.path(name)).status();
        assert!(made.unwrap().success());
        let convert = format!("convert {name} --out o");
        for command in [format!("inspect {name}"), format!("run {name}"), convert] {
            sandbox.run(&command).bad(1, &[name, "is no file"]);
        }
    }
    assert!(!sandbox.path("o").exists());
}

/// What reads the standard output gets the package alone.
#[cfg(target_os = "linux")]
#[test]
fn a_package_goes_to_the_standard_output() {
    let sandbox = Sandbox::new();
    write(&sandbox, "p", &[1, 4, 6, 1], [DType::F32, DType::F32]);
    let archive = std::fs::File::create(sandbox.path("archive")).unwrap();
    let mut command = sandbox.command();
    command.args(["convert", "p", "--out", "/dev/stdout"]).stdout(archive);
    assert!(command.status().unwrap().success());
    sandbox.run("inspect archive").good();
    sandbox
        .run("convert p --out /dev/stdout --report -")
        .bad(2, &["--out", "the standard output is that of --report"]);
}

/// The header of a file settles that it does not fit, however long it is.
#[cfg(unix)]
#[test]
fn a_long_file_is_not_read_for_its_header() {
    let sandbox = Sandbox::new();
    write(&sandbox, "p", &[1, 4, 6, 1], [DType::F32, DType::F32]);
    let header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}";
    let start = [b"\x93NUMPY\x01\x00", &[header.len() as u8, 0][..], header].concat();
    std::fs::write(sandbox.path("long.npy"), start).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(sandbox.path("long.npy")).unwrap();
    file.set_len(17 << 30).unwrap();
    sandbox.run("run p --input image=long.npy --device cpu").bad(1, &["long.npy", "do not fill"]);
}

#[test]
fn what_is_no_package_is_not_replaced_by_one() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("m.onnx"), onnx()).unwrap();
    std::fs::create_dir_all(sandbox.path("web/src")).unwrap();
    std::fs::write(sandbox.path("web/manifest.json"), "{}").unwrap();
    sandbox.run("convert m.onnx --out web/").bad(1, &["web", "something else"]);
    assert_eq!(sandbox.read("web/manifest.json"), b"{}");
    std::fs::remove_dir(sandbox.path("web/src")).unwrap();
    sandbox.run("convert m.onnx --out web/").bad(1, &["web", "manifest.json"]);
    // Nor is what is beside a package.
    sandbox.run("convert m.onnx --out p/").good();
    std::fs::write(sandbox.path("p/notes.txt"), "mine").unwrap();
    sandbox.run("convert m.onnx --out p/").bad(1, &["p", "notes.txt"]);
    std::fs::remove_file(sandbox.path("p/notes.txt")).unwrap();
    for command in ["inspect p --json p/weights.safetensors", "convert m.onnx --out m.onnx"] {
        sandbox.run(command).bad(2, &["is a file of the"]);
    }
    sandbox.run("convert p --out q --report p/graph.bin").bad(2, &["a file of the model"]);
    sandbox.run("inspect p").good();
    // Nor is anything put into one, which would then be something else.
    std::fs::create_dir(sandbox.path("p/deep")).unwrap();
    for report in ["p/weights", "p/deep/r.json", "./p/../p/r.json", "new/r.json", "new"] {
        let out = if report.starts_with("new") { "new/" } else { "p" };
        let convert = format!("convert m.onnx --out {out} --report {report}");
        sandbox.run(&convert).bad(2, &["--report", report, "is a file of the package"]);
    }
    std::fs::remove_dir(sandbox.path("p/deep")).unwrap();
    assert!(!sandbox.path("new").exists());
    sandbox.run("convert m.onnx --out p --report r.json").good();
}

#[cfg(unix)]
#[test]
fn a_folder_keeps_its_links_and_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("m.onnx"), onnx()).unwrap();
    sandbox.run("convert m.onnx --out real/ --name first").good();
    let mode = || std::fs::metadata(sandbox.path("real")).unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(sandbox.path("real"), PermissionsExt::from_mode(0o700)).unwrap();
    symlink("real", sandbox.path("link")).unwrap();
    sandbox.run("convert m.onnx --out link --name second").good();
    assert!(sandbox.path("link").symlink_metadata().unwrap().is_symlink());
    assert_eq!(mode(), 0o700);
    assert!(sandbox.run("inspect real").good().out.contains("second("));
    symlink("nowhere", sandbox.path("ahead")).unwrap();
    sandbox.run("convert m.onnx --out ahead/").bad(1, &["ahead"]);
    let names = std::fs::read_dir(sandbox.path("")).unwrap().flatten().map(|e| e.file_name());
    let hidden: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn an_output_does_not_replace_an_input() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("m.onnx"), onnx()).unwrap();
    sandbox.run("convert m.onnx --out m.cupola").good();
    std::fs::create_dir(sandbox.path("o")).unwrap();
    let x = npy::write(&Array::from_slice(&[1.0f32; 6], [3, 2]).unwrap()).unwrap();
    std::fs::write(sandbox.path("o/scores_y.npy"), &x).unwrap();
    sandbox
        .run("run m.cupola --input x=o/scores_y.npy --output o")
        .bad(2, &["--output", "scores_y.npy", "an input"]);
    assert_eq!(sandbox.read("o/scores_y.npy"), x);
}

#[test]
fn damaged_weights_are_not_computed_with() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("m.onnx"), onnx()).unwrap();
    sandbox.run("convert m.onnx --out p/").good();
    let mut weights = sandbox.read("p/weights.safetensors");
    let last = weights.len() - 1;
    weights[last] ^= 0x40;
    std::fs::write(sandbox.path("p/weights.safetensors"), weights).unwrap();
    sandbox.run("run p --input x=random --size N=3").bad(1, &["weights.safetensors", "hash"]);
}
