//! Boxes.

use super::prelude::*;
use crate::lowering::boxes::overlap;

/// The corners of a box of a center and sizes.
fn corners(b: &[f64]) -> [f64; 4] {
    [b[0] - b[2] / 2.0, b[1] - b[3] / 2.0, b[0] + b[2] / 2.0, b[1] + b[3] / 2.0]
}

/// Which boxes stay depends on the values, so they are evaluated. Boxes and scores that are not full are
/// zeros, and their places −1.
fn non_maximum_suppression(n: &Node<'_>) -> Outcome {
    let (boxes, scores) = (n.x("boxes")?, n.x("scores")?);
    let wrong =
        || Fault::invalid(format!("boxes {} with scores {}", boxes.shape(), scores.shape()));
    let ([batch, count, 4], [batches, places, classes]) = (
        boxes.shape().0[..].try_into().unwrap_or([0; 3]),
        scores.shape().0[..].try_into().unwrap_or([0; 3]),
    ) else {
        return Err(wrong());
    };
    if batches != batch || places != count {
        return Err(wrong());
    }
    let most = n.count("max_boxes")?;
    Shape::from([batch, most, classes.max(4)]).checked_size("boxes", DType::F64)?;
    let (limit, least) =
        (n.float("iou_threshold")?, n.float_or("score_threshold", f64::NEG_INFINITY)?);
    let apart = n.flag("per_class_suppression", false)?;
    let (box_values, score_values) = (numbers::floats(boxes)?, numbers::floats(scores)?);
    let mut chosen = numbers::filled(batch * most * 4, |_| 0.0)?;
    let mut chosen_scores = numbers::filled(batch * most * classes, |_| 0.0)?;
    let mut indices = numbers::filled(batch * most, |_| -1i32)?;
    let mut counts = Vec::with_capacity(batch);
    for b in 0..batch {
        let corner = |i: usize| corners(&box_values[(b * count + i) * 4..][..4]);
        let row = |i: usize| &score_values[(b * count + i) * classes..][..classes];
        // The best class of each box.
        let best = |i: usize| {
            let scores = row(i).iter().enumerate();
            let first = (0, f64::NEG_INFINITY);
            scores.fold(first, |best, (class, &s)| if s > best.1 { (class, s) } else { best })
        };
        let mut order: Vec<usize> = (0..count).filter(|&i| best(i).1 >= least).collect();
        order.sort_by(|&i, &j| best(j).1.total_cmp(&best(i).1));
        let mut kept: Vec<(usize, [f64; 4], usize)> = Vec::new();
        for i in order {
            if kept.len() >= most {
                break;
            }
            let (one, class) = (corner(i), best(i).0);
            let free = |(_, other, its): &(usize, [f64; 4], usize)| {
                apart && *its != class || overlap(other, &one) <= limit
            };
            if kept.iter().all(free) {
                kept.push((i, one, class));
            }
        }
        for (at, (i, _, _)) in kept.iter().enumerate() {
            let place = b * most + at;
            chosen[place * 4..][..4].copy_from_slice(&box_values[(b * count + i) * 4..][..4]);
            chosen_scores[place * classes..][..classes].copy_from_slice(row(*i));
            indices[place] = *i as i32;
        }
        counts.push(kept.len() as i32);
    }
    let cast = |values: &[f64], shape: [usize; 3], dtype: DType| -> Made {
        Ok(ops::astype(&Array::from_slice(values, shape)?, dtype)?)
    };
    Ok(vec![
        cast(&chosen, [batch, most, 4], boxes.dtype())?.into(),
        cast(&chosen_scores, [batch, most, classes], scores.dtype())?.into(),
        Array::from_slice(&indices, [batch, most])?.into(),
        Array::from_slice(&counts, [batch])?.into(),
    ])
}

pub const OPS: &[Entry] = &[("non_maximum_suppression", non_maximum_suppression)];
