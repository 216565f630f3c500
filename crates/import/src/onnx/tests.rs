//! Bad input: every file that is damaged or hostile is an error with the file and the node.

use cupola_core::Array;
use cupola_cpu as _;
use prost::Message;

use super::Model;
use super::kept::Way;
use super::proto::*;

fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let names = |list: &[&str]| list.iter().map(|&n| n.to_owned()).collect();
    NodeProto {
        op_type: op.into(),
        name: format!("the {op}"),
        input: names(inputs),
        output: names(outputs),
        ..Default::default()
    }
}

fn info(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: name.into(), r#type: None }
}

fn graph(nodes: Vec<NodeProto>, inputs: &[&str], outputs: &[&str]) -> GraphProto {
    let infos = |list: &[&str]| list.iter().map(|&n| info(n)).collect();
    GraphProto { node: nodes, input: infos(inputs), output: infos(outputs), ..Default::default() }
}

fn model(graph: GraphProto) -> ModelProto {
    let opset = |domain: &str| OperatorSetIdProto { domain: domain.into(), version: 20 };
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![opset(""), opset("own")],
        graph: Some(graph),
        ..Default::default()
    }
}

fn read(model: &ModelProto) -> super::Result<Model> {
    Model::from_bytes(&model.encode_to_vec())
}

/// The error of reading or running a model on one small vector.
fn error(proto: &ModelProto) -> String {
    let made = read(proto).and_then(|model| {
        let x = Array::from_slice(&[1.0f32, 2.0], [2])
            .map_err(|e| super::Error::file("", e.to_string()))?;
        let names: Vec<String> = model.inputs().iter().map(|p| p.name.clone()).collect();
        model.run(&names.iter().map(|n| (n.as_str(), x.clone())).collect::<Vec<_>>())
    });
    match made {
        Ok(_) => "none".into(),
        Err(error) => error.to_string(),
    }
}

fn tensor(name: &str, dims: &[i64], ints: &[i64]) -> TensorProto {
    TensorProto {
        name: name.into(),
        dims: dims.to_vec(),
        data_type: 7,
        int64_data: ints.to_vec(),
        ..Default::default()
    }
}

#[test]
fn unsorted_graphs_run() {
    let nodes = vec![node("Neg", &["y"], &["z"]), node("Abs", &["x"], &["y"])];
    let read = read(&model(graph(nodes, &["x"], &["z"]))).unwrap();
    let x = Array::from_slice(&[-1.0f32, 2.0], [2]).unwrap();
    let out = read.run(&[("x", x)]).unwrap();
    assert_eq!(out[0].1.to_vec::<f32>().unwrap(), [-1.0, -2.0]);
}

#[test]
fn every_truncation_is_an_error_or_a_model() {
    let bytes = model(graph(vec![node("Neg", &["x"], &["y"])], &["x"], &["y"])).encode_to_vec();
    for end in 0..bytes.len() {
        let _ = Model::from_bytes(&bytes[..end]);
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            let _ = Model::from_bytes(&bytes);
        }
    }
    assert!(Model::from_bytes(b"not a model").is_err());
}

#[test]
fn cycles_and_names_twice_are_named() {
    let cycle = vec![node("Neg", &["a"], &["b"]), node("Abs", &["b"], &["a"])];
    assert!(
        error(&model(graph(cycle, &[], &["b"])))
            .contains("node 'the Neg' (Neg): it needs what comes of it")
    );
    let twice = vec![node("Neg", &["x"], &["y"]), node("Abs", &["x"], &["y"])];
    assert!(error(&model(graph(twice, &["x"], &["y"]))).contains("its output 'y' is there twice"));
    let missing = vec![node("Neg", &["nowhere"], &["y"])];
    assert!(
        error(&model(graph(missing, &[], &["y"])))
            .contains("'nowhere' is needed and made by no node")
    );
    assert!(error(&model(graph(Vec::new(), &["x", "x"], &["x"]))).contains("'x' is there twice"));
}

#[test]
fn functions_that_call_themselves_end() {
    let mut call = node("F", &["x"], &["y"]);
    call.domain = "own".into();
    let mut proto = model(graph(vec![call.clone()], &["x"], &["y"]));
    proto.functions.push(FunctionProto {
        name: "F".into(),
        domain: "own".into(),
        input: vec!["x".into()],
        output: vec!["y".into()],
        node: vec![call],
        ..Default::default()
    });
    assert!(error(&proto).contains("graphs lie in each other"));
}

