//! What holds for any shapes, views and dtypes: broadcasting, views and promotion against plain
//! loops over indices.

use cupola::ops::{self, S};
use cupola::{Array, DType, Error, Result};
use proptest::prelude::*;

/// Row-major elements.
#[derive(Clone, Debug)]
struct Model {
    shape: Vec<usize>,
    data: Vec<i32>,
}

impl Model {
    fn new(shape: &[usize]) -> Model {
        let size: usize = shape.iter().product();
        Model { shape: shape.to_vec(), data: (0..size as i32).collect() }
    }

    fn array(&self) -> Array {
        Array::from_slice(&self.data, &self.shape[..]).unwrap()
    }

    fn at(&self, index: &[usize]) -> i32 {
        let flat = index.iter().zip(&self.shape).fold(0, |flat, (&i, &d)| flat * d + i);
        self.data[flat]
    }

    /// The model of `shape` whose element at an index is this one's at `from` of it.
    fn read(&self, shape: Vec<usize>, from: impl Fn(&[usize]) -> Vec<usize>) -> Model {
        let data = indices(&shape).map(|index| self.at(&from(&index))).collect();
        Model { shape, data }
    }
}

fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let shape = shape.to_vec();
    (0..shape.iter().product()).map(move |mut flat: usize| {
        let mut index = vec![0; shape.len()];
        for axis in (0..shape.len()).rev() {
            index[axis] = flat % shape[axis];
            flat /= shape[axis];
        }
        index
    })
}

/// One operation of a chain of views, chosen by numbers that fit any rank.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Transpose(usize),
    Swap(usize, usize),
    Flip(usize),
    Slice(usize, usize, usize, usize),
    Flatten,
    Expand(usize),
    Broadcast(usize),
    Pick(usize, usize),
    /// Computed in the middle of the chain, so that what follows is a view of memory.
    Eval,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let n = 0usize..8;
    let operation = prop_oneof![
        n.clone().prop_map(Operation::Transpose),
        (n.clone(), n.clone()).prop_map(|(a, b)| Operation::Swap(a, b)),
        n.clone().prop_map(Operation::Flip),
        (n.clone(), n.clone(), n.clone(), 1usize..4)
            .prop_map(|(a, b, c, d)| Operation::Slice(a, b, c, d)),
        Just(Operation::Flatten),
        n.clone().prop_map(Operation::Expand),
        (1usize..4).prop_map(Operation::Broadcast),
        (n.clone(), n).prop_map(|(a, b)| Operation::Pick(a, b)),
        Just(Operation::Eval),
    ];
    prop::collection::vec(operation, 0..7)
}

fn apply(operation: Operation, x: &Array, m: &Model) -> Result<(Array, Model)> {
    let rank = m.shape.len();
    if rank == 0
        && !matches!(operation, Operation::Expand(_) | Operation::Broadcast(_) | Operation::Eval)
    {
        return Ok((x.clone(), m.clone()));
    }
    Ok(match operation {
        Operation::Transpose(by) => {
            let axes: Vec<isize> = (0..rank).map(|i| ((i + by) % rank) as isize).collect();
            let shape = axes.iter().map(|&a| m.shape[a as usize]).collect();
            let model = m.read(shape, |index| {
                let mut from = vec![0; rank];
                axes.iter().zip(index).for_each(|(&a, &i)| from[a as usize] = i);
                from
            });
            (ops::transpose(x, &axes[..])?, model)
        }
        Operation::Swap(a, b) => {
            let (a, b) = (a % rank, b % rank);
            let mut shape = m.shape.clone();
            shape.swap(a, b);
            let model = m.read(shape, |index| {
                let mut from = index.to_vec();
                from.swap(a, b);
                from
            });
            (ops::swapaxes(x, a as isize, b as isize)?, model)
        }
        Operation::Flip(axis) => {
            let axis = axis % rank;
            let model = m.read(m.shape.clone(), |index| {
                let mut from = index.to_vec();
                from[axis] = m.shape[axis] - 1 - index[axis];
                from
            });
            (ops::flip(x, axis as isize)?, model)
        }
        Operation::Slice(axis, start, length, step) => {
            let axis = axis % rank;
            let start = start.min(m.shape[axis]);
            let stop = (start + length).min(m.shape[axis]);
            let mut shape = m.shape.clone();
            shape[axis] = (stop - start).div_ceil(step);
            let model = m.read(shape, |index| {
                let mut from = index.to_vec();
                from[axis] = start + index[axis] * step;
                from
            });
            let mut starts = vec![0; rank];
            let mut stops: Vec<isize> = m.shape.iter().map(|&d| d as isize).collect();
            let mut every = vec![1; rank];
            (starts[axis], stops[axis], every[axis]) =
                (start as isize, stop as isize, step as isize);
            (ops::slice(x, &starts, &stops, &every)?, model)
        }
        Operation::Flatten => {
            let model = Model { shape: vec![m.data.len()], data: m.data.clone() };
            (ops::reshape(x, -1isize)?, model)
        }
        Operation::Expand(axis) => {
            let axis = axis % (rank + 1);
            let mut shape = m.shape.clone();
            shape.insert(axis, 1);
            (ops::expand_dims(x, axis as isize)?, Model { shape, data: m.data.clone() })
        }
        Operation::Broadcast(count) => {
            let shape: Vec<usize> = [&[count], &m.shape[..]].concat();
            let model = m.read(shape.clone(), |index| index[1..].to_vec());
            (ops::broadcast_to(x, shape)?, model)
        }
        Operation::Pick(axis, at) => {
            let axis = axis % rank;
            if m.shape[axis] == 0 {
                return Ok((x.clone(), m.clone()));
            }
            let at = at % m.shape[axis];
            let mut shape = m.shape.clone();
            shape.remove(axis);
            let model = m.read(shape, |index| {
                let mut from = index.to_vec();
                from.insert(axis, at);
                from
            });
            let mut items: Vec<S> = (0..axis).map(|_| S::range(..)).collect();
            items.push(S::at(at as isize));
            (ops::index(x, &items)?, model)
        }
        Operation::Eval => {
            x.eval()?;
            (x.clone(), m.clone())
        }
    })
}

