//! What cannot be is said in one line that names it, before anything is harmed.

mod common;

use std::collections::BTreeMap;
use std::fs;

use common::{IMAGES, Ran, SIDE, Sandbox, cut, idx};
use cupola::io::safetensors;

#[test]
fn settings_that_cannot_be() {
    let sandbox = Sandbox::new();
    for (flag, values) in [
        ("--epochs", &["0", "-1", "x", "1.5"][..]),
        ("--steps", &["0", "-3"]),
        ("--batch-size", &["0", "-8", "nan"]),
        ("--lr", &["0", "-0.1", "nan", "inf", "1e-60", "x"]),
        ("--seed", &["-1", "x"]),
        ("--device", &["tpu", "cuda:9", "cpu:1", ""]),
        ("--dataset", &["imagenet"]),
        ("--optimizer", &["magic"]),
    ] {
        for value in values {
            let mut command = sandbox.command();
            command.args(["train", "--out", "run", flag, value]);
            Ran::of(command).bad(2, &[flag]);
        }
    }
    sandbox.run("train --dataset digits --data-dir data").bad(2, &["--data-dir", "digits"]);
    sandbox.run("launch").bad(2, &["launch"]);
    sandbox.run("classify run").bad(2, &["IMAGE"]);
    assert!(!sandbox.path("run").exists());
}

#[test]
fn damaged_idx_files() {
    let broken = |break_it: &dyn Fn(&Sandbox), words: &[&str]| {
        let sandbox = Sandbox::new();
        break_it(&sandbox);
        sandbox.train("--steps 1 --out run").bad(1, words);
        assert!(!sandbox.path("run").exists(), "nothing is left of a run that did not begin");
    };
    let images = |sandbox: &Sandbox| sandbox.file("train", "images", 3);
    let labels = |sandbox: &Sandbox| sandbox.file("train", "labels", 1);
    broken(&|p| fs::remove_file(images(p)).unwrap(), &["--data-dir", "train-images-idx3-ubyte"]);
    broken(&|p| cut(&images(p), 1000), &["train-images-idx3-ubyte"]);
    broken(&|p| cut(&images(p), 3), &["train-images-idx3-ubyte"]);
    broken(&|p| fs::write(images(p), [7; 5000]).unwrap(), &["train-images-idx3-ubyte"]);
    broken(&|p| cut(&labels(p), 20), &["train-labels-idx1-ubyte"]);
    let wrong_labels = |count: usize, label: u8| idx(&[count], &vec![label; count]);
    broken(&|p| fs::write(labels(p), wrong_labels(IMAGES, 10)).unwrap(), &["train-labels", "10"]);
    broken(&|p| fs::write(labels(p), wrong_labels(7, 1)).unwrap(), &["train-labels", "7"]);
    let other_size = idx(&[IMAGES, SIDE - 1, SIDE], &vec![0; IMAGES * SIDE * (SIDE - 1)]);
    broken(&|p| fs::write(images(p), &other_size).unwrap(), &["train-images", "27"]);
    let none = |p: &Sandbox| {
        fs::write(images(p), idx(&[0, SIDE, SIDE], &[])).unwrap();
        fs::write(labels(p), idx(&[0], &[])).unwrap();
    };
    broken(&none, &["no training images"]);
}

#[test]
fn damaged_cifar_files() {
    let sandbox = Sandbox::new();
    let record = |label: u8| [vec![label], vec![100; 3 * 32 * 32]].concat();
    let write = |label: u8| {
        for number in 1..=5 {
            let records: Vec<u8> = (0..4).flat_map(|_| record(label)).collect();
            fs::write(sandbox.data().join(format!("data_batch_{number}.bin")), records).unwrap();
        }
        fs::write(sandbox.data().join("test_batch.bin"), record(0)).unwrap();
    };
    let train = || sandbox.run("train --dataset cifar10 --data-dir data --steps 1 --out run");
    write(10);
    train().bad(1, &["data_batch_1.bin", "10"]);
    write(3);
    cut(&sandbox.data().join("data_batch_4.bin"), 5000);
    train().bad(1, &["data_batch_4.bin"]);
    sandbox.run("train --dataset cifar100 --data-dir data").bad(1, &["train.bin"]);
}

#[test]
fn folders_that_cannot_be_written() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("file"), "").unwrap();
    sandbox.train("--out file").bad(1, &["--out", "file"]);
    sandbox.train("--out file/run").bad(1, &["--out", "file/run"]);
    sandbox.train("--out run --json data").bad(1, &["--json", "data"]);
    sandbox.train("--out run --json nowhere/report.json").bad(1, &["--json", "nowhere"]);
    assert!(!sandbox.path("run").exists());
}

#[test]
fn a_run_is_not_overwritten() {
    let sandbox = Sandbox::new();
    sandbox.train("--steps 1 --out run").good();
    let before = sandbox.read("run/state.safetensors");
    sandbox.train("--steps 1 --out run --seed 3").bad(1, &["--out", "run", "--resume"]);
    sandbox.train("--steps 1 --out other").good();
    sandbox.train("--resume other --out run").bad(1, &["--out", "run"]);
    assert_eq!(sandbox.read("run/state.safetensors"), before);
}

