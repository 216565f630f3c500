//! Identities with a meaning.

use cupola_core::Aval;
use cupola_core::prim::Mark;

use crate::host::Host;
use crate::sample::{Sample, input};

pub fn samples() -> Vec<Sample> {
    vec![
        Sample::new("stop_gradient", |_| Mark::StopGradient.into(), vec![input([3])]),
        Sample::new("depends", |_| Mark::Depends.into(), vec![input([3]), input([2, 2])]).smooth(),
        Sample::new("update", |_| Mark::Update.into(), vec![input([3]), input([3])]).smooth(),
        Sample::new("slope of stop_gradient", |_| Mark::StopGradient.into(), vec![input([1])])
            .slopes(&[1.0], &[&[0.0]]),
        Sample::new("slopes of depends", |_| Mark::Depends.into(), vec![input([1]), input([1])])
            .slopes(&[1.0], &[&[1.0], &[0.0]]),
        Sample::new("slopes of update", |_| Mark::Update.into(), vec![input([1]), input([1])])
            .slopes(&[1.0], &[&[1.0], &[0.0]]),
    ]
}

pub fn reference(x: &Host, out: &Aval) -> Host {
    Host { aval: out.clone(), data: x.data.clone() }
}
