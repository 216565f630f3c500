//! What an index is below, as far as its expression says: most indices need no check while the kernel runs.

use cupola_core::prim::call::language::{Binary, Builtin, Expr, Kind, Place, Ty};

use super::stmt::Writer;

impl Writer<'_, '_> {
    /// What a whole number that is not negative is below; none where it is not seen.
    pub fn below(&self, expr: &Expr) -> Option<u64> {
        let found = self.limit(expr)?;
        let most = match expr.ty {
            Ty::I32 => i32::MAX as u64,
            Ty::U32 => u32::MAX.into(),
            Ty::I64 | Ty::U64 => i64::MAX as u64,
            Ty::Bool => 2,
            Ty::F32 | Ty::F64 => return None,
        };
        (found <= most).then_some(found)
    }

    fn limit(&self, expr: &Expr) -> Option<u64> {
        let grid = self.grid;
        let literal = |expr: &Expr| match expr.kind {
            Kind::Literal(bits) => Some(bits),
            _ => None,
        };
        match &expr.kind {
            Kind::Literal(bits) => bits.checked_add(1),
            Kind::Builtin(builtin, axis) => Some(match builtin {
                Builtin::Thread => grid.threads[*axis].into(),
                Builtin::Local => grid.group[*axis].into(),
                Builtin::Group => grid.groups[*axis].into(),
                Builtin::GroupSize => u64::from(grid.group[*axis]) + 1,
                Builtin::Grid => u64::from(grid.threads[*axis]) + 1,
                Builtin::Groups => u64::from(grid.groups[*axis]) + 1,
                Builtin::Index => grid.group.iter().map(|&n| u64::from(n)).product(),
            }),
            Kind::Load(Place::Variable(number)) => self.limits[*number],
            Kind::Shape(array, axis) => {
                let axis = literal(axis)? as usize;
                self.places[*array].1.aval.shape.get(axis).map(|&size| size as u64 + 1)
            }
            Kind::Convert(_, x) if !x.ty.is_float() => self.below(x),
            Kind::Binary(op, a, b) => match op {
                Binary::Add => (self.below(a)? + self.below(b)?).checked_sub(1),
                Binary::Multiply => {
                    let most = |x| self.below(x)?.checked_sub(1);
                    most(a)?.checked_mul(most(b)?)?.checked_add(1)
                }
                Binary::Divide => {
                    let by = literal(b).filter(|&by| by > 0 && !b.ty.is_signed())?;
                    Some(self.below(a)?.div_ceil(by))
                }
                Binary::Remainder => {
                    self.below(a)?;
                    self.below(b)?.checked_sub(1).filter(|&by| by > 0)
                }
                Binary::Min => Some(self.below(a)?.min(self.below(b)?)),
                Binary::Max => Some(self.below(a)?.max(self.below(b)?)),
                _ => None,
            },
            _ => None,
        }
    }
}
