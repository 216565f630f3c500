//! `cupola classify`, on images and on data sets.

mod common;

use std::fs;

use common::{Ran, Sandbox, TESTS, cut};
use cupola::io::safetensors;
use cupola::ops;
use image::{GrayImage, RgbaImage};

fn trained() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.train("--steps 1 --out run").good();
    GrayImage::from_pixel(28, 28, image::Luma([90])).save(sandbox.path("grey.png")).unwrap();
    RgbaImage::from_pixel(28, 28, image::Rgba([200, 10, 90, 128]))
        .save(sandbox.path("colour.png"))
        .unwrap();
    GrayImage::from_pixel(40, 30, image::Luma([90])).save(sandbox.path("large.jpg")).unwrap();
    sandbox
}

#[test]
fn images_get_a_label_and_a_probability() {
    let sandbox = trained();
    let ran = sandbox.run("classify run grey.png colour.png --json out.json").good();
    assert!(ran.out.contains("grey.png") && ran.out.contains('%'), "{}", ran.out);
    let found: serde_json::Value = serde_json::from_slice(&sandbox.read("out.json")).unwrap();
    assert_eq!(found.as_array().unwrap().len(), 2);
    assert_eq!(found[0]["image"], "grey.png");
    let probability = found[0]["probability"].as_f64().unwrap();
    assert!((0.1..=1.0).contains(&probability), "the likeliest of ten: {probability}");

    sandbox.run("classify run large.jpg").bad(1, &["large.jpg", "40×30", "28×28", "--resize"]);
    sandbox.run("classify run large.jpg --resize").good();
}

#[test]
fn a_data_set_gets_an_accuracy_and_a_confusion_matrix() {
    let sandbox = trained();
    let ran = sandbox.run("classify run --dataset mnist --data-dir data --json -").good();
    let found: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert!(ran.err.contains("accuracy"), "{}", ran.err);
    assert_eq!(found["images"], TESTS);
    let rows = found["confusion"].as_array().unwrap();
    let counts = rows.iter().flat_map(|row| row.as_array().unwrap());
    let (mut all, mut diagonal) = (0, 0);
    for (index, count) in counts.enumerate() {
        all += count.as_u64().unwrap();
        diagonal += if index % 11 == 0 { count.as_u64().unwrap() } else { 0 };
    }
    assert_eq!(all, TESTS as u64);
    let accuracy = found["accuracy"].as_f64().unwrap();
    assert!((accuracy - diagonal as f64 / TESTS as f64).abs() < 1e-12);

    // The images to train on are not read.
    cut(&sandbox.file("train", "images", 3), 1000);
    sandbox.run("classify run --dataset mnist --data-dir data").good();
}

#[test]
fn a_model_is_explained() {
    let sandbox = trained();
    let ran = sandbox.run("explain run --device cpu --svg plan.svg --json plan.json").good();
    assert!(ran.out.contains("conv") && ran.out.contains("matmul"), "{}", ran.out);
    let found: serde_json::Value = serde_json::from_slice(&sandbox.read("plan.json")).unwrap();
    let steps = found["steps"].as_array().unwrap().len();
    assert!(ran.out.lines().count() == steps + 2, "a line a step: {}", ran.out);
    assert!(found["roofline_us"].as_f64().unwrap() > 0.0);
    assert!(sandbox.read("plan.svg").starts_with(b"<svg"));

    let training =
        sandbox.run("explain run --device cpu --training --batch-size 4 --json -").good();
    let training: serde_json::Value = serde_json::from_str(&training.out).unwrap();
    assert!(training["steps"].as_array().unwrap().len() > steps);
    assert!(training["operations"].as_u64() > found["operations"].as_u64());

    sandbox.run("explain run --size N=2").bad(2, &["--size"]);
    sandbox.run("explain nothing").bad(1, &["nothing", "model.safetensors"]);
    sandbox
        .run("explain run --svg run/model.safetensors")
        .bad(2, &["--svg", "model.safetensors", "is the model"]);
    sandbox.run("explain run --svg nowhere/plan.svg").bad(1, &["--svg", "nowhere"]);
}

