//! Graphs that a model keeps: it is recorded once for inputs of a kind, and from then on that graph runs.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cupola_core::transform::{Compiled, TRACE_BYTES, compile};
use cupola_core::{Array, Aval, Device, Error as Core, Stream, device};

use super::element::Element;
use super::error::Fault;
use super::model::Content;
use super::value::{Tensor, Value};
use crate::numbers::is_small;

/// For so many kinds of inputs graphs are kept: those of late.
const MOST_KINDS: usize = 8;

/// So many graphs are kept of one kind, for values of inputs.
const MOST_VALUES: usize = 8;

/// The graphs of a model.
#[derive(Default)]
pub struct Kept(Mutex<Vec<Known>>);

/// How a model runs on inputs of a kind.
struct Known {
    ports: Vec<Port>,
    device: Device,
    way: Way,
    graphs: Vec<Arc<Recorded>>,
    /// For how many values there could be none.
    failed: usize,
}

/// An input: its name and what it holds.
struct Port {
    name: String,
    element: Element,
    aval: Aval,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Way {
    /// One graph is for all values.
    Any,
    /// A graph is for the values that small inputs have.
    Values,
    /// Values decide about sizes: every run records.
    Anew,
}

type Body = dyn Fn(&mut (), &[Array]) -> cupola_core::Result<Vec<Array>> + Send + Sync;

/// A graph, for inputs of a kind and values of some.
struct Recorded {
    /// The inputs that are not given when it runs, by number, and their bytes.
    values: Vec<(usize, Vec<u8>)>,
    graph: Compiled<Box<Body>>,
    /// What the outputs hold.
    elements: Arc<OnceLock<Vec<Element>>>,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({})", self.lock().len())
    }
}

impl Known {
    fn is_for(&self, given: &[(&str, &Tensor)], device: Device) -> bool {
        let same = |(port, (name, tensor)): (&Port, &(&str, &Tensor))| {
            port.name == *name
                && port.element == tensor.element
                && port.aval == *tensor.array.aval()
        };
        self.device == device
            && self.ports.len() == given.len()
            && self.ports.iter().zip(given).all(same)
    }
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Vec<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outputs for values by name, from a graph that is kept or made now. `None` where the model is to be
    /// recorded: a transform looks at it, there is something else than tensors, or there can be no graph.
    pub fn run(&self, content: &Arc<Content>, given: &HashMap<&str, Value>) -> Option<Vec<Value>> {
        let mut tensors: Vec<(&str, &Tensor)> = Vec::with_capacity(given.len());
        for (&name, value) in given {
            let Value::Tensor(tensor) = value else { return None };
            if tensor.array.is_traced() {
                return None;
            }
            tensors.push((name, tensor));
        }
        tensors.sort_unstable_by_key(|(name, _)| *name);
        let device = device::default_stream().device;
        loop {
            let (way, graphs) = self.known(&tensors, device);
            let values = match way {
                Way::Any => Vec::new(),
                Way::Values => small(&tensors)?,
                Way::Anew => return None,
            };
            let found = graphs.iter().find(|recorded| recorded.values == values);
            let (recorded, is_new) = match found {
                Some(recorded) => (recorded.clone(), false),
                None if graphs.len() >= MOST_VALUES => {
                    self.turn(&tensors, device, Way::Anew);
                    continue;
                }
                None => (Arc::new(Recorded::new(content, &tensors, values)), true),
            };
            match recorded.run(&tensors) {
                Ok(outputs) => {
                    if recorded.graph.bytes() > TRACE_BYTES {
                        self.turn(&tensors, device, Way::Anew);
                    } else if is_new {
                        self.keep(&tensors, device, &recorded);
                    }
                    return Some(outputs);
                }
                Err(Fault::Core(Core::Interrupted)) => return None,
                Err(_) if way == Way::Any => self.turn(&tensors, device, Way::Values),
                Err(_) => {
                    self.change(&tensors, device, |known| {
                        known.failed += 1;
                        if known.failed == MOST_VALUES {
                            known.way = Way::Anew;
                            known.graphs.clear();
                        }
                    });
                    return None;
                }
            }
        }
    }

    /// How each kind of inputs runs, and how many graphs it has.
    #[cfg(test)]
    pub fn ways(&self) -> Vec<(Way, usize)> {
        self.lock().iter().map(|known| (known.way, known.graphs.len())).collect()
    }

