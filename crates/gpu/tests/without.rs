//! The op suite on a wgpu device without subgroups, elements of 16 bits and mapped memory, for the
//! families whose kernels differ by them. `suite.rs` runs with what the adapter has.

#![cfg(feature = "wgpu")]

mod share;

use cupola_core::backend::devices_of;
use cupola_core::device::DeviceKind;
use cupola_gpu::wgpu::{Restrictions, restrict};
use cupola_suite::{Family, assert_part};

fn check(family: Family) {
    let share = share::of(family);
    restrict(Restrictions {
        no_subgroups: true,
        no_int16: true,
        no_mapping: true,
        ..Default::default()
    });
    match devices_of(DeviceKind::Wgpu).first() {
        Some(backend) => assert_part(backend.device(), family, share, |reason| {
            // Only functions of doubles have no kernel everywhere.
            reason.contains("float64")
        }),
        None => println!("there is no wgpu device: nothing was tested"),
    }
}

#[test]
fn reduce() {
    check(Family::Reduce);
}

#[test]
fn arg_reduce() {
    check(Family::ArgReduce);
}

#[test]
fn cast() {
    check(Family::Cast);
}

#[test]
fn select() {
    check(Family::Select);
}

#[test]
fn sort() {
    check(Family::Sort);
}
