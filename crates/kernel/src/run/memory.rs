//! Elements of arrays, and what is wrong with an index.

use super::compute;
use super::exec::Lanes;
use crate::error::{Error, Pos};
use crate::tree::{Expr, Place};
use crate::types::{Scalar, Ty};

/// A place, with the index of every thread.
pub enum Places {
    Variable(usize),
    Array(usize, Vec<u64>),
    Local(usize, Vec<u64>),
    Shared(usize, Vec<u64>),
}

impl<'a> Lanes<'a, '_> {
    /// A place's indices, checked.
    pub fn places(&mut self, place: &'a Place) -> Result<Places, Error> {
        Ok(match place {
            Place::Variable(number) => Places::Variable(*number),
            Place::Array(number, index) => {
                let array = &self.program.arrays[*number];
                let len = self.lens[*number];
                Places::Array(*number, self.indices(index, len, &array.name)?)
            }
            Place::Local(number, index) => {
                let memory = &self.program.locals[*number];
                Places::Local(*number, self.indices(index, memory.len as usize, &memory.name)?)
            }
            Place::Shared(number, index) => {
                let memory = &self.program.shared[*number];
                Places::Shared(*number, self.indices(index, memory.len as usize, &memory.name)?)
            }
        })
    }

    /// What an index is for every thread: of those that do nothing here 0.
    fn indices(&mut self, index: &'a Expr, len: usize, name: &str) -> Result<Vec<u64>, Error> {
        let mut found = self.eval(index)?;
        let wide = compute::convert(index.ty, Scalar::I64);
        for (lane, found) in found.iter_mut().enumerate().take(self.count) {
            if !self.active[lane] {
                *found = 0;
                continue;
            }
            let raw = *found;
            let place = wide(raw);
            let unsigned = matches!(index.ty, Ty::U64 | Ty::U32);
            if place >= len as u64 {
                let shown = if unsigned { raw.to_string() } else { (place as i64).to_string() };
                return Err(self.outside(index.at, &shown, name, len, lane));
            }
            *found = place;
        }
        Ok(found)
    }

    fn outside(&self, at: Pos, index: &str, name: &str, len: usize, lane: usize) -> Error {
        let [x, y, z] = self.positions[lane];
        let elements = if len == 1 { "element" } else { "elements" };
        let message = format!(
            "index {index} is outside '{name}', which has {len} {elements}, in thread ({x}, {y}, {z})"
        );
        Error::Index { at, message }
    }

    pub fn scalar(&self, places: &Places) -> Scalar {
        match places {
            Places::Variable(number) => self.program.variables[*number].scalar,
            Places::Array(number, _) => self.program.arrays[*number].scalar,
            Places::Local(number, _) => self.program.locals[*number].scalar,
            Places::Shared(number, _) => self.program.shared[*number].scalar,
        }
    }

    /// What is there, for every thread.
    pub fn load(&mut self, places: &Places) -> Vec<u64> {
        let mut found = self.column();
        let count = self.count;
        match places {
            Places::Variable(number) => found.copy_from_slice(&self.variables[*number][..count]),
            Places::Array(number, at) => {
                let read = compute::read(self.program.arrays[*number].scalar);
                let inputs = self.program.inputs;
                let bytes: &[u8] = match number.checked_sub(inputs) {
                    None => self.inputs[*number],
                    Some(output) => self.outputs[output],
                };
                for lane in 0..count {
                    if self.active[lane] {
                        found[lane] = read(bytes, at[lane] as usize);
                    }
                }
            }
            Places::Local(number, at) => {
                let memory = &self.locals[*number];
                for (lane, found) in found.iter_mut().enumerate() {
                    *found = memory[at[lane] as usize * self.width + lane];
                }
            }
            Places::Shared(number, at) => {
                let memory = &self.shared[*number];
                for (lane, found) in found.iter_mut().enumerate() {
                    *found = memory[at[lane] as usize];
                }
            }
        }
        found
    }

    /// Changes what is there, by the threads that are here.
    pub fn store(&mut self, places: &Places, values: &mut [u64]) {
        let scalar = self.scalar(places);
        if scalar.is_narrow() {
            let narrow = compute::narrow(scalar);
            values.iter_mut().for_each(|v| *v = narrow(*v));
        }
        for (lane, &mut value) in values.iter_mut().enumerate().take(self.count) {
            if self.active[lane] {
                self.put(places, lane, value, scalar);
            }
        }
    }

    fn put(&mut self, places: &Places, lane: usize, value: u64, scalar: Scalar) {
        match places {
            Places::Variable(number) => self.variables[*number][lane] = value,
            Places::Array(number, at) => {
                if let Some(output) = number.checked_sub(self.program.inputs) {
                    compute::write(scalar)(self.outputs[output], at[lane] as usize, value);
                }
            }
            Places::Local(number, at) => {
                self.locals[*number][at[lane] as usize * self.width + lane] = value;
            }
            Places::Shared(number, at) => self.shared[*number][at[lane] as usize] = value,
        }
    }

    /// Changes elements one thread after the other, and gives what each found there.
    pub fn exchange(&mut self, places: &Places, of: impl Fn(usize, u64) -> u64) -> Vec<u64> {
        let scalar = self.scalar(places);
        let read = compute::read(scalar);
        let mut found = self.column();
        let Places::Array(number, at) = places else { return found };
        let Some(output) = number.checked_sub(self.program.inputs) else { return found };
        for lane in 0..self.count {
            if self.active[lane] {
                let place = at[lane] as usize;
                found[lane] = read(self.outputs[output], place);
                self.put(places, lane, of(lane, found[lane]), scalar);
            }
        }
        found
    }
}
