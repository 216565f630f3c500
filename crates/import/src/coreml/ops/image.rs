//! Pictures of other sizes, and sampled at places of their own.

use super::prelude::*;
use crate::lowering::sample::{Beyond, Line, Pick, resized, sampled};

/// The places in the input that the places of an axis of the output stand for.
fn grid(mode: &str, input: usize, output: usize) -> Result<Vec<f64>, Fault> {
    let (n, m) = (input as f64, output as f64);
    let spaced = |first: f64, step: f64| (0..output).map(|i| first + i as f64 * step).collect();
    let steps = (m - 1.0).max(1.0);
    let places: Vec<f64> = match mode {
        "ALIGN_CORNERS" if output == 1 => spaced((n - 1.0) / 2.0, 0.0),
        "ALIGN_CORNERS" | "STRICT_ALIGN_CORNERS" => spaced(0.0, (n - 1.0) / steps),
        "DEFAULT" => spaced(0.0, (n - n / m) / steps),
        "OFFSET_CORNERS" => {
            let delta = (n - 1.0).max(1.0) / m;
            spaced(0.5 * delta, delta)
        }
        "UNALIGN_CORNERS" => spaced(0.5 * n / m - 0.5, n / m),
        other => return Err(Fault::invalid(format!("the sampling_mode '{other}' is not known"))),
    };
    Ok(places.into_iter().map(|place| place.clamp(0.0, n - 1.0)).collect())
}

/// Two neighbours of a place, and their weights.
fn linear(place: f64, input: usize) -> Pick {
    let floor = place.floor();
    let last = input as i64 - 1;
    let weight = place - floor;
    (vec![floor as i64, (floor as i64 + 1).min(last)], vec![1.0 - weight, weight])
}

/// The neighbour that a place is nearest to, of two the last.
fn nearest(place: f64, input: usize) -> Pick {
    (vec![((place + 0.5).floor() as i64).min(input as i64 - 1)], vec![1.0])
}

/// The most elements of an axis, whose places the host knows.
const MOST_PLACES: usize = 1 << 24;

/// Axes of other sizes; `picks` gives for an axis what its places are made of.
fn other_sizes(
    x: &Array,
    sizes: &[(usize, usize)],
    picks: impl Fn(usize, usize) -> Result<Vec<Pick>, Fault>,
) -> Outcome {
    let mut wanted = x.shape().to_vec();
    for &(axis, size) in sizes {
        wanted[axis] = size;
        if x.shape()[axis] == 0 || size == 0 || size > MOST_PLACES {
            return Err(Fault::invalid(format!("axis {axis} of {} as {size}", x.shape())));
        }
    }
    Shape::from(wanted).checked_size("resize", DType::F32)?;
    let mut y = ops::astype(x, x.dtype().accumulator())?;
    for &(axis, size) in sizes {
        let picks = picks(x.shape()[axis], size)?.into_iter().map(Some).collect();
        y = resized(&y, axis, &picks, 0.0)?;
    }
    if x.dtype().is_integer() {
        y = ops::round(&y, 0)?;
    }
    one(ops::astype(&y, x.dtype())?)
}

fn linear_picks(mode: &str, input: usize, output: usize) -> Result<Vec<Pick>, Fault> {
    Ok(grid(mode, input, output)?.into_iter().map(|place| linear(place, input)).collect())
}

fn nearest_picks(mode: &str, input: usize, output: usize) -> Result<Vec<Pick>, Fault> {
    Ok(grid(mode, input, output)?.into_iter().map(|place| nearest(place, input)).collect())
}

/// The places that each begin where one of the input does.
fn floor_picks(input: usize, output: usize) -> Result<Vec<Pick>, Fault> {
    let place = |at: usize| (at as f64 * input as f64 / output as f64).floor() as i64;
    Ok((0..output).map(|at| (vec![place(at).min(input as i64 - 1)], vec![1.0])).collect())
}

/// The rows and the columns, with the sizes that they are to have.
fn spatial(x: &Array, height: usize, width: usize) -> Result<[(usize, usize); 2], Fault> {
    match x.rank() {
        rank @ 3.. => Ok([(rank - 2, height), (rank - 1, width)]),
        _ => Err(Fault::invalid(format!("{} has not three axes", x.shape()))),
    }
}

