//! Values in files of their own, as ONNX's test cases hold them.

use prost::Message;

use super::error::{Fault, Result};
use super::proto::{OptionalProto, SequenceProto, TensorProto};
use super::tensor::{self, Folder};
use super::value::Value;

fn decoded<M: Message + Default>(bytes: &[u8]) -> Result<M, Fault> {
    M::decode(bytes).map_err(|e| Fault::invalid(format!("is damaged: {e}")))
}

/// The tensor of a message's bytes.
///
/// # Errors
/// Where the message is damaged, or holds what is not read.
pub fn tensor(bytes: &[u8]) -> Result<Value, Fault> {
    Ok(tensor::read(&decoded::<TensorProto>(bytes)?, &Folder::default())?.into())
}

/// The sequence of a message's bytes.
///
/// # Errors
/// As [`tensor()`].
pub fn sequence(bytes: &[u8]) -> Result<Value, Fault> {
    of_sequence(&decoded::<SequenceProto>(bytes)?)
}

fn of_sequence(proto: &SequenceProto) -> Result<Value, Fault> {
    match proto.elem_type {
        0 | 1 => {
            let tensors = proto.tensor_values.iter();
            let read = |t| tensor::read(t, &Folder::default()).map(Value::from);
            Ok(Value::sequence(tensors.map(read).collect::<Result<_, _>>()?))
        }
        3 => {
            let inner = proto.sequence_values.iter().map(of_sequence);
            Ok(Value::sequence(inner.collect::<Result<_, _>>()?))
        }
        kind => Err(Fault::unsupported(format!("a sequence of elements of kind {kind}"))),
    }
}

/// The optional of a message's bytes.
///
/// # Errors
/// As [`tensor()`].
pub fn optional(bytes: &[u8]) -> Result<Value, Fault> {
    let proto = decoded::<OptionalProto>(bytes)?;
    match (proto.elem_type, &proto.tensor_value, &proto.sequence_value) {
        (1, Some(tensor), _) => Ok(tensor::read(tensor, &Folder::default())?.into()),
        (3, _, Some(sequence)) => of_sequence(sequence),
        (0..=3, _, _) => Ok(Value::Nothing),
        (kind, _, _) => Err(Fault::unsupported(format!("an optional of kind {kind}"))),
    }
}