/// The sum at the end of a chunk of a PNG.
fn crc32(bytes: &[u8]) -> u32 {
    let shifted = |sum: u32, _: u32| (sum >> 1) ^ ((sum & 1) * 0xedb8_8320);
    !bytes.iter().fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), shifted))
}

#[test]
fn what_cannot_be_classified() {
    let sandbox = trained();
    sandbox.run("classify nothing grey.png").bad(1, &["nothing", "model.safetensors"]);
    sandbox.run("classify run nowhere.png").bad(1, &["nowhere.png"]);
    fs::write(sandbox.path("text.png"), "no picture").unwrap();
    sandbox.run("classify run text.png").bad(1, &["text.png", "neither PNG nor JPEG"]);
    let whole = fs::read(sandbox.path("grey.png")).unwrap();
    for length in [whole.len() - 1, whole.len() - 12, whole.len() / 2] {
        fs::write(sandbox.path("short.png"), &whole[..length]).unwrap();
        sandbox.run("classify run short.png").bad(1, &["short.png", "damaged"]);
    }
    // A JPEG that ends early shows grey where the rest would be: it is not classified.
    let whole = fs::read(sandbox.path("large.jpg")).unwrap();
    for length in [whole.len() - 2, whole.len() - 40, whole.len() / 2] {
        fs::write(sandbox.path("short.jpg"), &whole[..length]).unwrap();
        sandbox.run("classify run short.jpg --resize").bad(1, &["short.jpg", "damaged"]);
    }
    // Nor where the marker of an end follows what is there.
    let ended = [&whole[..whole.len() - 10], &[0xff, 0xd9]].concat();
    fs::write(sandbox.path("ended.jpg"), ended).unwrap();
    sandbox.run("classify run ended.jpg --resize").bad(1, &["ended.jpg", "damaged"]);
    // One that claims more than its bytes can say is not unpacked.
    let frame = whole.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    let mut bomb = whole.clone();
    bomb[frame + 5..frame + 9].fill(0xfe);
    fs::write(sandbox.path("bomb.jpg"), bomb).unwrap();
    sandbox.run("classify run bomb.jpg --resize").bad(1, &["bomb.jpg", "65278×65278 pixels"]);
    // Nor one that would take much more than it has, to become small: its header says so.
    let mut bomb = fs::read(sandbox.path("grey.png")).unwrap();
    bomb[16..24].copy_from_slice(&[22_000u32.to_be_bytes(); 2].concat());
    let sum = crc32(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&sum.to_be_bytes());
    fs::write(sandbox.path("bomb.png"), bomb).unwrap();
    sandbox.run("classify run bomb.png --resize").bad(1, &["bomb.png", "22000×22000, at most"]);
    #[cfg(unix)]
    sandbox.run("classify run /dev/zero").bad(1, &["/dev/zero", "is no file"]);
    sandbox.run("classify run grey.png --dataset mnist").bad(2, &["--dataset"]);
    sandbox.run("classify run grey.png --data-dir data").bad(2, &["--dataset"]);
    let model = sandbox.path("run/model.safetensors");
    let (mut tensors, metadata) = safetensors::load(&model).unwrap();
    for tensor in tensors.values_mut() {
        *tensor = ops::full_like(tensor, f64::NAN).unwrap();
    }
    safetensors::save(&model, &tensors, &metadata).unwrap();
    sandbox.run("classify run grey.png").bad(1, &["NaN"]);
    sandbox.run("classify run --dataset mnist --data-dir data").bad(1, &["NaN"]);
    cut(&model, 5000);
    sandbox.run("classify run grey.png").bad(1, &["model.safetensors"]);
}

#[test]
fn devices_are_listed() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command();
    command.args(["devices", "--json", "devices.json"]);
    let ran = Ran::of(command).good();
    assert!(ran.out.contains("cpu"), "{}", ran.out);
    let found: serde_json::Value = serde_json::from_slice(&sandbox.read("devices.json")).unwrap();
    assert_eq!(found[0]["device"], "cpu");
}
