//! What networks are made of.

use cupola_core::{Array, Result, ops};
use ops::{Beyond, Interpolation, PoolOptions, Target, Windows};

use super::Function;
use crate::sample::{Input, from, input, spread};

fn weights(size: usize) -> Input {
    from([size], |i| 1.0 + spread(i + 3) / 4.0)
}

fn bias(size: usize) -> Input {
    from([size], |i| spread(i + 7) / 2.0)
}

pub(super) fn functions() -> Vec<Function> {
    let mut all = normalized();
    all.extend(convolutions());
    all.extend(windows());
    all.extend(resized());
    all.extend(sampled());
    all.into_iter().map(Function::smooth).collect()
}

fn normalized() -> Vec<Function> {
    vec![
        Function::new("layer_norm", [input([3, 8]), weights(8), bias(8)], |x| {
            ops::layer_norm(&x[0], Some(&x[1]), Some(&x[2]), 0.1)
        }),
        Function::new("rms_norm", [input([3, 8]), weights(8)], |x| {
            ops::rms_norm(&x[0], Some(&x[1]), 0.1)
        }),
        Function::new("group_norm", [input([2, 3, 6]), weights(6), bias(6)], |x| {
            ops::group_norm(&x[0], 3, Some(&x[1]), Some(&x[2]), 0.1)
        }),
        Function::new("normalize", [input([3, 5])], |x| ops::normalize(&x[0], 1, 1e-6)),
        Function::new("rope", [input([2, 3, 8])], |x| ops::rope(&x[0], &ops::RopeOptions::new(6))),
    ]
}

fn convolutions() -> Vec<Function> {
    let weights = |shape: &[usize]| from(shape, |i| spread(i + 5));
    vec![
        Function::new("conv1d", [input([2, 7, 4]), weights(&[6, 3, 2])], |x| {
            let options = ops::ConvOptions::new().stride([2]).padding([1]).groups(2);
            ops::conv1d(&x[0], &x[1], &options)
        }),
        Function::new("conv2d", [input([2, 5, 6, 3]), weights(&[2, 2, 3, 3])], |x| {
            let options = ops::ConvOptions::new().dilation([2, 1]).padding([1, 0]);
            ops::conv2d(&x[0], &x[1], &options)
        }),
        Function::new("conv3d", [input([1, 3, 4, 4, 2]), weights(&[3, 2, 2, 2, 2])], |x| {
            ops::conv3d(&x[0], &x[1], &ops::ConvOptions::new().stride([1, 2, 1]))
        }),
        Function::new("conv_transpose1d", [input([2, 4, 3]), weights(&[2, 3, 3])], |x| {
            ops::conv_transpose1d(&x[0], &x[1], &ops::ConvOptions::new().stride([2]))
        }),
        Function::new(
            "conv_transpose3d",
            [input([1, 2, 3, 2, 2]), weights(&[3, 2, 2, 2, 2])],
            |x| ops::conv_transpose3d(&x[0], &x[1], &ops::ConvOptions::new().stride([1, 2, 1])),
        ),
    ]
}

fn windows() -> Vec<Function> {
    let image = || [from([2, 5, 6, 2], |i| spread(i * i + i / 7))];
    vec![
        Function::new("avg_pool", image(), |x| {
            ops::avg_pool(&x[0], &PoolOptions::new([2, 3]).stride([2, 1]).padding([1, 1]))
        }),
        Function::new("adaptive_avg_pool", image(), |x| ops::adaptive_avg_pool(&x[0], &[3, 4])),
        Function::new("adaptive_max_pool", image(), |x| ops::adaptive_max_pool(&x[0], &[3, 4])),
        Function::several("max_pool_with_indices", image(), |x| {
            let (largest, places) = ops::max_pool_with_indices(&x[0], &PoolOptions::new([2, 2]))?;
            Ok(vec![largest, places])
        }),
        Function::new("max_unpool", image(), |x| {
            let (largest, places) = ops::max_pool_with_indices(&x[0], &PoolOptions::new([2, 2]))?;
            ops::max_unpool(&largest, &places, &[5, 6])
        }),
        Function::new("unfold", image(), |x| {
            ops::unfold(&x[0], &Windows::new([2, 3]).stride([2, 1]).padding([1, 0]))
        }),
        Function::new("fold", [input([2, 12, 12])], |x| {
            ops::fold(&x[0], &[4, 6], &Windows::new([2, 3]))
        }),
        Function::new(
            "conv_transpose2d",
            [input([2, 4, 5, 3]), from([2, 3, 2, 3], |i| spread(i + 5))],
            |x| {
                let options = ops::ConvOptions::new().stride([2, 1]).padding([1, 0]);
                ops::conv_transpose2d(&x[0], &x[1], &options)
            },
        ),
    ]
}

fn resized() -> Vec<Function> {
    let modes = [
        ("nearest", Interpolation::Nearest, false),
        ("nearest, exact", Interpolation::NearestExact, false),
        ("linear", Interpolation::Linear, false),
        ("linear, corners", Interpolation::Linear, true),
        ("cubic", Interpolation::Cubic, false),
        ("area", Interpolation::Area, false),
    ];
    let one = |(case, mode, corners)| {
        let body = move |x: &[Array]| -> Result<Array> {
            ops::interpolate(&x[0], &Target::Sizes(vec![7, 3]), mode, corners)
        };
        Function::new("interpolate", [input([2, 5, 4, 2])], body).case(case)
    };
    modes.into_iter().map(one).collect()
}

fn sampled() -> Vec<Function> {
    let modes = [
        ("nearest, zeros", Interpolation::Nearest, Beyond::Zeros),
        ("linear, zeros", Interpolation::Linear, Beyond::Zeros),
        ("linear, border", Interpolation::Linear, Beyond::Border),
        ("linear, reflection", Interpolation::Linear, Beyond::Reflection),
        ("cubic, border", Interpolation::Cubic, Beyond::Border),
    ];
    let one = |(case, mode, beyond)| {
        let body = move |x: &[Array]| -> Result<Array> {
            ops::grid_sample(&x[0], &x[1], mode, beyond, false)
        };
        let places = from([2, 3, 3, 2], |i| spread(i) / 2.3);
        Function::new("grid_sample", [input([2, 4, 5, 2]), places], body).case(case)
    };
    modes.into_iter().map(one).collect()
}
