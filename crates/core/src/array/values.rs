//! What the outputs of a node are, once they are computed.

use smallvec::SmallVec;

use super::Value;

/// The values of a node's outputs: none of one of several that has no array any more, and none of one of an update that
/// was undone where it has no former value.
#[derive(Default)]
pub(crate) struct Values {
    /// In order of the outputs.
    slots: SmallVec<[Slot; 1]>,
    /// How many have values.
    count: usize,
}

struct Slot {
    output: u32,
    value: Option<Value>,
}

impl Values {
    /// That of the one output of a node.
    pub fn one(value: Value) -> Values {
        let slots = SmallVec::from_buf([Slot { output: 0, value: Some(value) }]);
        Values { slots, count: 1 }
    }

    fn place(&self, output: u32) -> Result<usize, usize> {
        match self.slots.get(output as usize) {
            Some(slot) if slot.output == output => Ok(output as usize),
            _ => self.slots.binary_search_by_key(&output, |slot| slot.output),
        }
    }

    /// What `output` is.
    pub fn get(&self, output: u32) -> Option<&Value> {
        self.slots[self.place(output).ok()?].value.as_ref()
    }

    /// Makes `output` what is given, and gives what it was.
    pub fn put(&mut self, output: u32, value: Option<Value>) -> Option<Value> {
        self.count += usize::from(value.is_some());
        let before = match self.place(output) {
            Ok(at) => std::mem::replace(&mut self.slots[at].value, value),
            Err(at) => {
                self.slots.insert(at, Slot { output, value });
                None
            }
        };
        self.count -= usize::from(before.is_some());
        before
    }

    /// Lets go of `output`, for good, and gives what it was. Of few that are left only these are kept, so that a loss
    /// does not keep the room of a whole model's weights.
    pub fn release(&mut self, output: u32) -> Option<Value> {
        let value = self.put(output, None);
        if self.count <= self.slots.len() / 4 {
            self.slots.retain(|slot| slot.value.is_some());
            self.slots.shrink_to_fit();
        }
        value
    }

    /// The outputs that have values.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Value)> {
        self.slots.iter().filter_map(|slot| Some((slot.output, slot.value.as_ref()?)))
    }

    /// Those that have, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Value)> {
        self.slots.iter_mut().filter_map(|slot| Some((slot.output, slot.value.as_mut()?)))
    }
}

impl FromIterator<Option<Value>> for Values {
    fn from_iter<I: IntoIterator<Item = Option<Value>>>(values: I) -> Values {
        let slots = (0..).zip(values).map(|(output, value)| Slot { output, value }).collect();
        let mut values = Values { slots, count: 0 };
        values.count = values.iter().count();
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Array;
    use crate::device::Device;
    use crate::error::Result;
    use crate::memory::{Buffer, Memory};
    use crate::ops;
    use crate::shape::{Layout, Shape};
    use crate::transform::compile;

    struct Nothing;

    impl Memory for Nothing {
        fn bytes(&self) -> usize {
            0
        }

        fn device(&self) -> Device {
            Device::CPU
        }

        fn host(&self) -> Option<&[u8]> {
            None
        }

        fn as_any(&self) -> &dyn std::any::Any {
            self
        }
    }

    #[test]
    fn few_that_are_left_take_little_room() {
        let (buffer, layout) = (Buffer::new(Nothing), Layout::contiguous(&Shape::default()));
        let value = Value { buffer, layout, range: None };
        let mut values: Values = (0..100).map(|_| Some(value.clone())).collect();
        let kept = values.put(60, None);
        for output in (0..100).filter(|output| ![40, 60, 99].contains(output)) {
            assert!(values.release(output).is_some());
        }
        assert!(values.slots.len() <= 8 && values.slots.capacity() <= 16);
        assert!(values.release(3).is_none() && values.get(3).is_none());
        // A plan gives back what it took.
        assert!(values.get(60).is_none() && values.put(60, kept).is_none());
        let there: Vec<u32> = values.iter().map(|(output, _)| output).collect();
        assert_eq!((there, values.count), (vec![40, 60, 99], 3));
        assert!(values.release(99).is_some() && values.get(40).is_some());
    }

    #[test]
    fn steps_of_a_compiled_function_share_what_they_give() -> Result<()> {
        let step = compile(|_: &mut (), x: &[Array]| Ok(vec![&x[0] * 2.0, &x[0] + 1.0]));
        let x = ops::arange(0, 4, 1)?;
        let [first, second] = [step.call(&mut (), &[x.clone()])?, step.call(&mut (), &[x])?];
        assert!(std::ptr::eq(first[0].aval(), second[0].aval()));
        Ok(())
    }
}
