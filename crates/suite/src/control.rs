//! Loops and branches.

use std::sync::Arc;

use cupola_core::graph::{Graph, Ref};
use cupola_core::prim::control::{Cond, Scan, While};
use cupola_core::prim::{
    Binary, Call, Compare, Constant, Control, Dot, Movement, Op, Reduce, ReduceKind, Unary,
};
use cupola_core::{Aval, DType, Result, Scalar};

use crate::call;
use crate::host::Host;
use crate::number::Number;
use crate::sample::{Sample, dims, fixed, from, input, spread, whole};

/// Every kind, with and without elements.
pub fn samples() -> Vec<Sample> {
    let mut all = scans();
    all.extend(whiles());
    all.extend(conds());
    all
}

/// A body of inputs of these avals, that gives what `build` pushes.
fn body(avals: Vec<Aval>, build: impl FnOnce(&mut Graph, &[Ref]) -> Result<Vec<Ref>>) -> Arc<Call> {
    let mut graph = Graph::default();
    let inputs: Vec<Ref> = avals.into_iter().map(|aval| graph.input(aval)).collect();
    // What does not take the dtype gives nothing, which is an error of the sample.
    graph.outputs = build(&mut graph, &inputs).unwrap_or_default();
    Call::new("body", Arc::new(graph), None)
}

fn push(graph: &mut Graph, op: impl Into<Op>, inputs: &[Ref]) -> Result<Ref> {
    Ok(Ref { node: graph.push(op, inputs)?, output: 0 })
}

fn number(graph: &mut Graph, value: i64, like: Ref) -> Result<Ref> {
    let aval = graph.aval(like).clone();
    push(graph, Constant { value: Scalar::Int(value), aval }, &[])
}

fn scan(body: Arc<Call>, carries: usize, sequences: usize, length: usize, reverse: bool) -> Op {
    Control::Scan(Scan { body, carries, sequences, length, reverse }).into()
}

fn is_number(dtype: DType) -> bool {
    dtype != DType::Bool
}

