//! Runs kernels for the tests: one thread, with buffers of `f32`.

use std::collections::HashMap;

use super::{Bin, Cmp, Expr, Kernel, Reg, Stmt, Ty, Un};

/// How a device uses the freedoms that kernels leave it.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Device {
    /// `Fma`, and any sum with a product, is rounded once.
    pub fused: bool,
    /// Subnormals are lost.
    pub flush: bool,
    /// Quotients and roots are off by two units in the last place, and comparisons with NaN give
    /// what their opposites should.
    pub loose: bool,
}

/// Runs `kernel` in a grid of one thread.
pub(super) fn run(kernel: &Kernel, buffers: &mut [Vec<f32>], device: Device) {
    assert!(kernel.block == 1 && kernel.args == 0 && kernel.sizes == 0 && kernel.shared.is_empty());
    let mut factors = HashMap::new();
    let mut slots = 0;
    survey(&kernel.body, &mut factors, &mut slots);
    let mut products = vec![None; slots];
    if device.fused {
        factors.iter().for_each(|(id, pair)| products[*id as usize] = Some(*pair));
    }
    let mut thread = Thread { slots: vec![0; slots], products, buffers, device };
    thread.list(&kernel.body);
}

/// Finds the products of floats, and how many values and variables there are.
fn survey(list: &[Stmt], factors: &mut HashMap<u32, (u32, u32)>, slots: &mut usize) {
    for stmt in list {
        let id = match stmt {
            Stmt::Let(val, expr) => {
                if let (Ty::F32, Expr::Bin(Bin::Mul, a, b)) = (val.ty, expr) {
                    factors.insert(val.id, (a.id, b.id));
                }
                val.id
            }
            Stmt::Var(var, _) => var.id,
            Stmt::For(counter, _, body) => {
                survey(body, factors, slots);
                counter.id
            }
            Stmt::If(_, then, other) | Stmt::While(then, _, other) => {
                survey(then, factors, slots);
                survey(other, factors, slots);
                0
            }
            Stmt::Set(..)
            | Stmt::Break
            | Stmt::Continue
            | Stmt::Return
            | Stmt::Text(_)
            | Stmt::StoreLocal(..)
            | Stmt::Store(..)
            | Stmt::Swap(..)
            | Stmt::Post(..)
            | Stmt::StoreShared(..)
            | Stmt::AddShared(..)
            | Stmt::Barrier
            | Stmt::LoadVector(..)
            | Stmt::StoreVector(..)
            | Stmt::LoadSharedVector(..)
            | Stmt::StoreSharedVector(..)
            | Stmt::Copy(..)
            | Stmt::EndCopies
            | Stmt::AwaitCopies(_)
            | Stmt::Matrix(..)
            | Stmt::LoadMatrices(..)
            | Stmt::Wide(..)
            | Stmt::AwaitWide(_)
            | Stmt::FenceWide => 0,
        };
        *slots = (*slots).max(id as usize + 1);
    }
}

struct Thread<'a> {
    /// The bits of every value and variable.
    slots: Vec<u64>,
    /// The factors of values that are products.
    products: Vec<Option<(u32, u32)>>,
    buffers: &'a mut [Vec<f32>],
    device: Device,
}