fn target(n: &Node<'_>) -> Result<[(usize, usize); 2], Fault> {
    let size = |name: &str| numbers::count(n.int_or(name, 1)?);
    spatial(n.x("x")?, size("target_size_height")?, size("target_size_width")?)
}

fn scaled(n: &Node<'_>) -> Result<[(usize, usize); 2], Fault> {
    let x = n.x("x")?;
    let size = |name: &str, behind: usize| {
        let have = x.rank().checked_sub(behind).map_or(0, |axis| x.shape()[axis]);
        // The program's own sizes are rounded so.
        let size = (have as f32 * n.float_or(name, 1.0)? as f32).floor();
        numbers::count(size.clamp(-1.0, 1e15) as i64)
    };
    spatial(x, size("scale_factor_height", 2)?, size("scale_factor_width", 1)?)
}

fn resize_bilinear(n: &Node<'_>) -> Outcome {
    let mode = n.text("sampling_mode", "DEFAULT")?;
    other_sizes(n.x("x")?, &target(n)?, |input, output| linear_picks(mode, input, output))
}

fn resize_nearest(n: &Node<'_>) -> Outcome {
    let picks = |input, output| nearest_picks("UNALIGN_CORNERS", input, output);
    other_sizes(n.x("x")?, &target(n)?, picks)
}

fn upsample_bilinear(n: &Node<'_>) -> Outcome {
    let corners = n.flag("align_corners", true)?;
    let mode = match (corners, n.flag("half_pixel_centers", !corners)?) {
        (true, false) => "STRICT_ALIGN_CORNERS",
        (false, true) => "UNALIGN_CORNERS",
        (false, false) => "DEFAULT",
        (true, true) => {
            return Err(Fault::invalid("align_corners and half_pixel_centers do not go together"));
        }
    };
    other_sizes(n.x("x")?, &scaled(n)?, |input, output| linear_picks(mode, input, output))
}

fn upsample_nearest(n: &Node<'_>) -> Outcome {
    other_sizes(n.x("x")?, &scaled(n)?, floor_picks)
}

/// The last axes in the sizes of a shape; 0 stands for the size that an axis has.
fn resize(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let shape = numbers::counts(&n.ints("shape")?)?;
    let count = n.count("resized_dims")?;
    if count > shape.len() || count > x.rank() {
        return Err(Fault::invalid(format!("{count} axes of {} as of {shape:?}", x.shape())));
    }
    let first = x.rank() - count;
    let wanted = shape[shape.len() - count..].iter().enumerate();
    let sizes: Vec<(usize, usize)> = wanted
        .map(|(i, &size)| (first + i, if size == 0 { x.shape()[first + i] } else { size }))
        .collect();
    let mode = n.text("sampling_mode", "DEFAULT")?;
    match n.text("interpolation_mode", "LINEAR")? {
        "LINEAR" => other_sizes(x, &sizes, |input, output| linear_picks(mode, input, output)),
        "NEAREST_NEIGHBOR" => {
            other_sizes(x, &sizes, |input, output| nearest_picks(mode, input, output))
        }
        other => Err(Fault::invalid(format!("the interpolation_mode '{other}' is not known"))),
    }
}

/// A picture at places `x` and `y`, each `[N, ..]`, in its own pixels; `fill` is what lies beyond.
fn at_places(
    picture: &Array,
    places: [Array; 2],
    mode: &str,
    beyond: Beyond,
    ranges: impl Fn(usize) -> (f64, f64),
    fill: f64,
) -> Made {
    let [x, y] = places;
    let moved = match fill == 0.0 {
        true => picture.clone(),
        false => ops::subtract(picture, fill)?,
    };
    let line = |axis: usize, places: Array| {
        let size = picture.shape()[axis];
        Line { size, places, range: ranges(size) }.neighbours(mode, beyond)
    };
    let found = sampled(&moved, &[line(2, y)?, line(3, x)?])?;
    let found = if fill == 0.0 { found } else { ops::add(&found, fill)? };
    Ok(ops::astype(&found, picture.dtype())?)
}