fn scans() -> Vec<Sample> {
    // h·x + k is carried, and h − x given.
    let folded = |length: usize, reverse: bool| {
        move |dtype: DType| {
            let aval = Aval::new([3], dtype);
            let body = body(vec![aval.clone(), aval.clone(), aval], |g, i| {
                let product = push(g, Binary::Mul, &[i[0], i[1]])?;
                let next = push(g, Binary::Add, &[product, i[2]])?;
                Ok(vec![next, push(g, Binary::Sub, &[i[0], i[1]])?])
            });
            scan(body, 1, 1, length, reverse)
        }
    };
    let of = |length: usize| vec![input([3]), input([length, 3]), from([3], |i| spread(i + 5))];
    // A recurrent layer.
    let layer = |dtype: DType| {
        let avals = vec![
            Aval::new([2, 4], dtype),
            Aval::new([2, 4], dtype),
            Aval::new([4, 4], dtype),
            Aval::new([4], dtype),
        ];
        let body = body(avals, |g, i| {
            let product = push(g, Dot::of(dtype), &[i[0], i[2]])?;
            let sum = push(g, Binary::Add, &[product, i[1]])?;
            let bias = push(g, Movement::Broadcast([2, 4].into()), &[i[3]])?;
            let sum = push(g, Binary::Add, &[sum, bias])?;
            let next = push(g, Unary::Tanh, &[sum])?;
            Ok(vec![next, next])
        });
        scan(body, 1, 1, 5, false)
    };
    // What is carried changes places, and a sum of the rows is given: nothing of one is in the other.
    let swapped = |dtype: DType| {
        let aval = Aval::new([2, 3], dtype);
        let body = body(vec![aval.clone(), aval.clone(), aval], |g, i| {
            let next = push(g, Binary::Add, &[i[1], i[2]])?;
            let rows = Reduce { kind: ReduceKind::Sum, axes: dims(&[1]) };
            let sum = push(g, rows, &[i[0]])?;
            Ok(vec![next, i[0], sum, i[2]])
        });
        scan(body, 2, 1, 3, true)
    };
    // The rows of a matrix, each folded by a loop inside of the loop.
    let nested = |dtype: DType| {
        let scalar = Aval::new([], dtype);
        let inner = body(vec![scalar.clone(), scalar.clone(), scalar.clone()], |g, i| {
            let product = push(g, Binary::Mul, &[i[0], i[2]])?;
            Ok(vec![push(g, Binary::Add, &[product, i[1]])?])
        });
        let avals = vec![scalar.clone(), Aval::new([3], dtype), scalar];
        let body = body(avals, |g, i| {
            let folded = push(g, scan(inner.clone(), 1, 1, 3, false), &[i[0], i[1], i[2]])?;
            let square = push(g, Binary::Mul, &[folded, folded])?;
            Ok(vec![folded, square])
        });
        scan(body, 1, 1, 2, false)
    };
    // Nothing is carried, and nothing is a sequence.
    let mapped = |dtype: DType| {
        let body =
            body(vec![Aval::new([2], dtype)], |g, i| Ok(vec![push(g, Unary::Sin, &[i[0]])?]));
        scan(body, 0, 1, 3, false)
    };
    let powers = |dtype: DType| {
        let aval = Aval::new([2], dtype);
        let body =
            body(vec![aval.clone(), aval], |g, i| Ok(vec![push(g, Binary::Mul, &[i[0], i[1]])?]));
        scan(body, 1, 0, 3, false)
    };
    // What was captured is an input that comes after a node.
    let late = |dtype: DType| {
        let mut graph = Graph::default();
        let aval = Aval::new([3], dtype);
        let (h, x) = (graph.input(aval.clone()), graph.input(aval.clone()));
        let product = push(&mut graph, Binary::Mul, &[h, x]);
        let captured = graph.input(aval);
        let sum = product.and_then(|product| {
            Ok([push(&mut graph, Binary::Add, &[product, captured])?, product])
        });
        graph.outputs = sum.map_or_else(|_| Vec::new(), Vec::from);
        scan(Call::new("body", Arc::new(graph), None), 1, 1, 3, false)
    };
    let small = |n: usize| from([2, 3], move |i| whole(i, 5, n) - 2.0);
    let angles = || from([2, 4], |i| spread(i + 2) / 4.0);
    vec![
        Sample::new("folded", folded(4, false), of(4)).only(is_number).smooth(),
        Sample::new("folded from the end", folded(4, true), of(4)).only(is_number).smooth(),
        Sample::new("folded once", folded(1, false), of(1)).only(is_number).smooth(),
        Sample::new("of nothing", folded(0, false), of(0)).only(is_number).smooth(),
        Sample::new(
            "recurrent layer",
            layer,
            vec![
                angles(),
                from([5, 2, 4], |i| spread(i) / 3.0),
                from([4, 4], |i| spread(i + 9) / 4.0),
                from([4], |i| spread(i + 4) / 4.0),
            ],
        )
        .only(|dtype| dtype.is_float())
        .smooth(),
        Sample::new(
            "swapped",
            swapped,
            vec![small(1), small(2), from([3, 2, 3], |i| whole(i, 5, 3))],
        )
        .only(is_number)
        .smooth(),
        Sample::new(
            "nested",
            nested,
            vec![input([]), from([2, 3], |i| spread(i) / 2.0), input([])],
        )
        .only(is_number)
        .smooth(),
        Sample::new("a late input", late, of(3)).only(is_number).smooth(),
        Sample::new("nothing carried", mapped, vec![input([3, 2])])
            .only(|dtype| dtype.is_float())
            .smooth(),
        Sample::new("no sequence", powers, vec![input([2]), input([2])]).only(is_number).smooth(),
    ]
}

fn whiles() -> Vec<Sample> {
    // As often as the first of some counts says.
    let counted = |dtype: DType, most: Option<usize>| -> Op {
        let count = Aval::new([], DType::I32);
        let avals =
            vec![count, Aval::new([3], dtype), Aval::new([2], DType::I32), Aval::new([3], dtype)];
        let cond = body(avals.clone(), |g, i| {
            let slice =
                Movement::Slice { start: dims(&[0]), sizes: dims(&[1]), strides: dims(&[1]) };
            let first = push(g, slice, &[i[2]])?;
            let first = push(g, Movement::Squeeze(dims(&[0])), &[first])?;
            Ok(vec![push(g, Compare::Lt, &[i[0], first])?])
        });
        let body = body(avals, |g, i| {
            let one = number(g, 1, i[0])?;
            let next = push(g, Binary::Add, &[i[0], one])?;
            Ok(vec![next, push(g, Binary::Add, &[i[1], i[3]])?])
        });
        Control::While(While { cond, body, carries: 2, most }).into()
    };
    let of = |counts: [i64; 2]| {
        vec![
            fixed([], DType::I32, |_| 0.0),
            input([3]),
            fixed([2], DType::I32, move |i| counts[i % 2] as f64),
            from([3], |i| spread(i + 4)),
        ]
    };
    vec![
        Sample::new("while", move |dtype| counted(dtype, None), of([2, 5])).only(is_number),
        Sample::new("while never", move |dtype| counted(dtype, None), of([0, 1])).only(is_number),
        Sample::new("while, at most 4 times", move |dtype| counted(dtype, Some(4)), of([2, 3]))
            .only(is_number)
            .smooth(),
        Sample::new("while never, at most once", move |dtype| counted(dtype, Some(1)), of([0, 1]))
            .only(is_number)
            .smooth(),
    ]
}

