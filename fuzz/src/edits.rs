//! JSON with other values in it. Changes of single bytes seldom leave text that can be read.

use serde_json::{Value, json};

/// How many edits there are at most: some double what they stand in.
const MOST: usize = 8;

/// The text that `data` stands for: itself if it begins as an object does, otherwise `usual` with an
/// edit for every two bytes, of which one says where and one what.
pub fn text(data: &[u8], usual: &str) -> String {
    if data.starts_with(b"{") {
        return String::from_utf8_lossy(data).into_owned();
    }
    let mut value: Value = serde_json::from_str(usual).expect("JSON");
    for edit in data.chunks_exact(2).take(MOST) {
        // The whole is no place.
        let places = (count(&value) - 1).max(1);
        let mut place = 1 + usize::from(edit[0]) % places;
        if let Some(found) = at(&mut value, &mut place) {
            *found = other(edit[1], found);
        }
    }
    value.to_string()
}

/// How many values there are in `value`, itself among them.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(entries) => entries.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

/// The value of that number, counted as they stand in the text.
fn at<'a>(value: &'a mut Value, place: &mut usize) -> Option<&'a mut Value> {
    if *place == 0 {
        return Some(value);
    }
    *place -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| at(item, place)),
        Value::Object(entries) => entries.values_mut().find_map(|item| at(item, place)),
        _ => None,
    }
}

/// What takes the place of a value.
fn other(which: u8, value: &Value) -> Value {
    let number = value.as_u64().unwrap_or(0);
    match which % 20 {
        0 => json!(0),
        1 => json!(1),
        2 => json!(number.wrapping_add(1)),
        3 => json!(number.wrapping_sub(1)),
        4 => json!(u64::MAX),
        5 => json!(i64::MAX),
        6 => json!(1_u64 << 32),
        7 => json!(u32::MAX),
        8 => json!(-1),
        9 => json!(f64::MAX),
        10 => json!(f64::MIN_POSITIVE / 2.0),
        11 => json!(-0.5),
        12 => Value::Null,
        13 => json!([]),
        14 => json!({}),
        15 => json!(true),
        16 => json!(""),
        17 => json!("18446744073709551615"),
        18 => json!([value, value]),
        _ => json!(value.to_string()),
    }
}
