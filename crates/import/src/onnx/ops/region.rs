//! Boxes.

use super::prelude::*;
use crate::lowering::boxes::overlap;

/// The corners of a box, the lesser first.
fn corners(b: &[f64], center: bool) -> [f64; 4] {
    match center {
        true => [b[1] - b[3] / 2.0, b[0] - b[2] / 2.0, b[1] + b[3] / 2.0, b[0] + b[2] / 2.0],
        false => [b[0].min(b[2]), b[1].min(b[3]), b[0].max(b[2]), b[1].max(b[3])],
    }
}

/// How many boxes stay depends on the values, so they are evaluated.
fn non_max_suppression(n: &Node<'_>) -> Outcome {
    let (boxes, scores) = (n.x(0)?, n.x(1)?);
    let ([batch, count, 4], [_, classes, _]) = (
        boxes.shape().0[..].try_into().unwrap_or([0; 3]),
        scores.shape().0[..].try_into().unwrap_or([0; 3]),
    ) else {
        return Err(Fault::invalid(format!(
            "boxes {} with scores {}",
            boxes.shape(),
            scores.shape()
        )));
    };
    if scores.shape()[..] != [batch, classes, count] {
        return Err(Fault::invalid(format!(
            "boxes {} with scores {}",
            boxes.shape(),
            scores.shape()
        )));
    }
    let first = |list: Option<Vec<f64>>| list.and_then(|l| l.first().copied());
    let most = n.ints_at(2)?.and_then(|l| l.first().copied()).unwrap_or(0).max(0) as usize;
    let limit = first(n.floats_at(3)?).unwrap_or(0.0);
    let least = first(n.floats_at(4)?);
    let center = n.flag("center_point_box", false)?;
    let (boxes, scores) = (node::floats(boxes)?, node::floats(scores)?);
    let mut found: Vec<i64> = Vec::new();
    for b in 0..batch {
        let of = |i: usize| corners(&boxes[(b * count + i) * 4..][..4], center);
        for class in 0..classes {
            let scores = &scores[(b * classes + class) * count..][..count];
            let mut order: Vec<usize> =
                (0..count).filter(|&i| least.is_none_or(|l| scores[i] > l)).collect();
            order.sort_by(|&i, &j| scores[j].total_cmp(&scores[i]));
            let mut kept: Vec<[f64; 4]> = Vec::new();
            for i in order {
                if kept.len() >= most {
                    break;
                }
                let one = of(i);
                if kept.iter().all(|k| overlap(k, &one) <= limit) {
                    kept.push(one);
                    found.extend([b as i64, class as i64, i as i64]);
                }
            }
        }
    }
    one(Array::from_slice(&found, [found.len() / 3, 3])?)
}

pub const OPS: &[Entry] = &[("NonMaxSuppression", 10, non_max_suppression)];
