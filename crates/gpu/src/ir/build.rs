//! Writing a kernel: literals, variables, conditions and loops.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::HashMap;

use cupola_core::DType;

use super::{
    Access, Bin, Binding, Buf, Cmp, Expr, Kernel, Lit, Local, Missing, Operand, Reg, Shared, Slot,
    Stmt, Target, Ty, Val, Var,
};

/// A kernel that is being written.
///
/// Statements are appended as values are computed; whoever writes holds a shared reference, so
/// that values can be copied freely and have operators. Arithmetic on literals is done at once:
/// address arithmetic for a known layout leaves little text. What the device has no code for is
/// noted, and [`Build::finish`] returns the first of it.
pub struct Build {
    /// What it is written for.
    pub target: Target,
    block: u32,
    state: RefCell<State>,
}

struct State {
    kernel: Kernel,
    /// The lists of statements that are open, innermost last.
    open: Vec<Vec<Stmt>>,
    next: u32,
    /// Registers that are known.
    known: HashMap<u32, Lit>,
    /// The words of the sizes.
    sizes: Vec<u32>,
    missing: Option<Missing>,
}

impl State {
    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn push(&mut self, stmt: Stmt) {
        // Nothing runs behind what leaves a list.
        let leaves = |stmt: &Stmt| matches!(stmt, Stmt::Break | Stmt::Continue | Stmt::Return);
        if let Some(list) = self.open.last_mut().filter(|list| !list.last().is_some_and(leaves)) {
            list.push(stmt);
        }
    }
}

impl Build {
    /// An empty kernel with blocks of `block` threads.
    pub fn new(target: &Target, name: &str, block: u32) -> Self {
        let kernel = Kernel {
            name: name.to_owned(),
            block,
            at_once: 1,
            bindings: Vec::new(),
            args: 0,
            sizes: 0,
            shared: Vec::new(),
            locals: Vec::new(),
            dynamic: 0,
            header: String::new(),
            body: Vec::new(),
        };
        let state = State {
            kernel,
            open: vec![Vec::new()],
            next: 0,
            known: HashMap::new(),
            sizes: Vec::new(),
            missing: None,
        };
        Build { target: target.clone(), block, state: RefCell::new(state) }
    }

    /// The kernel, or the first thing that the device has no code for.
    pub fn finish(self) -> Result<Kernel, Missing> {
        let mut state = self.state.into_inner();
        state.kernel.body = state.open.pop().unwrap_or_default();
        match state.missing {
            Some(missing) => Err(missing),
            None => Ok(state.kernel),
        }
    }

    /// Notes that the device has no code for something.
    pub fn fail(&self, missing: Missing) {
        self.state().missing.get_or_insert(missing);
    }

    /// Asks that so many blocks have registers on a multiprocessor at once.
    pub fn at_once(&self, blocks: u32) {
        self.state().kernel.at_once = blocks;
    }

    /// Threads in a block.
    pub fn block_size(&self) -> u32 {
        self.block
    }

    fn state(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }

    /// What is written so far.
    pub(super) fn kernel(&self) -> Ref<'_, Kernel> {
        Ref::map(self.state.borrow(), |state| &state.kernel)
    }

    /// A register of its own, which a statement has to give a value.
    pub(super) fn fresh(&self, ty: Ty) -> Val<'_> {
        Val { k: self, id: self.state().fresh(), ty }
    }

    pub(super) fn push(&self, stmt: Stmt) {
        self.state().push(stmt);
    }

    pub(super) fn value(&self, ty: Ty, expr: Expr) -> Val<'_> {
        let mut state = self.state();
        let id = state.fresh();
        state.push(Stmt::Let(Reg { id, ty }, expr));
        Val { k: self, id, ty }
    }

    /// The next buffer.
    pub fn buffer(&self, dtype: DType, access: Access) -> Buf {
        let bindings = &mut self.state().kernel.bindings;
        bindings.push(Binding { dtype, access, together: 0 });
        Buf { id: bindings.len() as u32 - 1, dtype }
    }

    /// Notes that a load or a store moves `count` neighbours.
    pub(super) fn moves(&self, buf: Buf, count: u32) {
        let together = &mut self.state().kernel.bindings[buf.id as usize].together;
        *together = if [0, count].contains(together) { count } else { 1 };
    }

    /// The next word of the arguments.
    pub fn arg(&self) -> Val<'_> {
        let index = self.kernel().args;
        self.state().kernel.args += 1;
        self.value(Ty::U32, Expr::Arg(index))
    }

    /// An array in shared memory.
    pub fn shared(&self, ty: Ty, len: u32) -> Shared {
        self.share(ty, len, false)
    }

    /// Counters in shared memory.
    pub fn counters(&self, len: u32) -> Shared {
        self.share(Ty::U32, len, true)
    }

    /// An array of each thread.
    pub fn local(&self, ty: Ty, len: u32) -> Local {
        let arrays = &mut self.state().kernel.locals;
        let local = Local { id: arrays.len() as u32, ty, len };
        arrays.push(local);
        local
    }

    fn share(&self, ty: Ty, len: u32, counts: bool) -> Shared {
        let arrays = &mut self.state().kernel.shared;
        let shared = Shared { id: arrays.len() as u32, ty, len, counts };
        arrays.push(shared);
        shared
    }

    /// A literal, by its bits.
    pub fn lit(&self, bits: u64, ty: Ty) -> Val<'_> {
        let val = self.value(ty, Expr::Lit(Lit { bits, ty }));
        self.state().known.insert(val.id, Lit { bits, ty });
        val
    }

    /// A literal.
    pub fn bool(&self, v: bool) -> Val<'_> {
        self.lit(u64::from(v), Ty::Bool)
    }

    /// A literal.
    pub fn u32(&self, v: u32) -> Val<'_> {
        self.lit(u64::from(v), Ty::U32)
    }

    /// A literal.
    pub fn i32(&self, v: i32) -> Val<'_> {
        self.lit(u64::from(v as u32), Ty::I32)
    }

    /// A literal.
    pub fn f32(&self, v: f32) -> Val<'_> {
        self.lit(u64::from(v.to_bits()), Ty::F32)
    }

    /// A literal of any type, from a small integer.
    pub fn int(&self, v: i64, ty: Ty) -> Val<'_> {
        let bits = match ty {
            Ty::Bool => u64::from(v != 0),
            Ty::I32 | Ty::U32 => u64::from(v as u32),
            Ty::I64 | Ty::U64 => v as u64,
            Ty::F32 => u64::from((v as f32).to_bits()),
            Ty::F64 => (v as f64).to_bits(),
        };
        self.lit(bits, ty)
    }

    /// A literal of a float type.
    pub fn float(&self, v: f64, ty: Ty) -> Val<'_> {
        match ty {
            Ty::F64 => self.lit(v.to_bits(), ty),
            _ => self.f32(v as f32),
        }
    }

    /// A number that follows from the sizes of a segment. Its value is no part of the kernel: a kernel
    /// runs for all sizes for which it is written alike.
    pub fn size(&self, v: i64, ty: Ty) -> Val<'_> {
        match ty {
            Ty::Bool | Ty::F32 | Ty::F64 => self.int(v, ty),
            Ty::U32 | Ty::I32 => self.size_word(v as u32).convert(ty),
            Ty::I64 | Ty::U64 => {
                let [low, high] = [v as u32, (v >> 32) as u32].map(|word| self.size_word(word));
                (low.convert(Ty::U64) | (high.convert(Ty::U64) << 32)).convert(ty)
            }
        }
    }

    /// Such a number by which indices are multiplied, as strides are. 0 and 1 are literals: what
    /// repeats or is dense is walked in other ways.
    pub fn step(&self, v: i64, ty: Ty) -> Val<'_> {
        if matches!(v, 0 | 1) { self.int(v, ty) } else { self.size(v, ty) }
    }

    /// A word behind the arguments.
    pub(super) fn size_word(&self, word: u32) -> Val<'_> {
        let index = {
            let mut state = self.state();
            state.sizes.push(word);
            state.kernel.sizes += 1;
            state.kernel.sizes - 1
        };
        self.value(Ty::U32, Expr::Size(index))
    }

    /// The words of the sizes so far.
    pub fn sizes(&self) -> Vec<u32> {
        self.state().sizes.clone()
    }

    pub(super) fn known(&self, v: Val<'_>) -> Option<Lit> {
        self.state.borrow().known.get(&v.id).copied()
    }

    pub(super) fn bin<'k>(&'k self, op: Bin, a: Val<'k>, b: Val<'k>) -> Val<'k> {
        let (x, y) = (self.known(a), self.known(b));
        if a.ty == Ty::U32 {
            let bits = |l: Option<Lit>| l.map(|l| l.bits as u32);
            match (op, bits(x), bits(y)) {
                (Bin::Add, Some(x), Some(y)) => return self.u32(x.wrapping_add(y)),
                (Bin::Mul, Some(x), Some(y)) => return self.u32(x.wrapping_mul(y)),
                (Bin::Sub, Some(x), Some(y)) => return self.u32(x.wrapping_sub(y)),
                (Bin::Div, Some(x), Some(y)) if y != 0 => return self.u32(x / y),
                (Bin::Rem, Some(x), Some(y)) if y != 0 => return self.u32(x % y),
                (Bin::Add | Bin::Sub | Bin::Shl | Bin::Shr | Bin::Or, _, Some(0)) => return a,
                (Bin::Add | Bin::Or, Some(0), _) => return b,
                (Bin::Mul | Bin::Div, _, Some(1)) => return a,
                (Bin::Mul, Some(1), _) => return b,
                (Bin::Mul, _, Some(0)) | (Bin::Rem, _, Some(1)) => return self.u32(0),
                (Bin::Mul, Some(0), _) => return self.u32(0),
                _ => {}
            }
        } else if a.ty == Ty::I64 {
            match (op, x.map(|l| l.bits), y.map(|l| l.bits)) {
                (Bin::Add, _, Some(0)) | (Bin::Mul, _, Some(1)) => return a,
                (Bin::Add, Some(0), _) => return b,
                (Bin::Mul, _, Some(0)) => return self.int(0, Ty::I64),
                _ => {}
            }
        }
        self.value(a.ty, Expr::Bin(op, a.reg(), b.reg()))
    }

    pub(super) fn compare<'k>(&'k self, op: Cmp, a: Val<'k>, b: Val<'k>) -> Val<'k> {
        self.value(Ty::Bool, Expr::Cmp(op, a.reg(), b.reg()))
    }

    pub(super) fn convert<'k>(&'k self, x: Val<'k>, ty: Ty) -> Val<'k> {
        if x.ty == ty {
            return x;
        }
        match (self.known(x), x.ty, ty) {
            (Some(lit), Ty::U32 | Ty::I32, Ty::U32 | Ty::I32) => self.lit(lit.bits, ty),
            (Some(lit), Ty::U32, Ty::I64 | Ty::U64) => self.lit(lit.bits, ty),
            _ => self.value(ty, Expr::Convert(x.reg())),
        }
    }

    /// A variable with its first value.
    pub fn var<'k>(&'k self, first: Val<'k>) -> Var<'k> {
        let slot = Slot { id: self.state().fresh(), ty: first.ty };
        self.push(Stmt::Var(slot, first.reg()));
        Var { k: self, slot }
    }

    /// The statements that `write` appends.
    fn block(&self, write: impl FnOnce()) -> Vec<Stmt> {
        self.state().open.push(Vec::new());
        write();
        self.state().open.pop().unwrap_or_default()
    }

    /// Runs `then` where `condition` holds.
    pub fn when(&self, condition: Val<'_>, then: impl FnOnce()) {
        let then = self.block(then);
        self.push(Stmt::If(condition.reg(), then, Vec::new()));
    }

    /// Runs `then` where `condition` holds, else `other`.
    pub fn either(&self, condition: Val<'_>, then: impl FnOnce(), other: impl FnOnce()) {
        let (then, other) = (self.block(then), self.block(other));
        self.push(Stmt::If(condition.reg(), then, other));
    }

    /// Leaves the innermost loop.
    pub fn leave(&self) {
        self.push(Stmt::Break);
    }

    /// Goes to the next round of the innermost loop.
    pub fn again(&self) {
        self.push(Stmt::Continue);
    }

    /// Leaves the kernel.
    pub fn quit(&self) {
        self.push(Stmt::Return);
    }

    /// Asks that a block shares so many bytes besides.
    pub fn dynamic(&self, bytes: u32) {
        self.state().kernel.dynamic = bytes;
    }

    /// Adds statements in the target's own language, with declarations before the kernel.
    pub fn text(&self, header: &str, text: String) {
        self.state().kernel.header.push_str(header);
        self.push(Stmt::Text(text));
    }

    /// Runs `then` where `condition` holds, everywhere if there is none.
    pub fn when_any(&self, condition: Option<Val<'_>>, then: impl FnOnce()) {
        match condition {
            Some(condition) => self.when(condition, then),
            None => then(),
        }
    }

    /// Counts from `from` to below `to` in steps of `step`.
    pub fn range<'k>(
        &'k self,
        from: Val<'k>,
        to: impl Operand<'k>,
        step: impl Operand<'k>,
        each: impl FnOnce(Val<'k>),
    ) {
        let (to, step) = (to.value(self, from.ty), step.value(self, from.ty));
        let counter = self.fresh(from.ty);
        let body = self.block(|| each(counter));
        self.push(Stmt::For(counter.reg(), [from.reg(), to.reg(), step.reg()], body));
    }

    /// Counts from 0 to below `to`.
    pub fn count<'k>(&'k self, to: Val<'k>, each: impl FnOnce(Val<'k>)) {
        self.range(self.int(0, to.ty), to, 1, each);
    }

    /// Runs `each` as long as `condition` gives true.
    pub fn repeat<'k>(&'k self, condition: impl FnOnce() -> Val<'k>, each: impl FnOnce()) {
        self.state().open.push(Vec::new());
        let holds = condition();
        let head = self.state().open.pop().unwrap_or_default();
        let body = self.block(each);
        self.push(Stmt::While(head, holds.reg(), body));
    }

    /// The number of the thread in its block.
    pub fn thread(&self) -> Val<'_> {
        self.value(Ty::U32, Expr::Thread)
    }

    /// The number of the block along the first axis of the grid.
    pub fn block_x(&self) -> Val<'_> {
        self.value(Ty::U32, Expr::Block)
    }

    /// The number of the block along the second axis of the grid.
    pub fn block_y(&self) -> Val<'_> {
        self.value(Ty::U32, Expr::BlockY)
    }

    /// How many blocks there are along the first axis.
    pub fn blocks(&self) -> Val<'_> {
        self.value(Ty::U32, Expr::Blocks)
    }
}