fn conds() -> Vec<Sample> {
    let chosen = |dtype: DType| {
        let aval = Aval::new([3], dtype);
        let branch = |op: Binary| {
            body(vec![aval.clone(), aval.clone()], |g, i| {
                Ok(vec![push(g, op, &[i[0], i[1]])?, i[1]])
            })
        };
        let branches = [Binary::Add, Binary::Mul, Binary::Sub].map(branch).to_vec();
        Control::Cond(Cond { branches }).into()
    };
    let first = |dtype: DType| {
        let aval = Aval::new([3], dtype);
        let branch =
            |place: usize| body(vec![aval.clone(), aval.clone()], |_, i| Ok(vec![i[place]]));
        Control::Cond(Cond { branches: [0, 1].map(branch).to_vec() }).into()
    };
    let of = |dtype: DType, which: f64| {
        vec![fixed([], dtype, move |_| which), input([3]), from([3], |i| spread(i + 2))]
    };
    let chosen = |which: f64| {
        Sample::new(format!("branch {which}"), chosen, of(DType::I32, which))
            .only(is_number)
            .smooth()
    };
    let or = |which: f64| {
        Sample::new(format!("{}", which != 0.0), first, of(DType::Bool, which)).smooth()
    };
    vec![chosen(-2.0), chosen(0.0), chosen(1.0), chosen(7.0), or(0.0), or(1.0)]
}

/// What a loop or a branch means, an iteration at a time.
pub fn reference(control: &Control, inputs: &[Host], outputs: &[Aval]) -> Option<Vec<Host>> {
    match control {
        Control::Scan(scan) => self::scanned(scan, inputs, outputs),
        Control::While(looped) => {
            let mut all = inputs.to_vec();
            while call::reference(&looped.cond, &all)?[0].data[0].float() != 0.0 {
                let next = call::reference(&looped.body, &all)?;
                all[..looped.carries].clone_from_slice(&next);
            }
            all.truncate(looped.carries);
            Some(all)
        }
        Control::Cond(cond) => {
            let last = cond.branches.len() as f64 - 1.0;
            let which = inputs[0].data[0].float().clamp(0.0, last) as usize;
            call::reference(&cond.branches[which], &inputs[1..])
        }
    }
}

fn scanned(scan: &Scan, inputs: &[Host], outputs: &[Aval]) -> Option<Vec<Host>> {
    let (carried, rest) = inputs.split_at(scan.carries);
    let (sequences, rest) = rest.split_at(scan.sequences);
    let mut carried = carried.to_vec();
    let given = &outputs[scan.carries..];
    let mut stacks: Vec<Host> =
        given.iter().map(|aval| Host::from_fn(aval.clone(), |_| Number::Int(0))).collect();
    for step in 0..scan.length {
        let at = if scan.reverse { scan.length - 1 - step } else { step };
        let element = |whole: &Host| {
            let aval = Aval::new(&whole.aval.shape[1..], whole.aval.dtype);
            let size = aval.shape.size();
            Host { data: whole.data[at * size..(at + 1) * size].to_vec(), aval }
        };
        let mut all = carried.clone();
        all.extend(sequences.iter().map(element));
        all.extend(rest.iter().cloned());
        let mut next = call::reference(&scan.body, &all)?;
        for (stack, one) in stacks.iter_mut().zip(next.split_off(scan.carries)) {
            let size = one.data.len();
            stack.data[at * size..(at + 1) * size].copy_from_slice(&one.data);
        }
        carried = next;
    }
    carried.extend(stacks);
    Some(carried)
}
