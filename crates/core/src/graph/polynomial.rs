//! Numbers that follow from sizes with names: whole polynomials of the second degree.
//!
//! What a function records for several bindings of the names is compared, number by number. A polynomial is known from
//! some of the bindings, and tried on others.

/// So many names sizes may have: the traces grow with their square.
pub const MOST_NAMES: usize = 6;

/// What the names are bound to at first: numbers that nothing else is likely to be, and no multiples of each other.
const FIRST: [i128; MOST_NAMES] = [101, 113, 127, 139, 151, 163];

/// The bindings of so many names from which a polynomial of the second degree is known, and two that it is tried on.
pub fn points(names: usize) -> Vec<Vec<i128>> {
    let first = FIRST[..names].to_vec();
    let mut points = vec![first.clone()];
    let mut beside = |steps: &[(usize, i128)]| {
        let mut point = first.clone();
        steps.iter().for_each(|&(name, step)| point[name] += step);
        points.push(point);
    };
    (0..names).for_each(|name| beside(&[(name, 1)]));
    (0..names).for_each(|name| beside(&[(name, 2)]));
    for a in 0..names {
        (a + 1..names).for_each(|b| beside(&[(a, 1), (b, 1)]));
    }
    if names > 0 {
        // The second in another order of size.
        let far = |by: i128, more: i128| {
            (0..names).map(|n| (n, by + more * n as i128)).collect::<Vec<_>>()
        };
        beside(&far(18, 7));
        beside(&far(120, -23));
    }
    points
}

/// Whole numbers times products of named sizes, by their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Polynomial(pub Vec<(i128, Vec<usize>)>);

impl Polynomial {
    /// The one that has these values at [`points`], all whole; `None` where there is none.
    pub fn of(values: &[i128], points: &[Vec<i128>]) -> Option<Polynomial> {
        let names = points.first()?.len();
        let (first, at) = (&points[0], values[0]);
        let (one, two) = (&values[1..=names], &values[1 + names..=2 * names]);
        let mut both = values[1 + 2 * names..].iter();
        let mut terms: Vec<(i128, Vec<usize>)> = Vec::new();
        let mut slopes: Vec<i128> = one.iter().map(|value| value - at).collect();
        for a in 0..names {
            let bend = two[a] - 2 * one[a] + at;
            if bend % 2 != 0 {
                return None;
            }
            terms.push((bend / 2, vec![a, a]));
            slopes[a] -= bend / 2 * (2 * first[a] + 1);
        }
        for a in 0..names {
            for b in a + 1..names {
                let twist = both.next()? - one[a] - one[b] + at;
                terms.push((twist, vec![a, b]));
                slopes[a] -= twist * first[b];
                slopes[b] -= twist * first[a];
            }
        }
        terms.extend(slopes.into_iter().enumerate().map(|(name, slope)| (slope, vec![name])));
        terms.retain(|(factor, _)| *factor != 0);
        let rest = at - Polynomial(terms.clone()).at(first)?;
        terms.extend(Some((rest, Vec::new())).filter(|(rest, _)| *rest != 0));
        let found = Polynomial(terms);
        let is_right = |(point, value): (&Vec<i128>, &i128)| found.at(point) == Some(*value);
        points.iter().zip(values).all(is_right).then_some(found)
    }

    /// Its value at `point`; `None` where that is no number of 128 bits, or `point` has too few names.
    pub fn at(&self, point: &[i128]) -> Option<i128> {
        let term = |(factor, names): &(i128, Vec<usize>)| {
            names.iter().try_fold(*factor, |product, &name| product.checked_mul(*point.get(name)?))
        };
        self.0.iter().try_fold(0i128, |sum, part| sum.checked_add(term(part)?))
    }

    /// The name that it is.
    pub fn name(&self) -> Option<usize> {
        match &self.0[..] {
            [(1, names)] if names.len() == 1 => Some(names[0]),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(names: usize, f: impl Fn(&[i128]) -> i128) -> Option<Polynomial> {
        let points = points(names);
        let values: Vec<i128> = points.iter().map(|point| f(point)).collect();
        Polynomial::of(&values, &points)
    }

    #[test]
    fn polynomials_are_found_and_nothing_else() {
        let found = fitted(2, |n| 3 * n[0] * n[1] - 2 * n[0] * n[0] + n[1] - 7).unwrap();
        assert_eq!(found.at(&[5, 11]), Some(165 - 50 + 11 - 7));
        assert_eq!(fitted(3, |n| n[2]).unwrap().name(), Some(2));
        assert_eq!(fitted(1, |_| 12).unwrap().at(&[3]), Some(12));
        assert_eq!(fitted(1, |n| (n[0] + 1) / 2), None);
        assert_eq!(fitted(2, |n| n[0].max(n[1])), None);
        assert_eq!(fitted(1, |n| n[0].pow(3)), None);
    }
}
