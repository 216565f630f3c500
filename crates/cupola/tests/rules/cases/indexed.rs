//! Reading and writing at computed places, and what comes from nothing.

use super::*;

const MODES: [ScatterMode; 5] =
    [ScatterMode::Set, ScatterMode::Add, ScatterMode::Prod, ScatterMode::Max, ScatterMode::Min];

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    gathers(&mut cases);
    scatters(&mut cases);
    let keys = u32s(&[1, 2, 3, 4, 5, 6], &[3, 2]);
    for width in [1, 2, 4] {
        cases.push(Case::new(RandomBits { shape: Shape::from([5]), width }, &[&keys]));
    }
    cases
}

fn gathers(cases: &mut Vec<Case>) {
    let mut source = Source::new(21);
    let x = source.array(&[3, 4, 2], -1.0, 1.0);
    let rows = u32s(&[2, 0, 2, 1, 1, 0], &[2, 3]);
    let columns = u32s(&[0, 2, 1, 2, 0, 0], &[2, 3]);
    let gather = |axes: &[usize], sizes: &[usize]| Gather { axes: dims(axes), sizes: dims(sizes) };
    cases.push(Case::new(gather(&[0], &[1, 4, 2]), &[&x, &rows]));
    cases.push(Case::new(gather(&[1, 0], &[1, 2, 2]), &[&x, &columns, &rows]));
    cases.push(Case::new(gather(&[2], &[3, 1, 1]), &[&x, &u32s(&[1], &[])]));
    cases.push(Case::new(gather(&[], &[2, 4, 1]), &[&x]));
    let places = u32s(&[0, 3, 2, 2, 1, 0, 0, 0, 3, 1, 2, 3], &[3, 2, 2]);
    cases.push(Case::new(GatherAxis { axis: 1 }, &[&x, &places]));
}

fn scatters(cases: &mut Vec<Case>) {
    let mut source = Source::new(22);
    let mut x = source.array(&[3, 4], 0.5, 2.0);
    let mut updates = source.array(&[5, 1, 2], 0.5, 2.0);
    // Places repeat and overlap in part.
    let rows = u32s(&[0, 2, 0, 0, 1], &[5]);
    let columns = u32s(&[1, 2, 1, 2, 0], &[5]);
    let along = u32s(&[0, 3, 0, 2, 2, 2, 1, 3, 1], &[3, 3]);
    let mut updates_along = source.array(&[3, 3], 0.5, 2.0);
    for zeros in [false, true] {
        if zeros {
            // Products have zeros: none, one, two and three at a place.
            let mut numbers = crate::values::read(&x).expect("numbers");
            numbers[1] = 0.0;
            numbers[7] = 0.0;
            x = f64s(&numbers, &[3, 4]);
            let mut numbers = crate::values::read(&updates).expect("numbers");
            for place in [0, 2, 4, 9] {
                numbers[place] = 0.0;
            }
            updates = f64s(&numbers, &[5, 1, 2]);
            let mut numbers = crate::values::read(&updates_along).expect("numbers");
            numbers[3] = 0.0;
            numbers[4] = 0.0;
            numbers[8] = 0.0;
            updates_along = f64s(&numbers, &[3, 3]);
        }
        for mode in MODES {
            if zeros && mode != ScatterMode::Prod {
                continue;
            }
            let both = Scatter { mode, axes: dims(&[0, 1]) };
            cases.push(Case::new(both, &[&x, &updates, &rows, &columns]));
            cases.push(Case::new(ScatterAxis { mode, axis: 1 }, &[&x, &updates_along, &along]));
        }
    }
    let whole = source.array(&[2, 2, 3, 1], 0.5, 2.0);
    let places = u32s(&[1, 3, 3, 0], &[2, 2]);
    for mode in MODES {
        cases.push(Case::new(Scatter { mode, axes: dims(&[1]) }, &[&x, &whole, &places]));
    }
    let at_start = source.array(&[2, 3], 0.5, 2.0);
    cases.push(Case::new(Scatter { mode: ScatterMode::Set, axes: dims(&[]) }, &[&x, &at_start]));
}
