//! What a model says of itself: with any text there, it is loaded whole or refused.

use std::collections::BTreeMap;

use cupola::io::safetensors;
use cupola::train::Model;

use crate::{edits, scratch, training};

/// The metadata of a model, as JSON, and an edit of it.
pub fn seeds() -> Vec<Vec<u8>> {
    let [(_, metadata), _] = training::usual();
    vec![serde_json::to_vec(metadata).expect("text"), vec![0, 19]]
}

pub fn check(data: &[u8]) {
    let [(tensors, usual), _] = training::usual();
    let text = edits::text(data, &serde_json::to_string(usual).expect("text"));
    let Ok(metadata) = serde_json::from_str::<BTreeMap<String, String>>(&text) else { return };
    let path = scratch::path("model.safetensors");
    safetensors::save(&path, tensors, &metadata).expect("a file");
    let Ok(model) = Model::load(&path) else { return };
    model.save(&path).expect("what was loaded is saved");
    let again = Model::load(&path).expect("what was saved is loaded");
    assert_eq!(model.description, again.description);
    let before = std::fs::read(&path).expect("the file");
    again.save(&path).expect("what was loaded is saved");
    assert!(std::fs::read(&path).expect("the file") == before, "the bytes are others");
}