#[test]
fn huge_sizes_are_refused() {
    for dims in [&[i64::MAX][..], &[1 << 40, 1 << 40], &[-1], &[1 << 62, 4]] {
        let mut graph = graph(Vec::new(), &[], &["w"]);
        graph.initializer.push(tensor("w", dims, &[]));
        assert!(error(&model(graph)).contains("initializer 'w'"), "{dims:?}");
    }
    for op in ["ConstantOfShape", "Expand", "Tile", "Reshape"] {
        let inputs: &[&str] = if op == "ConstantOfShape" { &["s"] } else { &["x", "s"] };
        let mut graph = graph(vec![node(op, inputs, &["y"])], &["x"], &["y"]);
        graph.initializer.push(tensor("s", &[1], &[i64::MAX - 1]));
        assert!(error(&model(graph)).contains(op), "{op}");
    }
    let mut graph = graph(vec![node("Range", &["a", "b", "c"], &["y"])], &[], &["y"]);
    for (name, value) in [("a", i64::MIN), ("b", i64::MAX), ("c", 1)] {
        graph.initializer.push(tensor(name, &[], &[value]));
    }
    assert!(error(&model(graph)).contains("is too long"));
}

#[test]
fn endless_loops_end() {
    let body = graph(vec![node("Identity", &["c"], &["d"])], &["i", "c"], &["d"]);
    let mut looped = node("Loop", &["", ""], &[]);
    looped.attribute.push(AttributeProto {
        name: "body".into(),
        r#type: 5,
        g: Some(body),
        ..Default::default()
    });
    assert!(error(&model(graph(vec![looped], &["x"], &["x"]))).contains("the loop does not end"));
}

#[test]
fn external_data_stay_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("model");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(folder.path().join("secret"), [0; 16]).unwrap();
    std::fs::write(inner.join("data"), [1, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    let at = |location: &str, offset: &str| {
        let mut graph = graph(vec![node("Neg", &["w"], &["y"])], &[], &["y"]);
        let mut held = tensor("w", &[1], &[]);
        held.data_location = 1;
        let entry = |key: &str, value: &str| StringStringEntryProto {
            key: key.into(),
            value: value.into(),
        };
        held.external_data = vec![entry("location", location), entry("offset", offset)];
        graph.initializer.push(held);
        let path = inner.join("model.onnx");
        std::fs::write(&path, model(graph).encode_to_vec()).unwrap();
        Model::load(path)
    };
    let data = inner.join("data").canonicalize().unwrap();
    assert_eq!(at("data", "0").unwrap().beside(), [data]);
    for location in ["../secret", "/etc/passwd", "a/../../secret", "", "..\\secret"] {
        let error = at(location, "0").unwrap_err().to_string();
        assert!(error.contains("leaves the folder") && error.contains("model.onnx"), "{error}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path().join("secret"), inner.join("link")).unwrap();
        assert!(at("link", "0").unwrap_err().to_string().contains("leaves the folder"));
    }
    assert!(at("data", "18446744073709551615").unwrap_err().to_string().contains("are wanted"));
    assert!(at("data", "4").unwrap_err().to_string().contains("has 8 bytes"));
}

/// A file with holes has more bytes than there is memory.
#[cfg(target_os = "linux")]
#[test]
fn external_data_beyond_the_memory_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let size = cupola_core::backend::system_memory() as u64 * 2;
    std::fs::File::create(folder.path().join("data")).unwrap().set_len(size).unwrap();
    let mut graph = graph(vec![node("Neg", &["w"], &["y"])], &[], &["y"]);
    let mut held = tensor("w", &[size as i64 / 8], &[]);
    held.data_location = 1;
    let entry = StringStringEntryProto { key: "location".into(), value: "data".into() };
    held.external_data = vec![entry];
    graph.initializer.push(held);
    let path = folder.path().join("model.onnx");
    std::fs::write(&path, model(graph).encode_to_vec()).unwrap();
    let error = Model::load(path).unwrap_err().to_string();
    assert!(error.contains("initializer 'w'") && error.contains("memory"), "{error}");
}

#[cfg(unix)]
#[test]
fn only_files_of_at_most_2_gib_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    let error = || Model::load(&path).unwrap_err().to_string();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert!(error().contains("model.onnx: it is no file"), "{}", error());
    std::fs::remove_file(&path).unwrap();
    std::fs::File::create(&path).unwrap().set_len((1 << 31) + 1).unwrap();
    assert!(error().contains("model.onnx: it is too large"), "{}", error());
}