impl Thread<'_> {
    fn bits(&self, v: Reg) -> u64 {
        self.slots[v.id as usize]
    }

    fn float(&self, v: Reg) -> f32 {
        self.float_at(v.id)
    }

    fn float_at(&self, id: u32) -> f32 {
        self.flushed(f32::from_bits(self.slots[id as usize] as u32))
    }

    fn flushed(&self, v: f32) -> f32 {
        if self.device.flush && v.is_subnormal() { 0f32.copysign(v) } else { v }
    }

    fn list(&mut self, list: &[Stmt]) {
        list.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(val, expr) => self.slots[val.id as usize] = self.expr(val.ty, expr),
            Stmt::Var(var, val) | Stmt::Set(var, val) => {
                self.slots[var.id as usize] = self.bits(*val);
            }
            Stmt::If(condition, then, other) => {
                self.list(if self.bits(*condition) != 0 { then } else { other });
            }
            Stmt::For(counter, [from, to, step], body) => {
                let mut at = self.bits(*from);
                while at < self.bits(*to) {
                    self.slots[counter.id as usize] = at;
                    self.list(body);
                    at += self.bits(*step);
                }
            }
            Stmt::While(head, condition, body) => loop {
                self.list(head);
                if self.bits(*condition) == 0 {
                    break;
                }
                self.list(body);
            },
            Stmt::Store(buf, index, val) => {
                let (index, v) = (self.bits(*index) as usize, self.bits(*val) as u32);
                self.buffers[buf.id as usize][index] = f32::from_bits(v);
            }
            Stmt::LoadVector(..) | Stmt::StoreVector(..) => {
                unreachable!("the tests' target has no vectors")
            }
            Stmt::Break | Stmt::Continue | Stmt::Return | Stmt::Text(_) | Stmt::StoreLocal(..) => {
                unreachable!("functions have no such")
            }
            Stmt::StoreShared(..)
            | Stmt::Swap(..)
            | Stmt::Post(..)
            | Stmt::AddShared(..)
            | Stmt::LoadSharedVector(..)
            | Stmt::StoreSharedVector(..)
            | Stmt::Barrier
            | Stmt::Copy(..)
            | Stmt::EndCopies
            | Stmt::AwaitCopies(_)
            | Stmt::Matrix(..)
            | Stmt::LoadMatrices(..)
            | Stmt::Wide(..)
            | Stmt::AwaitWide(_)
            | Stmt::FenceWide => unreachable!("one thread shares nothing"),
        }
    }

    fn expr(&self, ty: Ty, expr: &Expr) -> u64 {
        match *expr {
            Expr::Lit(lit) => lit.bits,
            Expr::Un(op, x) => self.unary(op, x),
            Expr::Bin(op, a, b) if a.ty == Ty::F32 => self.float_binary(op, a, b),
            Expr::Bin(op, a, b) => self.integer_binary(op, a, b),
            Expr::Fma(a, b, c) => {
                let (a, b, c) = (self.float(a), self.float(b), self.float(c));
                let fused = self.device.fused;
                self.result(if fused { a.mul_add(b, c) } else { self.flushed(a * b) + c })
            }
            Expr::Cmp(op, a, b) => u64::from(self.compare(op, a, b)),
            Expr::Select(c, a, b) => self.bits(if self.bits(c) != 0 { a } else { b }),
            Expr::Convert(x) => self.convert(x, ty),
            Expr::Bits(x) => self.bits(x),
            Expr::Read(var) => self.slots[var.id as usize],
            Expr::Load(buf, index) => {
                u64::from(self.buffers[buf.id as usize][self.bits(index) as usize].to_bits())
            }
            Expr::Thread | Expr::Block | Expr::BlockY => 0,
            Expr::Blocks => 1,
            Expr::ShuffleXor(..) | Expr::Await(..) => {
                unreachable!("one thread has no neighbours")
            }
            Expr::Pair(..) | Expr::FmaPairs(..) => {
                unreachable!("the tests' target has no matrix units")
            }
            Expr::LoadLocal(..) | Expr::Atomic(..) => unreachable!("functions have no such"),
            Expr::LoadShared(..) | Expr::Arg(_) | Expr::Size(_) => {
                unreachable!("neither arguments nor sharing")
            }
        }
    }

    fn result(&self, v: f32) -> u64 {
        u64::from(self.flushed(v).to_bits())
    }

    /// A quotient or a root: off by two places either way.
    fn rough(&self, v: f32) -> u64 {
        let bits = v.to_bits();
        if !self.device.loose || !v.is_normal() || bits & 0x7fff_ffff > 0x7f7f_fff0 {
            return self.result(v);
        }
        let up = (bits.wrapping_mul(0x9e37_79b9) >> 31) != 0;
        self.result(f32::from_bits(if up { bits + 2 } else { bits - 2 }))
    }

    fn unary(&self, op: Un, x: Reg) -> u64 {
        let bits = self.bits(x);
        match (op, x.ty) {
            (Un::Not, Ty::Bool) => bits ^ 1,
            (Un::Not, _) => u64::from(!(bits as u32)),
            (Un::Neg, Ty::I32) => u64::from((bits as u32).wrapping_neg()),
            (Un::Neg, _) => u64::from(bits as u32 ^ 0x8000_0000),
            (Un::Opaque, _) => bits,
            (Un::Abs, _) => u64::from(bits as u32 & 0x7fff_ffff),
            (Un::Sqrt, _) => self.rough(self.float(x).sqrt()),
            (Un::Floor, _) => self.result(self.float(x).floor()),
            (Un::Ceil, _) => self.result(self.float(x).ceil()),
            (Un::Trunc, _) => self.result(self.float(x).trunc()),
            (Un::Round, _) => self.result(self.float(x).round_ties_even()),
            (
                Un::HalfToFloat
                | Un::FloatToHalf
                | Un::BfloatToFloat
                | Un::FloatToBfloat
                | Un::Tf32
                | Un::Ones
                | Un::Leading
                | Un::Reversed
                | Un::Exp2
                | Un::Math(_),
                _,
            ) => unreachable!("{op:?} is a device's own"),
        }
    }

    fn float_binary(&self, op: Bin, a: Reg, b: Reg) -> u64 {
        let (x, y) = (self.float(a), self.float(b));
        let product = |v: Reg| self.products[v.id as usize];
        let factors = |(a, b): (u32, u32)| (self.float_at(a), self.float_at(b));
        self.result(match op {
            Bin::Add | Bin::Sub => {
                let y = if op == Bin::Sub { -y } else { y };
                if let Some((p, q)) = product(b).map(factors) {
                    (if op == Bin::Sub { -p } else { p }).mul_add(q, x)
                } else if let Some((p, q)) = product(a).map(factors) {
                    p.mul_add(q, y)
                } else {
                    x + y
                }
            }
            Bin::Mul => x * y,
            Bin::Div => return self.rough(x / y),
            _ => unreachable!("{op:?} of floats is a device's own"),
        })
    }

    fn integer_binary(&self, op: Bin, a: Reg, b: Reg) -> u64 {
        if a.ty == Ty::U64 {
            let (x, y) = (self.bits(a), self.bits(b));
            return match op {
                Bin::Add => x.wrapping_add(y),
                Bin::Mul => x.wrapping_mul(y),
                _ => unreachable!("{op:?} of u64 is not needed yet"),
            };
        }
        let signed = a.ty == Ty::I32;
        let (x, y) = (self.bits(a) as u32, self.bits(b) as u32);
        let (i, j) = (x as i32, y as i32);
        if matches!(op, Bin::Shl | Bin::Shr) {
            assert!(y < 32, "a shift by {y}");
        }
        u64::from(match op {
            Bin::Add => x.wrapping_add(y),
            Bin::Sub => x.wrapping_sub(y),
            Bin::Mul => x.wrapping_mul(y),
            Bin::Div if signed => (i / j) as u32,
            Bin::Div => x / y,
            Bin::Rem if signed => (i % j) as u32,
            Bin::Rem => x % y,
            Bin::And => x & y,
            Bin::Or => x | y,
            Bin::Xor => x ^ y,
            Bin::Shl => x << y,
            Bin::Shr if signed => (i >> y) as u32,
            Bin::Shr => x >> y,
            Bin::Max if signed => i.max(j) as u32,
            Bin::Max => x.max(y),
            Bin::Min if signed => i.min(j) as u32,
            Bin::Min => x.min(y),
            Bin::MulHigh => ((u64::from(x) * u64::from(y)) >> 32) as u32,
            Bin::Pow | Bin::Atan2 => unreachable!("{op:?} is a device's own"),
        })
    }

    fn compare(&self, op: Cmp, a: Reg, b: Reg) -> bool {
        use std::cmp::Ordering;
        let order = match a.ty {
            Ty::F32 => self.float(a).partial_cmp(&self.float(b)),
            Ty::I32 => Some((self.bits(a) as i32).cmp(&(self.bits(b) as i32))),
            _ => Some(self.bits(a).cmp(&self.bits(b))),
        };
        let Some(order) = order else { return (op == Cmp::Ne) != self.device.loose };
        match op {
            Cmp::Eq => order == Ordering::Equal,
            Cmp::Ne => order != Ordering::Equal,
            Cmp::Lt => order == Ordering::Less,
            Cmp::Le => order != Ordering::Greater,
            Cmp::Gt => order == Ordering::Greater,
            Cmp::Ge => order != Ordering::Less,
        }
    }

    fn convert(&self, x: Reg, to: Ty) -> u64 {
        let bits = self.bits(x);
        match (x.ty, to) {
            (Ty::I32, Ty::F32) => self.result(bits as i32 as f32),
            (Ty::U32 | Ty::Bool, Ty::F32) => self.result(bits as f32),
            (Ty::F32, Ty::I32) => {
                let v = self.float(x);
                assert!(v.abs() < 2f32.powi(31), "{v} as i32");
                u64::from(v as i32 as u32)
            }
            (Ty::F32, Ty::U32) => {
                let v = self.float(x);
                assert!(v > -1.0 && v < 2f32.powi(32), "{v} as u32");
                u64::from(v as u32)
            }
            (Ty::I32, Ty::U64) => bits as i32 as u64,
            (_, Ty::Bool) => u64::from(bits != 0),
            (_, Ty::U64) => bits,
            (Ty::Bool | Ty::I32 | Ty::U32 | Ty::U64, Ty::I32 | Ty::U32) => u64::from(bits as u32),
            _ => unreachable!("{:?} as {to:?}", x.ty),
        }
    }
}