#[test]
fn what_cannot_be_resumed() {
    let sandbox = Sandbox::new();
    sandbox.train("--epochs 1 --out run").good();
    sandbox.train("--resume nothing").bad(1, &["--resume", "nothing"]);
    for (flag, words) in [
        ("--lr 0.5", "0.001"),
        ("--seed 9", "0"),
        ("--batch-size 16", "8"),
        ("--optimizer sgd", "adam"),
        ("--dataset cifar10", "mnist"),
    ] {
        let name = flag.split(' ').next().unwrap();
        sandbox.train(&format!("--resume run {flag}")).bad(2, &[name, words]);
    }
    // The same again is no conflict.
    sandbox.train("--resume run --lr 0.001 --seed 0 --batch-size 8 --optimizer adam").good();
    // Other images under the same name.
    let other = Sandbox::new();
    fs::write(
        other.file("train", "images", 3),
        idx(&[IMAGES, SIDE, SIDE], &[9; IMAGES * SIDE * SIDE]),
    )
    .unwrap();
    let run = sandbox.text("run");
    other.train(&format!("--resume {run} --epochs 2")).bad(1, &["state.safetensors", "images"]);

    let whole = sandbox.read("run/state.safetensors");
    for length in [0, 7, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(sandbox.path("run/state.safetensors"), &whole[..length]).unwrap();
        sandbox.train("--resume run --epochs 2").bad(1, &["--resume", "state.safetensors"]);
    }
    let mut damaged = whole.clone();
    damaged[20] ^= 0x15;
    fs::write(sandbox.path("run/state.safetensors"), &damaged).unwrap();
    sandbox.train("--resume run --epochs 2").bad(1, &["state.safetensors"]);
}

#[test]
fn a_state_of_another_network() {
    let sandbox = Sandbox::new();
    sandbox.train("--steps 1 --out run").good();
    let path = sandbox.path("run/state.safetensors");
    let (tensors, metadata) = safetensors::load(&path).unwrap();
    let change = |from: &str, to: &str| -> BTreeMap<String, String> {
        metadata.iter().map(|(name, text)| (name.clone(), text.replace(from, to))).collect()
    };
    let try_it = |tensors: &_, metadata: &_, words: &[&str]| {
        safetensors::save(&path, tensors, metadata).unwrap();
        sandbox.train("--resume run").bad(1, words);
    };
    try_it(
        &tensors,
        &change("article-convnet", "perceptron"),
        &["state.safetensors", "perceptron"],
    );
    try_it(&tensors, &change("cupola-training-1", "other"), &["state.safetensors", "other"]);
    try_it(&tensors, &change("\"side\":28", "\"side\":7"), &["state.safetensors", "side 7"]);
    let batch = "\"batch\":1";
    try_it(&tensors, &change(batch, "\"batch\":99"), &["state.safetensors", "batch 99"]);
    let mut fewer = tensors.clone();
    fewer.remove("model.conv1.weight");
    try_it(&fewer, &metadata, &["state.safetensors", "conv1.weight"]);
    let mut other = tensors.clone();
    other.insert("model.conv1.weight".to_owned(), tensors["model.conv2.weight"].clone());
    try_it(&other, &metadata, &["state.safetensors", "conv1.weight"]);
    let mut other = tensors.clone();
    other.insert("optimizer.conv1.weight.m".to_owned(), tensors["model.conv2.weight"].clone());
    try_it(&other, &metadata, &["state.safetensors", "conv1.weight.m"]);
}

#[test]
fn a_loss_that_is_not_a_number_leaves_the_checkpoint() {
    let sandbox = Sandbox::new();
    sandbox
        .train("--epochs 1 --lr 1e20 --optimizer sgd --out wild")
        .bad(1, &["loss is", "step", "learning rate", "--lr"]);
    assert!(!sandbox.path("wild").exists());
}

/// A limit on the size of files stands in for a full disk: writing fails half way.
#[cfg(unix)]
#[test]
fn a_disk_that_is_full_leaves_the_checkpoint() {
    let sandbox = Sandbox::new();
    sandbox.train("--epochs 1 --out run").good();
    let files = ["state.safetensors", "model.safetensors", "metrics.jsonl"];
    let before = files.map(|file| sandbox.read(&format!("run/{file}")));
    let data = sandbox.data().display().to_string();
    let program = env!("CARGO_BIN_EXE_cupola");
    // Of 4 KiB or 512 bytes a block: less than a state in both.
    let script = format!(
        "trap '' XFSZ; ulimit -f 1000; exec {program} train --resume run --epochs 2 --data-dir {data}"
    );
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(sandbox.path("."));
    Ran::of(shell).bad(1, &["state.safetensors", "cannot be written", "last good checkpoint"]);
    assert_eq!(files.map(|file| sandbox.read(&format!("run/{file}"))), before);
    let left = fs::read_dir(sandbox.path("run")).unwrap().count();
    assert_eq!(left, 5, "no temporary file stays");
    sandbox.train("--resume run --epochs 2").good();
}