#[test]
fn endless_sequences_are_refused() {
    let nodes = vec![
        node("ConstantOfShape", &["s"], &["c"]),
        node("SplitToSequence", &["c"], &["parts"]),
        node("SequenceLength", &["parts"], &["y"]),
    ];
    let mut graph = graph(nodes, &[], &["y"]);
    graph.initializer.push(tensor("s", &[1], &[1 << 30]));
    assert!(error(&model(graph)).contains("a sequence of 1073741824 parts"));
}

#[test]
fn operators_that_are_not_read_are_named() {
    let proto = model(graph(vec![node("ImageDecoder", &["x"], &["y"])], &["x"], &["y"]));
    let error = read(&proto).unwrap_err();
    assert!(
        error.is_unsupported() && error.to_string().contains("ImageDecoder is not read"),
        "{error}"
    );
    let proto = model(graph(vec![node("Gather", &["x"], &["y"])], &["x"], &["y"]));
    assert!(super::tests::error(&proto).contains("node 'the Gather' (Gather): input 1 is missing"));
}

fn body(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto { name: name.into(), r#type: 5, g: Some(graph), ..Default::default() }
}

fn number(name: &str, value: i64) -> AttributeProto {
    AttributeProto { name: name.into(), r#type: 2, i: Some(value), ..Default::default() }
}

fn named(node: NodeProto, name: &str) -> NodeProto {
    NodeProto { name: name.into(), ..node }
}

/// What a model gives of a vector: as it is, and compiled, where its values are not known.
fn both(proto: &ModelProto, x: &[f32]) -> Vec<Vec<f32>> {
    let read = std::sync::Arc::new(read(proto).unwrap());
    let run = {
        let read = read.clone();
        move |x: &[Array]| Ok(vec![read.run(&[("x", x[0].clone())])?.remove(0).1])
    };
    let x = [Array::from_slice(x, [x.len()]).unwrap()];
    let plain = run(&x).unwrap();
    let compiled = cupola_core::transform::compile(move |_: &mut (), x: &[Array]| run(x));
    let compiled = compiled.call(&mut (), &x).unwrap();
    [plain, compiled].iter().map(|y| y[0].to_vec::<f32>().unwrap()).collect()
}

#[test]
fn conditions_may_depend_on_inputs() {
    // The square root of a positive sum's terms, or their negatives.
    let outer = |name: &'static str, op: &str| {
        body(name, graph(vec![node(op, &["x"], &["out"])], &[], &["out"]))
    };
    let mut choice = node("If", &["positive"], &["y"]);
    choice.attribute = vec![outer("then_branch", "Sqrt"), outer("else_branch", "Neg")];
    let mut total = node("ReduceSum", &["x"], &["sum"]);
    total.attribute.push(number("keepdims", 0));
    let mut whole = graph(
        vec![total, node("Greater", &["sum", "zero"], &["positive"]), choice],
        &["x"],
        &["y"],
    );
    whole.initializer.push(TensorProto {
        name: "zero".into(),
        data_type: 1,
        float_data: vec![0.0],
        ..Default::default()
    });
    let proto = model(whole);
    assert_eq!(both(&proto, &[4.0, 9.0]), [[2.0, 3.0], [2.0, 3.0]]);
    assert_eq!(both(&proto, &[-4.0, -9.0]), [[4.0, 9.0], [4.0, 9.0]]);
}

/// Doubles x until the sum is beyond 100, in at most so many rounds.
fn doubling(outputs: &[&str]) -> ModelProto {
    let mut total = node("ReduceSum", &["twice"], &["sum"]);
    total.attribute.push(number("keepdims", 0));
    let steps = vec![
        node("Add", &["x_in", "x_in"], &["twice"]),
        total,
        node("Less", &["sum", "hundred"], &["on"]),
    ];
    let mut looped = node("Loop", &["most", "", "x"], outputs);
    let stacked: &[&str] =
        if outputs.len() > 1 { &["on", "twice", "sum"] } else { &["on", "twice"] };
    looped.attribute.push(body("body", graph(steps, &["i", "was_on", "x_in"], stacked)));
    let mut whole = graph(vec![looped], &["x"], &[outputs[outputs.len() - 1]]);
    whole.initializer.push(tensor("most", &[], &[50]));
    whole.initializer.push(TensorProto {
        name: "hundred".into(),
        data_type: 1,
        float_data: vec![100.0],
        ..Default::default()
    });
    model(whole)
}

#[test]
fn loops_may_end_as_inputs_say() {
    let proto = doubling(&["y"]);
    assert_eq!(both(&proto, &[1.0, 2.0]), [[64.0, 128.0], [64.0, 128.0]]);
    assert_eq!(both(&proto, &[60.0, 70.0]), [[120.0, 140.0], [120.0, 140.0]]);
    // How many sums there are would depend on x.
    let read = read(&doubling(&["y", "sums"])).unwrap();
    let run =
        move |_: &mut (), x: &[Array]| Ok(vec![read.run(&[("x", x[0].clone())])?.remove(0).1]);
    let x = Array::from_slice(&[1.0f32, 2.0], [2]).unwrap();
    let compiled = cupola_core::transform::compile(run).call(&mut (), &[x]);
    let error = compiled.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("the Loop") && error.contains("outputs that are stacked"), "{error}");
}

