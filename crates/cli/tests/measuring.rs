//! `cupola bench`, on little work.

mod common;

use common::{Sandbox, TESTS};
use cupola::io::safetensors;
use serde_json::Value;

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn the_network_is_measured() {
    let sandbox = Sandbox::new();
    let ran = sandbox
        .run(
            "bench --dataset mnist --data-dir data --device cpu --steps 1 --json bench.json \
             --out charts --outputs outputs.safetensors",
        )
        .good();
    assert!(ran.out.contains("epoch, ms") && ran.out.contains("cpu"), "{}", ran.out);
    let found = json(&sandbox.read("bench.json"));
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(found[0]["device"], "cpu");
    assert_eq!(found[0]["data"], "device");
    assert_eq!(found[0]["epoch"]["steps"], 1);
    for time in [
        &found[0]["epoch"]["ms"],
        &found[0]["train_step_ms"]["median"],
        &found[0]["classify_10k_batch512_ms"],
        &found[0]["classify_9728_batch512_ms"],
        &found[0]["classify_one_us"]["p95"],
    ] {
        assert!(time.as_f64().unwrap() > 0.0, "{found}");
    }
    assert!(sandbox.path("charts/epoch.svg").is_file());

    let (outputs, metadata) = safetensors::load(sandbox.path("outputs.safetensors")).unwrap();
    assert_eq!(outputs["test.pixels"].shape()[..], [TESTS, 28, 28, 1]);
    assert_eq!(outputs["cpu/conv2.weight"].shape()[..], [50, 5, 5, 20]);
    assert!(metadata.contains_key("mean") && metadata.contains_key("std"));
    let scores = &outputs["cpu/log_probabilities"];
    assert_eq!(scores.shape()[..], [9728, 10]);
    // Logarithms of probabilities, whose sum is 1; the images come again after the last.
    let scores = scores.to_vec::<f32>().unwrap();
    for image in [0, 9727] {
        let total: f32 = scores[10 * image..10 * (image + 1)].iter().map(|s| s.exp()).sum();
        assert!((total - 1.0).abs() < 1e-5, "{total}");
    }
    for (first, again) in scores[..10].iter().zip(&scores[10 * TESTS..]) {
        assert!((first - again).abs() < 1e-4, "{first} {again}");
    }
}

#[test]
fn images_may_come_from_the_host() {
    let sandbox = Sandbox::new();
    sandbox
        .run(
            "bench --dataset mnist --data-dir data --device cpu --steps 1 --from-host \
             --json bench.json",
        )
        .good();
    assert_eq!(json(&sandbox.read("bench.json"))[0]["data"], "host");
}

#[test]
fn kernels_are_measured() {
    let sandbox = Sandbox::new();
    let ran = sandbox
        .run(
            "bench --kernels --device cpu --scale 1e-6 --json kernels.json \
             --outputs outputs.safetensors",
        )
        .good();
    let found = json(&sandbox.read("kernels.json"));
    let rows = found[0]["kernels"].as_array().unwrap();
    assert!(rows.len() >= 14, "{}", ran.out);
    let (outputs, _) = safetensors::load(sandbox.path("outputs.safetensors")).unwrap();
    for row in rows {
        assert!(row["rate"].as_f64().is_some_and(|rate| rate > 0.0), "{row}");
        let (work, precision) = (row["work"].as_str().unwrap(), row["precision"].as_str().unwrap());
        assert!(ran.out.contains(work), "{work} is not in {}", ran.out);
        let sample = outputs[&format!("cpu/{work}.{precision}")].to_vec::<f32>().unwrap();
        assert!(!sample.is_empty() && sample.len() <= 4096, "{row}");
        assert!(sample.iter().all(|value| value.is_finite()), "{row}");
    }
    let row = |work: &str| rows.iter().find(|row| row["work"] == work).unwrap();
    assert_eq!(row("softmax")["sizes"], serde_json::json!([16, 16]));
    assert!(row("launch")["segments"].as_u64().unwrap() >= 1000);
    let softmax = outputs["cpu/softmax.f32"].to_vec::<f32>().unwrap();
    assert!((softmax.iter().sum::<f32>() - 16.0).abs() < 1e-3, "rows add up to 1");
}

#[test]
fn kernels_by_name() {
    let sandbox = Sandbox::new();
    sandbox
        .run("bench --kernels --device cpu --scale 1e-6 --only sum,conv5 --json out.json")
        .good();
    let found = json(&sandbox.read("out.json"));
    let rows = found[0]["kernels"].as_array().unwrap();
    let mut works: Vec<&str> = rows.iter().map(|row| row["work"].as_str().unwrap()).collect();
    works.dedup();
    assert_eq!(works, ["conv5x5_20_50", "conv5x5_50_100", "sum"]);
}

#[test]
fn what_cannot_be_measured() {
    let sandbox = Sandbox::new();
    sandbox.run("bench --kernels --device cpu --only fft").bad(2, &["--only", "fft", "matmul"]);
    sandbox.run("bench --kernels --scale 0").bad(2, &["--scale"]);
    sandbox.run("bench --kernels --scale 1.5").bad(2, &["--scale"]);
    sandbox.run("bench --kernels --dataset mnist").bad(2, &["--dataset", "--kernels"]);
    sandbox.run("bench --only sum").bad(2, &["--kernels"]);
    for steps in ["0", "1000001", "1000000000", "9223372036854775808", "18446744073709551616"] {
        sandbox.run(&format!("bench --steps {steps}")).bad(2, &["--steps"]);
    }
    std::fs::create_dir_all(sandbox.path("charts/train_step.svg")).unwrap();
    let text = "bench --device cpu --data-dir data --dataset mnist --out charts";
    sandbox.run(text).bad(1, &["--out", "train_step.svg"]);
    sandbox
        .run("bench --kernels --device cpu --outputs nowhere/a.safetensors")
        .bad(1, &["--outputs", "nowhere"]);
}

#[test]
fn the_suite_in_processes_finds_the_same() {
    let sandbox = Sandbox::new();
    sandbox.run("selftest --device cpu --filter select/ --json one.json").good();
    sandbox.run("selftest --device cpu --filter select/ --processes 3 --json three.json").good();
    let (one, three) = (json(&sandbox.read("one.json")), json(&sandbox.read("three.json")));
    assert!(one[0]["passed"].as_u64().unwrap() > 100, "{one}");
    assert_eq!(one, three);
    sandbox.run("selftest --device cpu --filter=-nothing --processes 2").bad(1, &["-nothing"]);
    sandbox.run("selftest --device cpu --share 2/2").bad(2, &["2/2"]);
    for count in ["0", "-1", "1025", "1000000000", "9223372036854775808"] {
        let text = format!("selftest --device cpu --filter=-nothing --processes {count}");
        sandbox.run(&text).bad(2, &["--processes", count, "1 to 1024"]);
    }
}
