//! What a package keeps of a call of a kernel: the body in the common language, whose every access is checked. What a
//! kernel has in a device's own language stays with the program: a package holds nothing that could do more.

use std::sync::Arc;

use cupola_core::prim::Custom;
use cupola_core::prim::call::Maker;
use cupola_core::{Aval, DType, Error, Result, Shape};
use serde::{Deserialize, Serialize};

use super::op::Called;
use super::{Kernel, Launch, Parameter, scalar};

/// What packages call it.
pub const KIND: &str = "kernel";

inventory::submit! { Maker { kind: KIND, make } }

/// The longest name of a kernel: names are kept for good.
const NAME: usize = 255;

/// A call of a kernel, as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    name: String,
    header: String,
    body: String,
    inputs: Vec<Operand>,
    outputs: Vec<Operand>,
    grid: [u32; 3],
    threadgroup: [u32; 3],
    template: Vec<(String, Meaning)>,
    /// The bits of the number that the outputs begin as: JSON has no infinities.
    init: Option<u64>,
    takes_strides: bool,
    has_atomic_outputs: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Operand {
    name: String,
    dtype: String,
    shape: Vec<usize>,
}

/// What stands for a name of the template.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Meaning {
    Type(String),
    Integer(i64),
    Bool(bool),
}

/// The text of a call; `None` where the kernel has no body of the common language.
pub fn text(called: &Called) -> Option<String> {
    called.program.as_ref()?;
    let sources = &called.sources;
    let (inputs, outputs) = called.names.split_at(called.inputs.len());
    let operand = |(name, aval): (&String, &Aval)| Operand {
        name: name.clone(),
        dtype: aval.dtype.name().to_owned(),
        shape: aval.shape.to_vec(),
    };
    let meaning = |(name, parameter): &(String, Parameter)| {
        let meaning = match *parameter {
            Parameter::Type(of) => {
                let mut all = DType::ALL.into_iter();
                Meaning::Type(
                    all.find(|dtype| scalar(*dtype).is_ok_and(|own| own == of))?.name().to_owned(),
                )
            }
            Parameter::Integer(number) => Meaning::Integer(number),
            Parameter::Bool(truth) => Meaning::Bool(truth),
        };
        Some((name.clone(), meaning))
    };
    let Launch { grid, threadgroup, outputs: made, template, init } = &called.launch;
    serde_json::to_string(&Stored {
        name: called.name.to_owned(),
        header: sources.header.clone(),
        body: sources.common.clone().or_else(|| sources.metal.clone())?,
        inputs: inputs.iter().zip(&called.inputs).map(operand).collect(),
        outputs: outputs.iter().zip(made).map(operand).collect(),
        grid: *grid,
        threadgroup: *threadgroup,
        template: template.iter().map(meaning).collect::<Option<_>>()?,
        init: init.map(f64::to_bits),
        takes_strides: called.takes_strides,
        has_atomic_outputs: called.has_atomic_outputs,
    })
    .ok()
}

/// The call that a package keeps.
fn make(text: &str) -> Result<Custom> {
    let wrong = |detail: String| Error::argument(KIND, detail);
    let stored: Stored = serde_json::from_str(text).map_err(|cause| wrong(cause.to_string()))?;
    if stored.name.len() > NAME {
        return Err(wrong(format!("a name of {} bytes is too long", stored.name.len())));
    }
    let aval = |operand: &Operand| {
        let (shape, dtype) = (Shape::from(&operand.shape[..]), operand.dtype.parse()?);
        shape.checked_size(KIND, dtype)?;
        Ok(Aval { shape, dtype })
    };
    let inputs = stored.inputs.iter().map(aval).collect::<Result<_>>()?;
    let mut launch = Launch::new(stored.grid, stored.threadgroup);
    launch.outputs = stored.outputs.iter().map(aval).collect::<Result<_>>()?;
    launch.init = stored.init.map(f64::from_bits);
    for (name, meaning) in &stored.template {
        launch = match meaning {
            Meaning::Type(dtype) => launch.dtype(name, dtype.parse()?)?,
            Meaning::Integer(number) => launch.parameter(name, Parameter::Integer(*number)),
            Meaning::Bool(truth) => launch.parameter(name, Parameter::Bool(*truth)),
        };
    }
    let names = |operands: &[Operand]| -> Vec<String> {
        operands.iter().map(|operand| operand.name.clone()).collect()
    };
    let (from, to) = (names(&stored.inputs), names(&stored.outputs));
    let kernel = Kernel::new(&stored.name, from, to, &stored.body)?
        .header(&stored.header)
        .takes_strides(stored.takes_strides)
        .atomic_outputs(stored.has_atomic_outputs);
    Ok(Custom(Arc::new(kernel.called(inputs, &launch)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> serde_json::Value {
        let kernel = Kernel::new("twice", ["x"], ["y"], "y[0] = T(N) * x[0];").unwrap();
        let launch = Launch::new([1, 1, 1], [1, 1, 1]).output([1], DType::F32);
        let launch = launch.parameter("N", Parameter::Integer(2)).dtype("T", DType::F32).unwrap();
        let called = kernel.called(vec![Aval::new([1], DType::F32)], &launch.init(1.5)).unwrap();
        serde_json::from_str(&text(&called).unwrap()).unwrap()
    }

    #[test]
    fn what_was_kept_is_the_same_call() {
        let stored = kept();
        let made = make(&stored.to_string()).unwrap();
        let (kind, again) = made.0.stored().unwrap();
        assert_eq!(kind, KIND);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&again).unwrap(), stored);
        assert!(make(&again).unwrap() == made);
    }

    #[test]
    fn damaged_texts_are_errors() {
        for (pointer, value, words) in [
            ("/name", "n".repeat(300).into(), "too long"),
            ("/body", "y[0] = ".into(), "line 1"),
            ("/grid", serde_json::json!([0, 1, 1]), "no threads"),
            ("/threadgroup", serde_json::json!([1 << 20, 1, 1]), ""),
            ("/inputs", serde_json::json!([]), ""),
            ("/inputs/0/dtype", "float8".into(), "float8"),
            ("/inputs/0/dtype", "complex64".into(), "complex"),
            ("/outputs", serde_json::json!([]), "output"),
            ("/outputs/0/name", "x".into(), "name 'x'"),
            ("/outputs/0/shape", serde_json::json!([1u64 << 40, 1u64 << 40]), "larger"),
            ("/template/0", serde_json::json!(["N", { "float": 1 }]), "float"),
            ("/init", "much".into(), "much"),
        ] {
            let mut stored = kept();
            *stored.pointer_mut(pointer).unwrap() = value;
            match make(&stored.to_string()) {
                // A group is cut to the grid.
                Ok(_) => assert_eq!(pointer, "/threadgroup", "{pointer}"),
                Err(error) => assert!(error.to_string().contains(words), "{pointer}: {error}"),
            }
        }
        for text in ["", "{}", "[1]", "{\"name\": \"x\", \"more\": 1}"] {
            assert!(make(text).is_err(), "{text}");
        }
    }
}