#[test]
fn long_scans_are_one_loop() {
    // Running sums from the end to the start, and the sum of all.
    let steps = vec![
        node("Add", &["sum_in", "x_in"], &["sum_out"]),
        named(node("Identity", &["sum_out"], &["given"]), "given"),
    ];
    let mut scan = node("Scan", &["start", "x"], &["sum", "y"]);
    scan.attribute.push(body("body", graph(steps, &["sum_in", "x_in"], &["sum_out", "given"])));
    scan.attribute.push(number("num_scan_inputs", 1));
    let directions = |name: &str| AttributeProto {
        name: name.into(),
        r#type: 7,
        ints: vec![1],
        ..Default::default()
    };
    scan.attribute.push(directions("scan_input_directions"));
    scan.attribute.push(directions("scan_output_directions"));
    let mut whole = graph(vec![scan], &["x"], &["y"]);
    whole.initializer.push(TensorProto {
        name: "start".into(),
        data_type: 1,
        float_data: vec![0.5],
        ..Default::default()
    });
    let proto = model(whole);
    for length in [3, 40] {
        let x: Vec<f32> = (0..length).map(|i| i as f32).collect();
        let want: Vec<f32> =
            (0..length).map(|i| 0.5 + (i..length).map(|j| j as f32).sum::<f32>()).collect();
        assert_eq!(both(&proto, &x), [want.clone(), want]);
    }
    let read = read(&proto).unwrap();
    let x = Array::from_slice(&[1.0f32; 40], [40]).unwrap();
    let y = read.run(&[("x", x)]).unwrap().remove(0).1;
    let plan = cupola_core::plan::explain(&[y]).unwrap();
    assert_eq!(plan.steps.iter().filter(|step| step.kind == "scan").count(), 1, "{plan}");
}

