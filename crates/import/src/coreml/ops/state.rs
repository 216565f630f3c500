//! What is kept from one run to the next.

use super::prelude::*;

fn name<'n>(n: &'n Node<'_>) -> Result<&'n str, Fault> {
    match n.value("input")? {
        Value::State(name) => Ok(name),
        other => Err(Fault::invalid(format!("{} stands for a state", other.kind()))),
    }
}

fn read_state(n: &Node<'_>) -> Outcome {
    let name = name(n)?;
    let held = n.run.states.borrow().get(name).cloned();
    one(held.ok_or_else(|| Fault::invalid(format!("there is no state '{name}'")))?)
}

fn write_state(n: &Node<'_>) -> Outcome {
    let (name, data) = (name(n)?, n.x("data")?);
    let mut states = n.run.states.borrow_mut();
    let Some(held) = states.get_mut(name) else {
        return Err(Fault::invalid(format!("there is no state '{name}'")));
    };
    if held.aval() != data.aval() {
        let (want, have) = (held.aval(), data.aval());
        return Err(Fault::invalid(format!("the state '{name}' is {want}, {have} is written")));
    }
    *held = data.clone();
    Ok(vec![data.clone().into()])
}

pub const OPS: &[Entry] = &[("read_state", read_state), ("write_state", write_state)];
