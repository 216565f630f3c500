//! Programs of elementwise primitives at random, over inputs that are read in every way, with a
//! reduction behind some of them. All of their arithmetic is exact.

use std::sync::Arc;

use cupola_core::graph::{Graph, Ref};
use cupola_core::prim::{
    Binary, Call, Cast, Compare, Movement, Op, Reduce, ReduceKind, Select, Unary,
};
use cupola_core::{Aval, DType, Result, Shape};

use crate::host::Host;
use crate::number::Number;
use crate::sample::{Accuracy, Sample, dims};

/// How many programs there are.
const COUNT: u64 = 800;
/// How many of them run where kernels take long to make.
const EVERYWHERE: u64 = 8;

/// A source of numbers that repeats.
pub struct Random(pub u64);

impl Random {
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Sizes of an array of at most `most` elements.
    pub fn shape(&mut self, most: usize) -> Vec<usize> {
        let mut sizes = Vec::new();
        for _ in 0..self.below(6) {
            let size = self.pick(&[1, 1, 2, 3, 4, 5, 8, 10, 17, 33, 64, 70, 200, 1000, 5000]);
            if sizes.iter().product::<usize>() * size <= most {
                sizes.push(size);
            }
        }
        sizes
    }
}

/// A program in one dtype that stands for all: its own are part of it.
pub fn samples() -> Vec<Sample> {
    let sample = |seed: u64| {
        let made = move || program(seed, seed >= EVERYWHERE);
        let op = move |_| match made() {
            Ok((graph, _)) => Op::from(Call::new("program", Arc::new(graph), None)),
            Err(_) => Op::from(Call::new("program", Arc::default(), None)),
        };
        let inputs = move |_| made().map(|(_, inputs)| inputs).unwrap_or_default();
        let sample = Sample::of(format!("program {seed}"), op, inputs)
            .within(Accuracy::Exact)
            .only(|dtype| dtype == DType::F32);
        if seed < EVERYWHERE { sample } else { sample.where_kernels_are_cheap() }
    };
    (0..COUNT).map(sample).chain([of_three()]).collect()
}

/// The largest and the least of three numbers, two of them negated, and of a row of such: compilers have
/// instructions of their own for them, and took them wrong.
fn of_three() -> Sample {
    let made = |dtype: DType| -> Result<Graph> {
        let mut graph = Graph::default();
        let [x, y, z] = [(); 3].map(|()| graph.input(Aval::new([15], dtype)));
        let mut then = |op: Op, inputs: &[Ref]| -> Result<Ref> {
            Ok(Ref { node: graph.push(op, inputs)?, output: 0 })
        };
        let (minus_x, minus_y) = (then(Unary::Neg.into(), &[x])?, then(Unary::Neg.into(), &[y])?);
        let mut outputs = Vec::new();
        for (two, all) in [(Binary::Maximum, ReduceKind::Max), (Binary::Minimum, ReduceKind::Min)] {
            let of_two = then(two.into(), &[z, minus_x])?;
            outputs.push(then(two.into(), &[of_two, minus_y])?);
            outputs.push(then(Reduce { kind: all, axes: dims(&[0]) }.into(), &[minus_x])?);
        }
        graph.outputs = outputs;
        Ok(graph)
    };
    let op = move |dtype| {
        Op::from(Call::new("extremes of three", Arc::new(made(dtype).unwrap_or_default()), None))
    };
    let inputs = |dtype| {
        let random = &mut Random(15);
        let row = |_| {
            let one = |_| Number::of(dtype, random.below(100) as f64 - 50.0, 0.0);
            Host::from_fn(Aval::new([15], dtype), one)
        };
        (0..3).map(row).collect()
    };
    Sample::of("extremes of three", op, inputs)
        .within(Accuracy::Exact)
        .only(|dtype| dtype.is_signed())
}

/// Graph and inputs; with divisions of floats, infinities and NaN only where arithmetic is `strict`:
/// WGSL promises nothing about them.
fn program(seed: u64, strict: bool) -> Result<(Graph, Vec<Host>)> {
    let random = &mut Random(seed);
    let most = if seed % 10 == 9 { 8_000 } else { 300 };
    let mut sizes = random.shape(most);
    if random.below(40) == 0 {
        sizes.push(0);
    }
    let palette = [random.pick(&DType::ALL), random.pick(&DType::ALL), DType::F32];
    let (mut graph, mut hosts) = (Graph::default(), Vec::new());
    let mut values = Vec::new();
    for _ in 0..1 + random.below(4) {
        let dtype = random.pick(&palette);
        let (at, mut host) = read(random, &mut graph, &sizes, dtype)?;
        if !strict {
            let finite =
                |v: &mut Number| *v = if v.float().is_finite() { *v } else { Number::Float(0.5) };
            host.data.iter_mut().for_each(finite);
        }
        hosts.push(host);
        values.push(at);
    }
    for _ in 0..random.below(14) {
        if let Some((op, inputs)) = instruction(random, &graph, &values, &palette, strict) {
            let node = graph.push(op, &inputs)?;
            values.push(Ref { node, output: 0 });
        }
    }
    for _ in 0..1 + random.below(3) {
        let output = random.pick(&values);
        let output =
            if random.below(3) == 0 { folded(random, &mut graph, output)? } else { output };
        graph.outputs.push(output);
    }
    Ok((graph, hosts))
}