/// A shape that broadcasts to `full`: some axes 1, some leading ones gone.
fn part(full: &[usize], ones: u8, drop: usize) -> Vec<usize> {
    let kept = &full[drop.min(full.len())..];
    kept.iter().enumerate().map(|(i, &d)| if ones >> i & 1 == 1 { 1 } else { d }).collect()
}

/// How NumPy's rule joins two shapes.
fn joined(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |s: &[usize], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |i| s[i]);
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

fn any_dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chains_of_views_read_what_loops_read(
        shape in prop::collection::vec(0usize..5, 0..4),
        operations in operations(),
    ) {
        let mut model = Model::new(&shape);
        let mut x = model.array();
        for operation in operations {
            if model.data.len() > 4000 {
                break;
            }
            (x, model) = apply(operation, &x, &model).unwrap();
        }
        prop_assert_eq!(&x.shape()[..], &model.shape[..]);
        // As a view, and as what a computation reads.
        prop_assert_eq!(&x.to_vec::<i32>().unwrap(), &model.data);
        let doubled: Vec<i32> = model.data.iter().map(|v| v * 2).collect();
        prop_assert_eq!((&x + &x).to_vec::<i32>().unwrap(), doubled);
        let total: i32 = model.data.iter().sum();
        prop_assert_eq!(ops::sum(&x, (), false).unwrap().item::<i32>().unwrap(), total);
    }

    #[test]
    fn operands_broadcast_as_numpy_says(
        full in prop::collection::vec(0usize..4, 0..5),
        ones in any::<[u8; 2]>(),
        drops in any::<[u8; 2]>(),
    ) {
        let shapes = [0, 1].map(|i| part(&full, ones[i], usize::from(drops[i] % 4)));
        let [a, b] = shapes.map(|s| Model::new(&s));
        let want = joined(&a.shape, &b.shape).unwrap();
        let y = ops::add(&a.array(), &b.array()).unwrap();
        prop_assert_eq!(&y.shape()[..], &want[..]);
        let own = |m: &Model, index: &[usize]| {
            let lead = index.len() - m.shape.len();
            let own: Vec<usize> =
                index[lead..].iter().zip(&m.shape).map(|(&i, &d)| if d == 1 { 0 } else { i }).collect();
            m.at(&own)
        };
        let data: Vec<i32> = indices(&want).map(|i| own(&a, &i) + own(&b, &i)).collect();
        prop_assert_eq!(y.to_vec::<i32>().unwrap(), data);
        // The gradient of a broadcast operand has the operand's own shape.
        let seed = ops::ones(want.clone(), DType::F32).unwrap();
        let primals = [&a, &b].map(|m| ops::astype(&m.array(), DType::F32).unwrap());
        let (_, grads) = cupola::transform::vjp(
            |x| Ok(vec![ops::add(&x[0], &x[1])?]), &primals, &[seed]).unwrap();
        for (grad, model) in grads.iter().zip([&a, &b]) {
            prop_assert_eq!(&grad.shape()[..], &model.shape[..]);
            let size: usize = model.shape.iter().product();
            if let Some(each) = want.iter().product::<usize>().checked_div(size) {
                let each = each as f32;
                prop_assert!(grad.to_vec::<f32>().unwrap().iter().all(|&g| g == each));
            }
        }
    }

    #[test]
    fn shapes_that_do_not_broadcast_are_errors(
        a in prop::collection::vec(0usize..4, 0..4),
        b in prop::collection::vec(0usize..4, 0..4),
    ) {
        let (x, y) = (Model::new(&a).array(), Model::new(&b).array());
        match (joined(&a, &b), ops::multiply(&x, &y)) {
            (Some(want), Ok(z)) => prop_assert_eq!(&z.shape()[..], &want[..]),
            (None, Err(Error::Shape { .. })) => {}
            (want, got) => prop_assert!(false, "{want:?} and {got:?}"),
        }
    }

    #[test]
    fn promotion_is_one_rule(a in any_dtype(), b in any_dtype()) {
        let both = a.promote(b);
        prop_assert_eq!(both, b.promote(a));
        prop_assert_eq!(a.promote(a), a);
        // What it gives takes each operand without another promotion, but where MLX's own rule
        // gives up range: uint64 with a signed integer.
        prop_assert_eq!(both.promote(a), both);
        prop_assert!(both.kind() >= a.kind() && both.kind() >= b.kind());
        let [x, y] = [a, b].map(|d| ops::ones([3], d).unwrap());
        prop_assert_eq!(ops::add(&x, &y).unwrap().dtype(), both);
        prop_assert_eq!(ops::multiply(&y, &x).unwrap().dtype(), both);
        prop_assert_eq!(ops::equal(&x, &y).unwrap().dtype(), DType::Bool);
        // A weak scalar of no higher kind leaves the dtype alone.
        if a.is_float() {
            prop_assert_eq!((&x * 2.0).dtype(), a);
            prop_assert_eq!((&x + 1).dtype(), a);
        }
    }
}
