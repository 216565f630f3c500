//! Values that PyTorch and MLX gave, from `scripts/nn_reference.py` and `scripts/nn_layers.py`.

use std::sync::OnceLock;

use cupola::{Array, Result};
use serde_json::Value;

/// The recorded value under a path of keys and indices.
pub fn recorded(path: &[&str]) -> &'static Value {
    static ALL: OnceLock<Value> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let read = |text| serde_json::from_str::<Value>(text).expect("the record is JSON");
        let mut all = read(include_str!("../reference/nn.json"));
        all["mlx"] = read(include_str!("../reference/nn_layers.json"))["mlx"].take();
        all
    });
    path.iter().fold(all, |value, key| {
        let inner = match key.parse::<usize>() {
            Ok(index) => value.get(index),
            Err(_) => value.get(key),
        };
        inner.unwrap_or_else(|| panic!("nothing is recorded for {path:?}"))
    })
}

pub fn numbers(value: &Value) -> Vec<f32> {
    value.as_array().expect("a list").iter().map(|v| v.as_f64().expect("a number") as f32).collect()
}

pub fn shape(path: &[&str]) -> Vec<usize> {
    let value = &recorded(path)["shape"];
    value.as_array().expect("a list").iter().map(|v| v.as_u64().unwrap_or(0) as usize).collect()
}

/// A recorded array of floats.
pub fn array(path: &[&str]) -> Array {
    Array::from_vec(numbers(&recorded(path)["data"]), shape(path)).expect("the record fits")
}

/// A recorded array of integers.
pub fn indices(path: &[&str]) -> Array {
    let data: Vec<i32> = numbers(&recorded(path)["data"]).iter().map(|&v| v as i32).collect();
    Array::from_vec(data, shape(path)).expect("the record fits")
}

/// Panics where `got` is not the recorded array within a relative and absolute `tolerance`.
pub fn expect(what: &str, got: &Array, path: &[&str], tolerance: f32) -> Result<()> {
    assert_eq!(got.shape()[..], shape(path), "{what}: shape");
    let want = numbers(&recorded(path)["data"]);
    for (i, (g, w)) in got.to_vec::<f32>()?.iter().zip(&want).enumerate() {
        let distance = (g - w).abs();
        assert!(distance <= tolerance * (1.0 + w.abs()), "{what}: element {i} is {g}, not {w}");
    }
    Ok(())
}