/// What a coordinate is in pixels.
fn in_pixels(n: &Node<'_>, places: &Array, size: usize) -> Made {
    let d = size as f64;
    let corners = n.flag("align_corners", true)?;
    // From 0 to 1 over the picture.
    let unit = match n.text("coordinates_mode", "unnormalized")?.to_ascii_lowercase().as_str() {
        "unnormalized" => return Ok(places.clone()),
        "normalized_minus_one_to_one" => ops::multiply(&ops::add(places, 1.0)?, 0.5)?,
        "normalized_zero_to_one" => places.clone(),
        other => {
            return Err(Fault::invalid(format!("the coordinates_mode '{other}' is not known")));
        }
    };
    Ok(match corners {
        true => ops::multiply(&unit, d - 1.0)?,
        false => ops::subtract(&ops::multiply(&unit, d)?, 0.5)?,
    })
}

fn sampling(n: &Node<'_>) -> Result<&'static str, Fault> {
    match n.text("sampling_mode", "bilinear")?.to_ascii_lowercase().as_str() {
        "bilinear" => Ok("linear"),
        "nearest" => Ok("nearest"),
        other => Err(Fault::invalid(format!("the sampling_mode '{other}' is not known"))),
    }
}

/// What lies beyond the picture, whether its outermost pixels count twice, and the number around it.
fn around(n: &Node<'_>) -> Result<(Beyond, bool, f64), Fault> {
    Ok(match n.text("padding_mode", "constant")?.to_ascii_lowercase().as_str() {
        "constant" => (Beyond::Zeros, false, n.float_or("padding_value", 0.0)?),
        "border" => (Beyond::Border, false, 0.0),
        "reflection" => (Beyond::Reflection, false, 0.0),
        "symmetric" => (Beyond::Reflection, true, 0.0),
        other => return Err(Fault::invalid(format!("the padding_mode '{other}' is not known"))),
    })
}

fn picture<'n>(n: &'n Node<'_>) -> Result<&'n Array, Fault> {
    let x = n.x("x")?;
    match x.rank() == 4 && !x.shape().contains(&0) {
        true => Ok(x),
        false => Err(Fault::invalid(format!("{} is no batch of pictures", x.shape()))),
    }
}

/// A picture at `[N, height, width, 2]` coordinates.
fn at_coordinates(n: &Node<'_>, x: &Array, coordinates: &Array) -> Outcome {
    let wide = ops::astype(coordinates, DType::F32)?;
    let along = |at: usize| -> Made {
        let one = crate::lowering::movement::part(&wide, 3, at, at + 1)?;
        in_pixels(n, &ops::squeeze(&one, 3)?, x.shape()[3 - at])
    };
    let (beyond, twice, fill) = around(n)?;
    let edge = if twice { 0.5 } else { 0.0 };
    let range = |size: usize| (-edge, size as f64 - 1.0 + edge);
    one(at_places(x, [along(0)?, along(1)?], sampling(n)?, beyond, range, fill)?)
}

fn resample(n: &Node<'_>) -> Outcome {
    let (x, coordinates) = (picture(n)?, n.x("coordinates")?);
    match coordinates.shape()[..] {
        [batch, _, _, 2] if batch == x.shape()[0] => at_coordinates(n, x, coordinates),
        _ => Err(Fault::invalid(format!("{} sampled at {}", x.shape(), coordinates.shape()))),
    }
}

/// Coordinates that are an affine function of those of the output.
fn affine(n: &Node<'_>) -> Outcome {
    let (x, matrix) = (picture(n)?, n.x("transform_matrix")?);
    let (height, width) = (n.count("output_height")?, n.count("output_width")?);
    let batch = x.shape()[0];
    let unit = n.text("coordinates_mode", "")?.eq_ignore_ascii_case("normalized_minus_one_to_one");
    if !unit || !n.flag("align_corners", true)? {
        return Err(Fault::unsupported("other coordinates than those from -1 to 1 of the corners"));
    }
    if matrix.rank() != 2 || matrix.shape()[1] != 6 || ![1, batch].contains(&matrix.shape()[0]) {
        return Err(Fault::invalid(format!("{} for {}", matrix.shape(), x.shape())));
    }
    Shape::from([batch, height, width, 2]).checked_size("affine", DType::F32)?;
    let line = |size: usize| -> Made {
        let from = if size == 1 { 0.0 } else { -1.0 };
        Ok(ops::linspace(from, -from, size, DType::F32)?)
    };
    let across = ops::broadcast_to(&line(width)?, [height, width])?;
    let down = ops::broadcast_to(&ops::expand_dims(&line(height)?, 1)?, [height, width])?;
    let ones = ops::ones([height, width], DType::F32)?;
    let grid = ops::reshape(&ops::stack(&[&across, &down, &ones], -1)?, [height * width, 3])?;
    let matrix = ops::reshape(&ops::astype(matrix, DType::F32)?, [matrix.shape()[0], 2, 3])?;
    let places = ops::matmul(&grid, &ops::swapaxes(&matrix, 1, 2)?)?;
    let places = ops::broadcast_to(&places, [batch, height * width, 2])?;
    at_coordinates(n, x, &ops::reshape(&places, [batch, height, width, 2])?)
}

/// The places along an axis of boxes from `start` to `end`, each `[boxes, 1]`: `[boxes, count]`.
fn box_places(mode: &str, start: &Array, end: &Array, count: usize) -> Made {
    let m = count as f64;
    // A box holds the pixels from its start to its end.
    let span = ops::subtract(end, start)?;
    let held = ops::add(&span, 1.0)?;
    let at = ops::arange_in(0, count, 1, DType::F32)?;
    let steps = (m - 1.0).max(1.0);
    let scaled = |x: &Array, by: f64| -> Made { Ok(ops::multiply(x, by)?) };
    let (first, step) = match mode {
        "ALIGN_CORNERS" if count == 1 => (scaled(&span, 0.5)?, ops::zeros_like(&span)?),
        "ALIGN_CORNERS" | "STRICT_ALIGN_CORNERS" => {
            (ops::zeros_like(&span)?, scaled(&span, 1.0 / steps)?)
        }
        "DEFAULT" => {
            (ops::zeros_like(&span)?, scaled(&scaled(&held, 1.0 - 1.0 / m)?, 1.0 / steps)?)
        }
        "OFFSET_CORNERS" => {
            let delta = scaled(&ops::maximum(&span, 1.0)?, 1.0 / m)?;
            (scaled(&delta, 0.5)?, delta)
        }
        "UNALIGN_CORNERS" => {
            let step = scaled(&held, 1.0 / m)?;
            (ops::subtract(&scaled(&step, 0.5)?, 0.5)?, step)
        }
        other => return Err(Fault::invalid(format!("the sampling_mode '{other}' is not known"))),
    };
    let places = ops::add(&ops::add(start, &first)?, &ops::multiply(&at, &step)?)?;
    if mode == "ALIGN_CORNERS" || mode == "STRICT_ALIGN_CORNERS" {
        return Ok(places);
    }
    // These stay within the box.
    Ok(ops::minimum(&ops::maximum(&places, start)?, &ops::maximum(start, end)?)?)
}

fn crop_resize(n: &Node<'_>) -> Outcome {
    let x = picture(n)?;
    let size = |name: &str| numbers::count(n.int_or(name, 1)?);
    let (height, width) = (size("target_height")?, size("target_width")?);
    let batch = x.shape()[0];
    // Boxes of older programs come as a picture each, with its number before them or one for all pictures.
    let (boxes, numbers, old) = match n.maybe("roi")? {
        Some(roi) => {
            let [count, 1, width @ (4 | 5), 1, 1] = roi.shape()[..] else {
                return Err(Fault::invalid(format!("{} are no boxes", roi.shape())));
            };
            let rows = ops::astype(&ops::reshape(roi, [count, width])?, DType::F32)?;
            let part = crate::lowering::movement::part;
            match width {
                5 => (
                    part(&rows, 1, 1, 5)?,
                    Some(ops::flatten(&part(&rows, 1, 0, 1)?, 0, -1)?),
                    true,
                ),
                _ => (rows, None, true),
            }
        }
        None => {
            let boxes = n.x("boxes")?;
            if boxes.rank() != 2 || boxes.shape()[1] != 4 {
                return Err(Fault::invalid(format!("{} are no boxes", boxes.shape())));
            }
            let numbers = match n.maybe("box_indices")? {
                Some(numbers) => numbers.clone(),
                None => ops::arange_in(0, boxes.shape()[0], 1, DType::I64)?,
            };
            (ops::astype(boxes, DType::F32)?, Some(numbers), false)
        }
    };
    let count = boxes.shape()[0];
    let (h, w) = (x.shape()[2], x.shape()[3]);
    let column = |at: usize| crate::lowering::movement::part(&boxes, 1, at, at + 1);
    let mode = n.text("box_coordinate_mode", "CORNERS_HEIGHT_FIRST")?;
    let (first, second) = match mode {
        "CORNERS_HEIGHT_FIRST" | "CENTER_SIZE_HEIGHT_FIRST" => (0, 1),
        "CORNERS_WIDTH_FIRST" | "CENTER_SIZE_WIDTH_FIRST" => (1, 0),
        other => return Err(Fault::invalid(format!("the box_coordinate_mode '{other}'"))),
    };
    let scale = n.float_or("spatial_scale", 1.0)?;
    let unit = n.flag("normalized_coordinates", false)?;
    let ends = |at: usize, size: usize| -> Result<(Array, Array), Fault> {
        let (a, b) = (column(at)?, column(at + 2)?);
        let (a, b) = match mode.starts_with("CENTER") {
            true => {
                let half = ops::multiply(&b, 0.5)?;
                (ops::subtract(&a, &half)?, ops::add(&a, &half)?)
            }
            false => (a, b),
        };
        let by = if unit { scale * (size as f64 - 1.0) } else { scale };
        Ok((ops::multiply(&a, by)?, ops::multiply(&b, by)?))
    };
    let sampling = n.text("sampling_mode", "DEFAULT")?;
    let ((top, bottom), (left, right)) = (ends(first, h)?, ends(second, w)?);
    let rows = box_places(sampling, &top, &bottom, height)?;
    let columns = box_places(sampling, &left, &right, width)?;
    let shape = [count, height, width];
    let rows = ops::broadcast_to(&ops::expand_dims(&rows, 2)?, shape)?;
    let columns = ops::broadcast_to(&ops::expand_dims(&columns, 1)?, shape)?;
    let fill = n.float_or("pad_value", 0.0)?;
    let range = |size: usize| (0.0, size as f64 - 1.0);
    // What lies in the picture; beyond it there is nothing to take a part of.
    let within = |places: &Array, size: usize| -> Made {
        let least = ops::greater_equal(places, 0)?;
        Ok(ops::logical_and(&least, &ops::less_equal(places, size as f64 - 1.0)?)?)
    };
    let inside =
        ops::expand_dims(&ops::logical_and(&within(&rows, h)?, &within(&columns, w)?)?, 1)?;
    let cropped = |pictures: &Array| -> Made {
        let places = [columns.clone(), rows.clone()];
        let y = at_places(pictures, places, "linear", Beyond::Border, range, 0.0)?;
        Ok(ops::where_(&inside, &y, fill)?)
    };
    let channels = x.shape()[1];
    match numbers {
        Some(numbers) => {
            let y = cropped(&ops::take(x, &ops::astype(&numbers, DType::I64)?, 0)?)?;
            one(match old {
                true => ops::reshape(&y, [count, 1, channels, height, width])?,
                false => y,
            })
        }
        None => {
            let mut all = Vec::with_capacity(batch);
            for at in 0..batch {
                let one = crate::lowering::movement::part(x, 0, at, at + 1)?;
                all.push(cropped(&ops::broadcast_to(&one, [count, channels, h, w])?)?);
            }
            one(ops::stack(&all.iter().collect::<Vec<_>>(), 1)?)
        }
    }
}

pub const OPS: &[Entry] = &[
    ("affine", affine),
    ("crop_resize", crop_resize),
    ("resample", resample),
    ("resize", resize),
    ("resize_bilinear", resize_bilinear),
    ("resize_nearest_neighbor", resize_nearest),
    ("upsample_bilinear", upsample_bilinear),
    ("upsample_nearest_neighbor", upsample_nearest),
];