/// An input of another shape, as an array of `sizes`: broadcast, turned, flipped or cut out of.
fn read(
    random: &mut Random,
    graph: &mut Graph,
    sizes: &[usize],
    dtype: DType,
) -> Result<(Ref, Host)> {
    let rank = sizes.len();
    let mut axes: Vec<usize> = (0..rank).collect();
    if random.below(2) == 0 {
        (1..rank).for_each(|i| axes.swap(i, random.below(i + 1)));
    }
    let repeats: Vec<bool> = (0..rank).map(|_| random.below(5) == 0).collect();
    let wide: Vec<usize> = (0..rank).map(|_| random.below(4)).collect();
    let size = |a: usize| match (repeats[a], wide[a]) {
        (true, _) => 1,
        (_, 0) => 2 * sizes[a] + 1,
        _ => sizes[a],
    };
    let own: Vec<usize> = axes.iter().map(|&a| size(a)).collect();
    let aval = Aval::new(own.clone(), dtype);
    let host = Host::from_fn(aval.clone(), |_| number(random, dtype));
    let mut at = graph.input(aval);
    let mut then = |movement: Movement| -> Result<()> {
        at = Ref { node: graph.push(movement, &[at])?, output: 0 };
        Ok(())
    };
    let cut = |&a: &usize| wide[a] == 0 && !repeats[a];
    if axes.iter().any(cut) {
        let kept: Vec<usize> =
            axes.iter().map(|&a| if cut(&a) { sizes[a] } else { size(a) }).collect();
        let start: Vec<usize> = axes.iter().map(|a| usize::from(cut(a))).collect();
        let strides: Vec<usize> = axes.iter().map(|a| 1 + usize::from(cut(a))).collect();
        then(Movement::Slice { start: dims(&start), sizes: dims(&kept), strides: dims(&strides) })?;
    }
    let mut back = vec![0; rank];
    axes.iter().enumerate().for_each(|(i, &a)| back[a] = i);
    then(Movement::Transpose(dims(&back)))?;
    let flipped: Vec<usize> = (0..rank).filter(|_| random.below(8) == 0).collect();
    if !flipped.is_empty() {
        then(Movement::Flip(dims(&flipped)))?;
    }
    then(Movement::Broadcast(Shape::from(sizes)))?;
    Ok((at, host))
}

/// A number that is exact in every dtype that has it.
pub fn number(random: &mut Random, dtype: DType) -> Number {
    let v = random.below(40) as f64 - 20.0;
    match dtype {
        dtype if dtype.is_complex() => Number::of(dtype, v, random.below(9) as f64),
        DType::Bool => Number::truth(random.below(2) == 0),
        d if d.is_float() => match random.below(30) {
            0 => Number::Float(f64::NAN),
            1 => Number::Float(f64::INFINITY),
            _ => Number::Float(v / 8.0),
        },
        _ => Number::Int(v as i128),
    }
}

const UNARY: [Unary; 9] = [
    Unary::Neg,
    Unary::Abs,
    Unary::Sign,
    Unary::Square,
    Unary::Not,
    Unary::Conj,
    Unary::Real,
    Unary::Invert,
    Unary::Floor,
];

const BINARY: [Binary; 9] = [
    Binary::Add,
    Binary::Sub,
    Binary::Mul,
    Binary::Maximum,
    Binary::Minimum,
    Binary::BitAnd,
    Binary::BitXor,
    Binary::FloorDivide,
    Binary::ShiftRight,
];

/// The next primitive and what it is of; `None` where what was thrown does not fit.
fn instruction(
    random: &mut Random,
    graph: &Graph,
    values: &[Ref],
    palette: &[DType],
    strict: bool,
) -> Option<(Op, Vec<Ref>)> {
    let a = random.pick(values);
    let dtype = graph.aval(a).dtype;
    let of = |d: DType| values.iter().copied().filter(|&r| graph.aval(r).dtype == d).collect();
    let (same, bools): (Vec<Ref>, Vec<Ref>) = (of(dtype), of(DType::Bool));
    let b = random.pick(&same);
    // Products of complex numbers round in more than one place.
    let complex = dtype.is_complex();
    match random.below(5) {
        0 => {
            let f = random.pick(&UNARY);
            let exact = !(complex && matches!(f, Unary::Abs | Unary::Square));
            (f.takes(dtype) && exact).then(|| (f.into(), vec![a]))
        }
        1 | 2 => {
            let f = random.pick(&BINARY);
            let divides = f == Binary::FloorDivide && dtype.is_float() && !strict;
            let exact = !(complex && f == Binary::Mul || divides);
            (f.takes(dtype) && exact).then(|| (f.into(), vec![a, b]))
        }
        3 => {
            let f = random.pick(Compare::ALL);
            f.takes(dtype).then(|| (f.into(), vec![a, b]))
        }
        _ if !bools.is_empty() && random.below(2) == 0 => {
            Some((Select.into(), vec![random.pick(&bools), a, b]))
        }
        _ => Some((Cast { to: random.pick(palette) }.into(), vec![a])),
    }
}

/// A value, folded over some axes in a way whose order does not matter.
fn folded(random: &mut Random, graph: &mut Graph, value: Ref) -> Result<Ref> {
    let aval = graph.aval(value).clone();
    let mut kinds = vec![ReduceKind::All, ReduceKind::Any];
    if aval.shape.size() > 0 {
        kinds.extend([ReduceKind::Max, ReduceKind::Min]);
    }
    if aval.dtype.is_integer() {
        kinds.extend([ReduceKind::Sum, ReduceKind::Prod]);
    }
    kinds.retain(|k| k.takes(aval.dtype));
    if kinds.is_empty() {
        return Ok(value);
    }
    let axes: Vec<usize> = (0..aval.shape.rank()).filter(|_| random.below(2) == 0).collect();
    let node = graph.push(Reduce { kind: random.pick(&kinds), axes: dims(&axes) }, &[value])?;
    Ok(Ref { node, output: 0 })
}
