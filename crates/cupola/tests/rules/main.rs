//! The derivative and batching rules of every primitive, against finite differences, each other
//! and a loop.

mod cases;
mod check;
mod exact;
mod values;

use cases::Case;

/// Runs a check on every case, and fails with all that went wrong.
fn on_all(check: impl Fn(&Case) -> Result<(), String>) {
    let failures: Vec<String> = cases::all()
        .iter()
        .filter_map(|case| check(case).err().map(|e| format!("{}: {e}", case.name)))
        .collect();
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn derivatives_match_finite_differences() {
    on_all(check::first_order);
}

#[test]
fn second_derivatives_match_finite_differences() {
    on_all(check::second_order);
}

#[test]
fn batches_match_a_loop() {
    on_all(check::batched);
}
