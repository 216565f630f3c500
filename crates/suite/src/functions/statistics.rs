//! Functions that fold elements.

use cupola_core::{Array, DType, ops};

use super::{Function, any, reals};
use crate::sample::{Input, fixed, from, input, numbers, spread};

/// Numbers with NaN among them.
fn gaps() -> Input {
    from([3, 5], |i| if i % 4 == 2 { f64::NAN } else { spread(i) })
}

pub(super) fn functions() -> Vec<Function> {
    let one = || [input([3, 5])];
    let mut all = vec![
        Function::new("mean", one(), |x| ops::mean(&x[0], 1, false)).smooth(),
        Function::new("var", one(), |x| ops::var(&x[0], 0, false, 1)).smooth(),
        Function::new("std", one(), |x| ops::std(&x[0], 1, true, 0)).smooth(),
        Function::several("minmax", one(), |x| {
            let (least, largest) = ops::minmax(&x[0], 1, false)?;
            Ok(vec![least, largest])
        })
        .smooth(),
        Function::new(
            "count_nonzero",
            [from([3, 5], |i| if i % 4 == 1 { 0.0 } else { spread(i) })],
            |x| ops::count_nonzero(&x[0], 1, false),
        )
        .takes(any),
        Function::new("median", one(), |x| ops::median(&x[0], 1, false)).smooth(),
        Function::new("nansum", [gaps()], |x| ops::nansum(&x[0], 1, false)),
        Function::new("nanmean", [gaps()], |x| ops::nanmean(&x[0], 1, false)),
        Function::new("nanmax", [gaps()], |x| ops::nanmax(&x[0], 1, false)),
        Function::new("nanmin", [gaps()], |x| ops::nanmin(&x[0], 1, false)),
        Function::new("nanmedian", [gaps()], |x| ops::nanmedian(&x[0], 1, false)),
        Function::new("nanquantile", [gaps()], |x| {
            ops::nanquantile(&x[0], &[0.3], 1, false, ops::Between::Linear)
        }),
        Function::new("softmax", one(), |x| ops::softmax(&x[0], 1)).smooth(),
        Function::new("softmin", one(), |x| ops::softmin(&x[0], 1)).smooth(),
        Function::new("log_softmax", one(), |x| ops::log_softmax(&x[0], 0)).smooth(),
        Function::new("logsumexp", one(), |x| ops::logsumexp(&x[0], 1, false)).smooth(),
        Function::new(
            "cross_entropy",
            [input([3, 5]), fixed([3], DType::I32, |i| (2 * i) as f64)],
            |x| ops::cross_entropy(&x[0], &x[1]),
        )
        .smooth(),
        Function::new("cov", one(), |x| ops::cov(&x[0], 1.0, None, None)).smooth(),
        Function::new("corrcoef", one(), |x| ops::corrcoef(&x[0])).smooth(),
        Function::several("histogram", [input([17])], |x| {
            let bins = ops::Bins::Count(4, Some((-3.0, 3.0)));
            let (counts, edges) = ops::histogram(&x[0], bins, None, false)?;
            Ok(vec![counts, edges])
        }),
        Function::new("trapezoid", one(), |x| ops::trapezoid(&x[0], None, 0.5, 1)).smooth(),
        Function::new("polyval", [input([4]), from([3, 2], |i| spread(i) / 2.0)], |x| {
            ops::polyval(&x[0], &x[1])
        })
        .smooth(),
        Function::new(
            "interp",
            [input([3, 5]), numbers([4], &[-2.2, -0.1, 1.3, 2.1]), input([4])],
            |x| ops::interp(&x[0], &x[1], &x[2], ops::Outside::default()),
        )
        .smooth(),
        Function::new("diff", [input([3, 6])], |x| ops::diff(&x[0], 2, 1, None, Some(&x[0])))
            .smooth(),
        Function::new("all of a comparison", one(), |x| {
            ops::all(&ops::greater(&x[0], -2)?, 1, false)
        })
        .takes(reals),
    ];
    let methods = [
        ("", ops::Between::Linear),
        ("lower", ops::Between::Lower),
        ("higher", ops::Between::Higher),
        ("midpoint", ops::Between::Midpoint),
        ("nearest", ops::Between::Nearest),
    ];
    all.extend(methods.map(|(case, method)| {
        let body = move |x: &[Array]| ops::quantile(&x[0], &[0.3, 0.8], 1, false, method);
        Function::new("quantile", one(), body).case(case).smooth()
    }));
    let powers = [("p = 1", 1.0), ("p = 2", 2.0), ("p = 3", 3.0), ("p = ∞", f64::INFINITY)];
    all.extend(powers.map(|(case, p)| {
        let body = move |x: &[Array]| ops::cdist(&x[0], &x[1], p);
        let pair = [input([3, 4]), from([2, 4], |i| spread(i + 19))];
        Function::new("cdist", pair, body).case(case).takes(DType::is_inexact).smooth()
    }));
    all
}