fn graph_attribute(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto { name: name.into(), r#type: 5, g: Some(graph), ..Default::default() }
}

/// `x` times one matrix where `kind` is 7, else times another, which has `rows` rows.
fn choosing(rows: i64) -> Model {
    let product =
        |matrix: &str, out: &str| graph(vec![node("MatMul", &["x", matrix], &[out])], &[], &[out]);
    let mut choice = node("If", &["is_seven"], &["y"]);
    choice.attribute = vec![
        graph_attribute("then_branch", product("seven", "a")),
        graph_attribute("else_branch", product("other", "b")),
    ];
    let nodes = vec![node("Equal", &["kind", "number"], &["is_seven"]), choice];
    let mut graph = graph(nodes, &["x", "kind"], &["y"]);
    let float = |mut tensor: TensorProto| {
        tensor.data_type = 1;
        tensor.float_data = tensor.int64_data.drain(..).map(|v| v as f32).collect();
        tensor
    };
    let other: Vec<i64> = (0..2 * rows).collect();
    graph.initializer = vec![
        tensor("number", &[], &[7]),
        float(tensor("seven", &[2, 2], &[1, 0, 0, 1])),
        float(tensor("other", &[rows, 2], &other)),
    ];
    read(&model(graph)).unwrap()
}

fn chosen(model: &Model, kind: i64) -> super::Result<Vec<f32>> {
    let x = Array::from_slice(&[1.0f32, 2.0], [1, 2]).unwrap();
    let out = model.run(&[("x", x), ("kind", Array::scalar(kind))])?;
    Ok(out[0].1.to_vec().unwrap())
}

#[test]
fn one_graph_is_for_all_values_where_both_branches_fit() {
    let model = choosing(2);
    for _ in 0..2 {
        assert_eq!(chosen(&model, 7).unwrap(), [1.0, 2.0]);
        assert_eq!(chosen(&model, 8).unwrap(), [4.0, 7.0]);
    }
    assert_eq!(model.kept.ways(), [(Way::Any, 1)]);
}

#[test]
fn a_graph_is_for_values_where_one_branch_fits() {
    let model = choosing(3);
    for _ in 0..3 {
        assert_eq!(chosen(&model, 7).unwrap(), [1.0, 2.0]);
        assert_eq!(model.kept.ways(), [(Way::Values, 1)]);
        let error = chosen(&model, 8).unwrap_err().to_string();
        assert!(error.contains("the If") && error.contains("the MatMul"), "{error}");
    }
    // After many values that fit nothing it is recorded at each run.
    (0..8).for_each(|kind| assert_eq!(chosen(&model, kind).is_ok(), kind == 7));
    assert_eq!(chosen(&model, 7).unwrap(), [1.0, 2.0]);
    assert_eq!(model.kept.ways(), [(Way::Anew, 0)]);
}

#[test]
fn what_values_decide_the_size_of_is_recorded_at_each_run() {
    let read = read(&model(graph(vec![node("NonZero", &["x"], &["y"])], &["x"], &["y"]))).unwrap();
    for (values, places) in [([0.0f32, 1.0], vec![1i64]), ([2.0, 1.0], vec![0, 1])] {
        let x = Array::from_slice(&values, [2]).unwrap();
        assert_eq!(read.run(&[("x", x)]).unwrap()[0].1.to_vec::<i64>().unwrap(), places);
    }
    // Other shapes are other kinds, of which those of late are known.
    for size in 1..20 {
        let x = Array::from_slice(&vec![1.0f32; size], [size]).unwrap();
        assert_eq!(read.run(&[("x", x)]).unwrap()[0].1.aval().shape[..], [1, size]);
    }
    assert_eq!(read.kept.ways().len(), 8);
}

#[test]
fn kept_graphs_draw_other_numbers_and_are_differentiated() {
    use cupola_core::transform::grad;
    let drawn = node("RandomNormalLike", &["x"], &["noise"]);
    let nodes = vec![
        drawn,
        node("Mul", &["noise", "zero"], &["none"]),
        node("Mul", &["x", "x"], &["xx"]),
        node("Add", &["none", "xx"], &["y"]),
    ];
    let mut graph = graph(nodes, &["x"], &["y", "noise"]);
    let mut zero = tensor("zero", &[], &[]);
    (zero.data_type, zero.float_data) = (1, vec![0.0]);
    graph.initializer = vec![zero];
    let read = read(&model(graph)).unwrap();
    let x = Array::from_slice(&[1.0f32, 3.0], [2]).unwrap();
    let run = || read.run(&[("x", x.clone())]).unwrap();
    let (first, second) = (run(), run());
    assert_eq!(read.kept.ways(), [(Way::Any, 1)]);
    assert_eq!(second[0].1.to_vec::<f32>().unwrap(), [1.0, 9.0]);
    assert_ne!(first[1].1.to_vec::<f32>().unwrap(), second[1].1.to_vec::<f32>().unwrap());
    let f = |x: &[Array]| {
        let y = read.run(&[("x", x[0].clone())]).map_err(cupola_core::Error::from)?;
        Ok(vec![cupola_core::ops::sum(&y[0].1, (), false)?])
    };
    assert_eq!(grad(f, &[0])(&[x.clone()]).unwrap()[0].to_vec::<f32>().unwrap(), [2.0, 6.0]);
}
