//! Composites.

use std::sync::Arc;

use cupola_core::graph::{Graph, Ref};
use cupola_core::precision::MatmulPrecision;
use cupola_core::prim::{
    Binary, Call, Cast, Constant, Conv, ConvRole, Dot, Movement, Op, Pool, PoolRole, Unary,
};
use cupola_core::{Aval, DType, Result, Scalar, Shape};

use crate::host::Host;
use crate::programs;
use crate::sample::{Accuracy, Sample, dims, from, input, spread, whole};

/// A composite, and programs without an end.
pub fn samples() -> Vec<Sample> {
    let body = |dtype: DType| {
        let mut graph = Graph::default();
        let a = graph.input(Aval::new([3, 4], dtype));
        let b = graph.input(Aval::new([3, 4], dtype));
        let square = |g: &mut Graph, r| g.push(Binary::Mul, &[r, r]);
        let sum = square(&mut graph, a).and_then(|node| {
            let first = Ref { node, output: 0 };
            graph.push(Binary::Add, &[first, b])
        });
        if let Ok(node) = sum {
            graph.outputs.push(Ref { node, output: 0 });
        }
        Op::from(Call::new("square_add", Arc::new(graph), None))
    };
    let inputs = vec![input([3, 4]), from([3, 4], |i| spread(i + 13))];
    let mut all = vec![Sample::new("square_add", body, inputs).smooth()];
    all.push(modulus());
    all.push(repeated());
    all.extend(continued());
    all.extend(programs::samples());
    all
}

/// A composite of what `build` records over inputs of these shapes; without an output where the dtype
/// is not taken.
fn composite(
    name: &'static str,
    shapes: Vec<Vec<usize>>,
    build: impl Fn(&mut Graph, &[Ref], DType) -> Result<Ref> + 'static,
) -> Sample {
    let inputs = (shapes.iter().enumerate())
        .map(|(n, shape)| from(&shape[..], move |i| whole(i, if n == 2 { 9 } else { 3 }, n)))
        .collect();
    let body = move |dtype: DType| {
        let mut graph = Graph::default();
        let avals = shapes.iter().map(|shape| Aval::new(shape.clone(), dtype));
        let inputs: Vec<Ref> = avals.map(|aval| graph.input(aval)).collect();
        if let Ok(output) = build(&mut graph, &inputs, dtype) {
            graph.outputs.push(output);
        }
        Op::from(Call::new(name, Arc::new(graph), None))
    };
    Sample::new(name, body, inputs).within(Accuracy::Exact)
}

fn push(graph: &mut Graph, op: impl Into<Op>, inputs: &[Ref]) -> Result<Ref> {
    Ok(Ref { node: graph.push(op, inputs)?, output: 0 })
}

/// The modulus of the conjugate of a product: its derivatives are those of complex parts.
fn modulus() -> Sample {
    let sample = composite("modulus of a product", vec![vec![3], vec![3]], |g, x, _| {
        let product = push(g, Binary::Mul, &[x[0], x[1]])?;
        let conjugate = push(g, Unary::Conj, &[product])?;
        push(g, Unary::Abs, &[conjugate])
    });
    let inputs = vec![from([3], |i| 2.0 + spread(i) / 3.0), from([3], |i| 2.0 - spread(i) / 3.0)];
    sample.on(inputs).within(Accuracy::Usual).smooth()
}

/// A product whose left operand is the same for every matrix of a batch.
fn repeated() -> Sample {
    composite("product of a repeated batch", vec![vec![4, 3], vec![2, 3, 2]], |g, x, dtype| {
        let left = push(g, Movement::Broadcast(Shape::from([2, 4, 3])), &[x[0]])?;
        push(g, Dot::of(dtype), &[left, x[1]])
    })
}

/// Products, a convolution and a pooling, to which a row is added and which are then multiplied.
fn continued() -> Vec<Sample> {
    let then = |g: &mut Graph, y: Ref, row: Ref, by: f64| -> Result<Ref> {
        let aval = g.aval(y).clone();
        let row = push(g, Movement::Broadcast(aval.shape.clone()), &[row])?;
        let row = match g.aval(row).dtype == aval.dtype {
            true => row,
            false => push(g, Cast { to: aval.dtype }, &[row])?,
        };
        let sum = push(g, Binary::Add, &[y, row])?;
        let by = push(g, Constant { value: Scalar::Float(by), aval }, &[])?;
        push(g, Binary::Mul, &[sum, by])
    };
    let product = vec![vec![90, 40], vec![40, 70], vec![70]];
    let narrow = vec![vec![9, 4], vec![4, 7], vec![7]];
    let convolved = vec![vec![2, 5, 6, 4], vec![6, 3, 2, 2], vec![6]];
    let pooled = vec![vec![2, 5, 6, 4], vec![], vec![4]];
    vec![
        composite("product, then a row", product, move |g, x, dtype| {
            let y = push(g, Dot::of(dtype), &[x[0], x[1]])?;
            then(g, y, x[2], 3.0)
        }),
        composite("narrow product, then a row", narrow, move |g, x, _| {
            let dot = Dot::of(DType::F32);
            let y = push(g, dot, &[x[0], x[1]])?;
            then(g, y, x[2], 3.0)
        })
        .only(|dtype| dtype == DType::BF16),
        composite("convolution, then a row", convolved, move |g, x, dtype| {
            let conv = Conv {
                role: ConvRole::Forward,
                input: dims(&[5, 6]),
                kernel: dims(&[3, 2]),
                stride: dims(&[2, 1]),
                padding: vec![(1, 0), (0, 2)],
                dilation: dims(&[1, 2]),
                input_dilation: dims(&[2, 1]),
                groups: 2,
                flip: true,
                accumulate: dtype.accumulator(),
                precision: MatmulPrecision::Full,
                result: dtype,
            };
            let y = push(g, conv, &[x[0], x[1]])?;
            then(g, y, x[2], 3.0)
        }),
        composite("pooling, then a row", pooled, move |g, x, _| {
            let pool = Pool {
                role: PoolRole::Sum,
                input: dims(&[5, 6]),
                window: dims(&[2, 3]),
                stride: dims(&[2, 1]),
                padding: vec![(1, 0), (1, 1)],
                dilation: dims(&[1, 1]),
            };
            let y = push(g, pool, &[x[0]])?;
            then(g, y, x[2], 3.0)
        }),
    ]
}

/// The body, a primitive at a time.
pub fn reference(call: &Call, inputs: &[Host]) -> Option<Vec<Host>> {
    let mut values: Vec<Vec<Host>> = Vec::new();
    let mut given = inputs.iter();
    for node in &call.body.nodes {
        let of = |r: &Ref| values[r.node as usize][r.output as usize].clone();
        let inputs: Vec<Host> = node.inputs.iter().map(of).collect();
        values.push(match &node.op {
            Op::Input(_) => vec![given.next()?.clone()],
            op => crate::reference::reference(op, &inputs, &node.outputs)?,
        });
    }
    let output = |r: &Ref| values[r.node as usize][r.output as usize].clone();
    Some(call.body.outputs.iter().map(output).collect())
}
