//! Bad input: every file that is damaged or hostile is an error with the file, the node and the field.

use std::path::Path;

use cupola_core::Array;
use cupola_cpu as _;
use prost::Message;

use super::Model;
use super::proto::*;

const F16: i32 = 10;
const F32: i32 = 11;
const I32: i32 = 23;

fn tensor_type(code: i32, sizes: &[u64]) -> ValueType {
    let known =
        |&size: &u64| Dimension { kind: Some(DimensionKind::Constant(ConstantDimension { size })) };
    let dimensions = sizes.iter().map(known).collect();
    let rank = sizes.len() as i64;
    ValueType { kind: Some(TypeKind::Tensor(TensorType { data_type: code, rank, dimensions })) }
}

fn named(name: &str, r#type: ValueType) -> NamedValueType {
    NamedValueType { name: name.into(), r#type: Some(r#type) }
}

fn immediate(r#type: ValueType, elements: Elements) -> Value {
    let tensor = Immediate::Tensor(TensorValue { elements: Some(elements) });
    let kind = ValueKind::Immediate(ImmediateValue { kind: Some(tensor) });
    Value { r#type: Some(r#type), kind: Some(kind) }
}

fn ints(values: &[i32], sizes: &[u64]) -> Value {
    immediate(tensor_type(I32, sizes), Elements::Ints(Ints { values: values.to_vec() }))
}

fn floats(values: &[f32], sizes: &[u64]) -> Value {
    immediate(tensor_type(F32, sizes), Elements::Floats(Floats { values: values.to_vec() }))
}

fn stored(file: &str, offset: u64, sizes: &[u64]) -> Value {
    let blob = BlobFileValue { file_name: file.into(), offset };
    Value { r#type: Some(tensor_type(F32, sizes)), kind: Some(ValueKind::BlobFile(blob)) }
}

fn bound(name: &str) -> Binding {
    Binding { binding: Some(Bound::Name(name.into())) }
}

fn argument(key: &str, bindings: Vec<Binding>) -> ArgumentEntry {
    ArgumentEntry { key: key.into(), value: Some(Argument { arguments: bindings }) }
}

fn operation(op: &str, inputs: &[(&str, &str)], output: &str, sizes: &[u64]) -> Operation {
    Operation {
        r#type: op.into(),
        inputs: inputs.iter().map(|(key, name)| argument(key, vec![bound(name)])).collect(),
        outputs: vec![named(output, tensor_type(F32, sizes))],
        ..Default::default()
    }
}

fn constant(name: &str, value: Value) -> Operation {
    let output = NamedValueType { name: name.into(), r#type: value.r#type.clone() };
    Operation {
        r#type: "const".into(),
        outputs: vec![output],
        attributes: vec![ValueEntry { key: "val".into(), value: Some(value) }],
        ..Default::default()
    }
}

fn block(inputs: &[(&str, ValueType)], operations: Vec<Operation>, outputs: &[&str]) -> Block {
    Block {
        inputs: inputs.iter().map(|(name, kind)| named(name, kind.clone())).collect(),
        outputs: outputs.iter().map(|&name| name.into()).collect(),
        operations,
    }
}

/// A model of one function on x `[2]`.
fn model(operations: Vec<Operation>, outputs: &[&str]) -> super::proto::Model {
    let function = Function {
        inputs: vec![named("x", tensor_type(F32, &[2]))],
        opset: "CoreML5".into(),
        block_specializations: vec![BlockEntry {
            key: "CoreML5".into(),
            value: Some(block(&[], operations, outputs)),
        }],
    };
    let entry = FunctionEntry { key: "main".into(), value: Some(function) };
    super::proto::Model {
        specification_version: 6,
        program: Some(Program { version: 1, functions: vec![entry] }),
        ..Default::default()
    }
}

fn main_of(model: &mut super::proto::Model) -> &mut Function {
    let program = model.program.as_mut().unwrap();
    program.functions[0].value.as_mut().unwrap()
}

fn read(model: &super::proto::Model) -> super::Result<Model> {
    Model::from_bytes(&model.encode_to_vec())
}

fn x() -> Array {
    Array::from_slice(&[1.0f32, -2.0], [2]).unwrap()
}

/// The error of reading or running a model.
fn error(proto: &super::proto::Model) -> String {
    match read(proto).and_then(|model| model.run(&[("x", x())])) {
        Ok(_) => "none".into(),
        Err(error) => error.to_string(),
    }
}

fn relu() -> super::proto::Model {
    model(vec![operation("relu", &[("x", "x")], "y", &[2])], &["y"])
}

#[test]
fn a_program_runs() {
    let model = read(&relu()).unwrap();
    let out = model.run(&[("x", x())]).unwrap();
    assert_eq!((out[0].0.as_str(), out[0].1.to_vec::<f32>().unwrap()), ("y", vec![1.0, 0.0]));
    assert_eq!(
        (model.outputs(), model.version(), model.name()),
        (&["y".to_owned()][..], 6, "main")
    );
}

#[test]
fn every_truncation_and_mutation_is_an_error_or_a_model() {
    let add = operation("add", &[("x", "x"), ("y", "c")], "y", &[2]);
    let bytes = model(vec![constant("c", floats(&[1.0, 2.0], &[2])), add], &["y"]).encode_to_vec();
    let tried = |bytes: &[u8]| {
        if let Ok(model) = Model::from_bytes(bytes) {
            let _ = model.run(&[("x", x())]);
        }
    };
    (0..bytes.len()).for_each(|end| tried(&bytes[..end]));
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            tried(&bytes);
        }
    }
    assert!(Model::from_bytes(b"not a model").is_err());
}

#[test]
fn names_are_made_once_and_before_they_are_used() {
    let cycle = vec![
        operation("relu", &[("x", "b")], "a", &[2]),
        operation("relu", &[("x", "a")], "b", &[2]),
    ];
    let found = error(&model(cycle, &["b"]));
    assert!(
        found.contains("node 'a' (relu): the argument 'x': 'b' is made by no operation before")
    );
    let twice = vec![
        operation("relu", &[("x", "x")], "y", &[2]),
        operation("abs", &[("x", "x")], "y", &[2]),
    ];
    assert!(error(&model(twice, &["y"])).contains("node 'y' (abs): its output 'y' is there twice"));
    let again = operation("relu", &[("x", "x"), ("x", "x")], "y", &[2]);
    assert!(error(&model(vec![again], &["y"])).contains("the argument 'x' is there twice"));
    assert!(error(&model(Vec::new(), &["z"])).contains("the output 'z' is made by no operation"));
    assert!(error(&model(Vec::new(), &["x", "x"])).contains("the output 'x' is there twice"));
    let mut proto = relu();
    let function = main_of(&mut proto);
    function.inputs.push(function.inputs[0].clone());
    assert!(error(&proto).contains("the input 'x' is there twice"));
    let mut proto = relu();
    let program = proto.program.as_mut().unwrap();
    program.functions.push(program.functions[0].clone());
    assert!(error(&proto).contains("the function 'main' is there twice"));
    let mut proto = relu();
    main_of(&mut proto).opset = "CoreML9".into();
    assert!(error(&proto).contains("has no block of 'CoreML9'"));
}

#[test]
fn huge_sizes_are_refused() {
    for sizes in [&[u64::MAX][..], &[1 << 62, 4], &[1 << 40, 1 << 40], &[1 << 63]] {
        let held = constant("c", floats(&[], sizes));
        let found = error(&model(vec![held], &["c"]));
        assert!(found.contains("node 'c' (const)"), "{sizes:?}: {found}");
        let mut proto = relu();
        main_of(&mut proto).inputs[0] = named("x", tensor_type(F32, sizes));
        assert!(read(&proto).is_err() || error(&proto).contains("input 'x'"), "{sizes:?}");
    }
    for (op, parameter) in
        [("fill", "shape"), ("tile", "reps"), ("reshape", "shape"), ("pad", "pad")]
    {
        let size = constant("s", ints(&[i32::MAX, i32::MAX], &[2]));
        let mut made = operation(op, &[(parameter, "s")], "y", &[2]);
        if op != "fill" {
            made.inputs.push(argument("x", vec![bound("x")]));
        }
        assert!(error(&model(vec![size, made], &["y"])).contains(&format!("({op})")), "{op}");
    }
}

#[test]
fn results_are_what_the_program_says() {
    let found = error(&model(vec![operation("relu", &[("x", "x")], "y", &[3])], &["y"]));
    assert!(found.contains("node 'y' (relu): its output 'y' is [2], not [3]"), "{found}");
    let found = error(&model(vec![constant("c", floats(&[1.0], &[2]))], &["c"]));
    assert!(found.contains("4 bytes for fp32[2], which takes 8"), "{found}");
    let mut wrong = ints(&[1, 2], &[2]);
    wrong.r#type = Some(tensor_type(F16, &[2]));
    let found = error(&model(vec![constant("c", wrong)], &["c"]));
    assert!(found.contains("elements of fp16 among the integers"), "{found}");
}

#[test]
fn operators_that_are_not_read_are_named() {
    let proto = model(vec![operation("custom_layer", &[("x", "x")], "y", &[2])], &["y"]);
    let error = read(&proto).unwrap_err();
    assert!(error.is_unsupported(), "{error}");
    assert!(error.to_string().contains("node 'y' (custom_layer): the operator custom_layer"));
}

#[test]
fn other_models_and_versions_are_refused() {
    let network = super::proto::Model {
        specification_version: 4,
        neural_network: Some(Skipped {}),
        ..Default::default()
    };
    let found = read(&network).unwrap_err().to_string();
    assert!(found.contains("NeuralNetwork") && found.contains("convert_to=\"mlprogram\""));
    for version in [0, 5, 11, i32::MAX] {
        let proto = super::proto::Model { specification_version: version, ..relu() };
        assert!(error(&proto).contains("of the specification is not read, 6 to 10 are"));
    }
}

/// A loop that counts up to a number.
fn counted(to: i32, step: i32) -> super::proto::Model {
    let kind = tensor_type(I32, &[]);
    let less = Operation {
        outputs: vec![named("go", tensor_type(1, &[]))],
        ..operation("less", &[("x", "i"), ("y", "to")], "go", &[])
    };
    let next = Operation {
        outputs: vec![named("next", kind.clone())],
        ..operation("add", &[("x", "j"), ("y", "step")], "next", &[])
    };
    let double = operation("add", &[("x", "w"), ("y", "w")], "twice", &[2]);
    let x = tensor_type(F32, &[2]);
    let looped = Operation {
        r#type: "while_loop".into(),
        inputs: vec![argument("loop_vars", vec![bound("zero"), bound("x")])],
        outputs: vec![named("count", kind.clone()), named("y", x.clone())],
        blocks: vec![
            block(&[("i", kind.clone()), ("v", x.clone())], vec![less], &["go"]),
            block(&[("j", kind), ("w", x)], vec![next, double], &["next", "twice"]),
        ],
        ..Default::default()
    };
    let known = |name: &str, value: i32| constant(name, ints(&[value], &[]));
    model(vec![known("zero", 0), known("to", to), known("step", step), looped], &["y"])
}

#[test]
fn loops_are_unrolled_and_endless_ones_end() {
    let out = read(&counted(3, 1)).unwrap().run(&[("x", x())]).unwrap();
    assert_eq!(out[0].1.to_vec::<f32>().unwrap(), [8.0, -16.0]);
    // A step of 0 changes x, so that nothing but the condition says that it goes on.
    let mut endless = counted(3, 0);
    let body = main_of(&mut endless).block_specializations[0].value.as_mut().unwrap();
    let looped = body.operations.last_mut().unwrap();
    looped.blocks[1].outputs = vec!["j".into(), "w".into()];
    assert!(error(&endless).contains("(while_loop): the loop does not end"));
}

#[test]
fn blocks_do_not_lie_in_each_other_without_end() {
    let mut inner = operation("relu", &[("x", "x")], "y0", &[2]);
    for depth in 1..90 {
        let name = format!("y{depth}");
        let outputs = [inner.outputs[0].name.clone()];
        let blocks = vec![block(&[], vec![inner], &[&outputs[0]])];
        inner = Operation { blocks, ..operation("cond", &[("pred", "x")], &name, &[2]) };
    }
    assert!(error(&model(vec![inner], &["y89"])).contains("Core ML model"));
}

/// A package in a folder, with a record of weights.
fn package(folder: &Path, model: &super::proto::Model, manifest: &str, record: &[u8]) {
    let inner = folder.join("Data/m");
    std::fs::create_dir_all(inner.join("weights")).unwrap();
    std::fs::write(inner.join("model.mlmodel"), model.encode_to_vec()).unwrap();
    std::fs::write(inner.join("weights/weight.bin"), record).unwrap();
    std::fs::write(folder.join("Manifest.json"), manifest).unwrap();
}

const MANIFEST: &str =
    r#"{"rootModelIdentifier": "a", "itemInfoEntries": {"a": {"path": "m/model.mlmodel"}}}"#;

/// A file of weights whose record lies behind its head.
fn weights(sentinel: u32, kind: u32, size: u64, offset: u64, values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes.extend(sentinel.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(offset.to_le_bytes());
    bytes.resize(128, 0);
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

#[test]
fn weights_are_read_where_they_are_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = "@model_path/weights/weight.bin";
    let tried = |file: &str, offset: u64, record: &[u8]| {
        let add = operation("add", &[("x", "x"), ("y", "w")], "y", &[2]);
        let held = constant("w", stored(file, offset, &[2]));
        package(folder.path(), &model(vec![held, add], &["y"]), MANIFEST, record);
        Model::load(folder.path())
    };
    let good = weights(0xDEAD_BEEF, 2, 8, 128, &[3.0, 4.0]);
    let out = tried(file, 64, &good).unwrap().run(&[("x", x())]).unwrap();
    assert_eq!(out[0].1.to_vec::<f32>().unwrap(), [4.0, 2.0]);
    let wrong = |file: &str, offset: u64, record: &[u8], part: &str| {
        let error = tried(file, offset, record).unwrap_err().to_string();
        assert!(error.contains("model.mlmodel: node 'w' (const)"), "{error}");
        assert!(error.contains(part), "{part}: {error}");
    };
    std::fs::write(folder.path().join("Data/secret"), &good).unwrap();
    wrong("@model_path/../secret", 64, &good, "leaves the folder");
    wrong("@model_path//etc/passwd", 0, &good, "leaves the folder");
    wrong("/etc/passwd", 0, &good, "do not lie in @model_path/");
    wrong("@model_path/weights/other.bin", 0, &good, "other.bin");
    wrong(file, u64::MAX, &good, "64 at 18446744073709551615 are wanted");
    wrong(file, 100, &good, "are wanted");
    wrong(file, 64, &weights(7, 2, 8, 128, &[3.0, 4.0]), "begins no record");
    wrong(file, 64, &weights(0xDEAD_BEEF, 1, 8, 128, &[3.0, 4.0]), "the model says fp32");
    wrong(file, 64, &weights(0xDEAD_BEEF, 2, 9, 128, &[3.0, 4.0]), "9 bytes for fp32[2]");
    wrong(file, 64, &weights(0xDEAD_BEEF, 2, 8, 130, &[3.0, 4.0]), "8 at 130 are wanted");
    wrong(file, 64, &weights(0xDEAD_BEEF, 2, 8, u64::MAX, &[3.0, 4.0]), "are wanted");
    let alone = read(&model(vec![constant("w", stored(file, 64, &[2]))], &["w"]));
    assert!(alone.unwrap_err().to_string().contains("a model from memory has no external data"));
}

#[test]
fn manifests_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.mlpackage");
    for (manifest, part) in [
        ("", "is no manifest"),
        ("{}", "has no rootModelIdentifier"),
        (r#"{"rootModelIdentifier": "a"}"#, "has no path of the item 'a'"),
        (
            r#"{"rootModelIdentifier": "a", "itemInfoEntries": {"a": {"path": "../m/model.mlmodel"}}}"#,
            "leaves the folder",
        ),
        (r#"{"rootModelIdentifier": "a", "itemInfoEntries": {"a": {"path": "n"}}}"#, "'n'"),
    ] {
        package(&path, &relu(), manifest, &[]);
        let error = Model::load(&path).unwrap_err().to_string();
        assert!(error.contains("Manifest.json") && error.contains(part), "{part}: {error}");
    }
    package(&path, &relu(), &"[".repeat(1 << 16), &[]);
    assert!(Model::load(&path).unwrap_err().to_string().contains("is no manifest"));
    std::fs::remove_file(path.join("Manifest.json")).unwrap();
    assert!(Model::load(&path).unwrap_err().to_string().contains("Manifest.json"));
    let bare = folder.path().join("m.mlmodel");
    std::fs::write(&bare, relu().encode_to_vec()).unwrap();
    assert!(Model::load(&bare).is_ok());
}

#[cfg(unix)]
#[test]
fn only_files_of_some_size_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (package, model) = (folder.path().join("p.mlpackage"), folder.path().join("m.mlmodel"));
    std::fs::create_dir(&package).unwrap();
    let manifest = package.join("Manifest.json");
    for (file, loaded, size) in [(&manifest, &package, 1u64 << 20), (&model, &model, 1 << 31)] {
        let error = || Model::load(loaded).unwrap_err().to_string();
        let name = file.display();
        std::os::unix::fs::symlink("/dev/zero", file).unwrap();
        assert_eq!(error(), format!("{name}: it is no file"));
        std::fs::remove_file(file).unwrap();
        std::fs::File::create(file).unwrap().set_len(size + 1).unwrap();
        assert!(error().starts_with(&format!("{name}: it is too large")), "{}", error());
    }
}

#[test]
fn an_infinite_mask_in_half_precision_is_said() {
    let half = |value: u16| {
        let bytes = [0u16, value].iter().flat_map(|v| v.to_le_bytes()).collect();
        immediate(tensor_type(F16, &[2]), Elements::Bytes(Bytes { values: bytes }))
    };
    let said = |value: u16| {
        let add = Operation {
            outputs: vec![named("y", tensor_type(F16, &[2]))],
            ..operation("add", &[("x", "h"), ("y", "mask")], "y", &[2])
        };
        let cast = Operation {
            outputs: vec![named("h", tensor_type(F16, &[2]))],
            ..operation("relu", &[("x", "x")], "h", &[2])
        };
        let proto = model(vec![constant("mask", half(value)), cast, add], &["y"]);
        read(&proto).unwrap().warnings().to_vec()
    };
    assert!(said(0xFC00)[0].contains("node 'y' (add): 'mask' is infinite in float16"));
    assert!(said(0xFBFF).is_empty());
}

#[test]
fn inputs_are_checked() {
    let model = read(&relu()).unwrap();
    let failed = |inputs: &[(&str, Array)]| model.run(inputs).unwrap_err().to_string();
    assert!(failed(&[]).contains("input 'x': is not given"));
    assert!(failed(&[("x", x()), ("x", x())]).contains("is given twice"));
    assert!(failed(&[("z", x())]).contains("the model's inputs are 'x'"));
    let three = Array::from_slice(&[0f32; 3], [3]).unwrap();
    assert!(failed(&[("x", three)]).contains("is [2], [3] is given"));
    let whole = Array::from_slice(&[1i32, 2], [2]).unwrap();
    assert!(failed(&[("x", whole)]).contains("holds float32, int32 is given"));
}

/// Models that coremltools wrote; those that the fuzz target begins with.
const MODELS: [&[u8]; 2] =
    [include_bytes!("models/layers.mlmodel"), include_bytes!("models/control.mlmodel")];

/// What a model gives for inputs of ones and states of zeros.
fn on_ones(bytes: &[u8]) -> super::Result<Vec<(String, Array)>> {
    let model = Model::from_bytes(bytes)?;
    let full = |port: &super::Port, value: f32| {
        let size = |size: &super::Size| match size {
            super::Size::Known(size) => *size,
            super::Size::Range(least, _) => *least,
        };
        let sizes: Vec<usize> = port.sizes.iter().map(size).collect();
        let small = sizes.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        small.filter(|&count| count <= 1 << 12)?;
        Some((port.name.clone(), cupola_core::ops::full(sizes, value, port.dtype).ok()?))
    };
    let inputs = model.inputs().into_iter().filter_map(|port| full(port, 1.0));
    let states = model.states().into_iter().filter_map(|port| full(port, 0.0));
    let given: Vec<(String, Array)> = inputs.chain(states).collect();
    model.run(&given.iter().map(|(name, x)| (name.as_str(), x.clone())).collect::<Vec<_>>())
}

#[test]
fn models_of_coremltools_run_and_damaged_ones_say_why_not() {
    let layers = on_ones(MODELS[0]).unwrap();
    assert_eq!((layers[0].0.as_str(), &layers[0].1.shape()[..]), ("y", &[4, 2][..]));
    let control = on_ones(MODELS[1]).unwrap();
    assert_eq!(control[0].1.to_vec::<f32>().unwrap(), [1f32.exp(); 3]);
    assert_eq!(control[1].0, "total");
    for bytes in MODELS {
        for at in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 1 << (at % 8);
            if let Err(error) = on_ones(&damaged) {
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
            }
        }
    }
}