    /// How inputs of this kind run, which are now the ones of late.
    fn known(&self, given: &[(&str, &Tensor)], device: Device) -> (Way, Vec<Arc<Recorded>>) {
        let mut all = self.lock();
        match all.iter().rposition(|known| known.is_for(given, device)) {
            Some(at) => all[at..].rotate_left(1),
            None => {
                if all.len() >= MOST_KINDS {
                    all.remove(0);
                }
                let port = |&(name, tensor): &(&str, &Tensor)| Port {
                    name: name.into(),
                    element: tensor.element,
                    aval: tensor.array.aval().clone(),
                };
                let ports = given.iter().map(port).collect();
                all.push(Known { ports, device, way: Way::Any, graphs: Vec::new(), failed: 0 });
            }
        }
        all.last().map_or((Way::Anew, Vec::new()), |known| (known.way, known.graphs.clone()))
    }

    fn change(&self, given: &[(&str, &Tensor)], device: Device, f: impl FnOnce(&mut Known)) {
        let mut all = self.lock();
        if let Some(known) = all.iter_mut().rfind(|known| known.is_for(given, device)) {
            f(known);
        }
    }

    fn turn(&self, given: &[(&str, &Tensor)], device: Device, way: Way) {
        self.change(given, device, |known| {
            known.way = way;
            known.graphs.clear();
        });
    }

    fn keep(&self, given: &[(&str, &Tensor)], device: Device, recorded: &Arc<Recorded>) {
        self.change(given, device, |known| known.graphs.push(recorded.clone()));
    }
}

/// The bytes of the inputs that are likely to be sizes, numbers of rounds or conditions: small ones of integers and
/// bools. `None` where there is none.
fn small(given: &[(&str, &Tensor)]) -> Option<Vec<(usize, Vec<u8>)>> {
    let mut found = Vec::new();
    for (number, (_, Tensor { array, .. })) in given.iter().enumerate() {
        let aval = array.aval();
        let is_whole = aval.dtype.is_integer() || aval.dtype == cupola_core::DType::Bool;
        if is_whole && is_small(aval.shape.size(), false) {
            found.push((number, array.to_bytes().ok()?));
        }
    }
    Some(found).filter(|found| !found.is_empty())
}

impl Recorded {
    fn new(
        content: &Arc<Content>,
        given: &[(&str, &Tensor)],
        values: Vec<(usize, Vec<u8>)>,
    ) -> Recorded {
        let elements = Arc::new(OnceLock::new());
        let names: Vec<(String, Element, Aval)> = given
            .iter()
            .map(|(name, t)| ((*name).to_owned(), t.element, t.array.aval().clone()))
            .collect();
        let (content, known, made) = (content.clone(), values.clone(), elements.clone());
        let record = move |arrays: &[Array]| -> Result<Vec<Array>, Fault> {
            let mut arrays = arrays.iter();
            let mut inputs: HashMap<&str, Value> = HashMap::with_capacity(names.len());
            for (number, (name, element, aval)) in names.iter().enumerate() {
                let tensor = match known.iter().find(|(own, _)| *own == number) {
                    Some((_, bytes)) => fixed(bytes, *element, aval)?,
                    None => {
                        let array = arrays.next().cloned();
                        let missing = || Fault::invalid(format!("'{name}' is not given"));
                        Tensor::new(array.ok_or_else(missing)?, *element)?
                    }
                };
                inputs.insert(name, tensor.into());
            }
            let outputs = content.record(inputs)?;
            let tensors = outputs.iter().map(Value::tensor).collect::<Result<Vec<_>, _>>()?;
            made.get_or_init(|| tensors.iter().map(|t| t.element).collect());
            Ok(tensors.iter().map(|t| t.array.clone()).collect())
        };
        let body: Box<Body> = Box::new(move |_: &mut (), arrays: &[Array]| {
            record(arrays).map_err(|fault| match fault.root() {
                Fault::Core(Core::Interrupted) => Core::Interrupted,
                fault => Core::User(fault.to_string()),
            })
        });
        Recorded { values, graph: compile::<(), _>(body), elements }
    }

    fn run(&self, given: &[(&str, &Tensor)]) -> Result<Vec<Value>, Fault> {
        let is_given = |number: &usize| self.values.iter().all(|(own, _)| own != number);
        let arrays = given.iter().enumerate().filter(|(number, _)| is_given(number));
        let arrays: Vec<Array> = arrays.map(|(_, (_, tensor))| tensor.array.clone()).collect();
        let outputs = self.graph.call(&mut (), &arrays)?;
        let elements = self.elements.get().map_or(&[][..], Vec::as_slice);
        let pairs = outputs.into_iter().zip(elements);
        pairs.map(|(array, &element)| Ok(Tensor::new(array, element)?.into())).collect()
    }
}

/// An input whose value a graph is for: what hangs on it is computed while the model is recorded.
fn fixed(bytes: &[u8], element: Element, aval: &Aval) -> Result<Tensor, Fault> {
    let made = || Array::from_bytes(bytes, aval.dtype, aval.shape.clone());
    let array = device::with_stream(Stream::of(Device::CPU), made)?;
    Ok(Tensor { folded: true, ..Tensor::new(array, element)? })
}
