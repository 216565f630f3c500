//! Writing a kernel.

use std::collections::HashMap;

use cupola_core::DType;

use super::{
    Access, Bin, Binding, Buf, Cmp, Expr, Kernel, Lit, Shared, Stmt, Target, Ty, Un, Val, Var, Wide,
};

/// A kernel that is being written.
///
/// Values are copied freely. Arithmetic on literals is done at once, so that address arithmetic
/// for a known layout leaves little text.
pub struct Build<'t> {
    /// What it is written for.
    pub target: &'t Target,
    kernel: Kernel,
    /// The lists of statements that are open, innermost last.
    open: Vec<Vec<Stmt>>,
    next: u32,
    /// Values that are known.
    known: HashMap<u32, Lit>,
}

macro_rules! binaries {
    ($($name:ident $op:ident $doc:literal;)*) => {
        $(#[doc = $doc]
        pub fn $name(&mut self, a: Val, b: Val) -> Val {
            self.bin(Bin::$op, a, b)
        })*
    };
}

macro_rules! compares {
    ($($name:ident $op:ident $doc:literal;)*) => {
        $(#[doc = $doc]
        pub fn $name(&mut self, a: Val, b: Val) -> Val {
            self.cmp(Cmp::$op, a, b)
        })*
    };
}

impl<'t> Build<'t> {
    /// An empty kernel with blocks of `block` threads.
    pub fn new(target: &'t Target, name: &str, block: u32) -> Self {
        let kernel = Kernel {
            name: name.to_owned(),
            block,
            at_once: 1,
            bindings: Vec::new(),
            args: 0,
            shared: Vec::new(),
            body: Vec::new(),
        };
        Build { target, kernel, open: vec![Vec::new()], next: 0, known: HashMap::new() }
    }

    /// The kernel.
    pub fn finish(mut self) -> Kernel {
        self.kernel.body = self.open.pop().unwrap_or_default();
        self.kernel
    }

    /// Asks that so many blocks have registers on a multiprocessor at once.
    pub fn at_once(&mut self, blocks: u32) {
        self.kernel.at_once = blocks;
    }

    /// Threads in a block.
    pub fn block_size(&self) -> u32 {
        self.kernel.block
    }

    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn push(&mut self, stmt: Stmt) {
        if let Some(list) = self.open.last_mut() {
            list.push(stmt);
        }
    }

    fn value(&mut self, ty: Ty, expr: Expr) -> Val {
        let val = Val { id: self.fresh(), ty };
        self.push(Stmt::Let(val, expr));
        val
    }

    /// The next buffer.
    pub fn buffer(&mut self, dtype: DType, access: Access) -> Buf {
        self.kernel.bindings.push(Binding { dtype, access, together: 0 });
        Buf(self.kernel.bindings.len() as u32 - 1)
    }

    /// Notes that a load or a store moves `count` neighbours.
    fn moves(&mut self, buf: Buf, count: u32) {
        let together = &mut self.kernel.bindings[buf.0 as usize].together;
        *together = if [0, count].contains(together) { count } else { 1 };
    }

    /// The dtype of a buffer's elements.
    pub fn dtype(&self, buf: Buf) -> DType {
        self.kernel.bindings[buf.0 as usize].dtype
    }

    /// The next word of the arguments.
    pub fn arg(&mut self) -> Val {
        self.kernel.args += 1;
        self.value(Ty::U32, Expr::Arg(self.kernel.args - 1))
    }

    /// An array that the block shares.
    pub fn shared(&mut self, ty: Ty, len: u32) -> Shared {
        let shared = Shared { id: self.kernel.shared.len() as u32, ty, len };
        self.kernel.shared.push(shared);
        shared
    }

    /// A literal, by its bits.
    pub fn lit(&mut self, bits: u64, ty: Ty) -> Val {
        let val = self.value(ty, Expr::Lit(Lit { bits, ty }));
        self.known.insert(val.id, Lit { bits, ty });
        val
    }

    /// A literal.
    pub fn bool(&mut self, v: bool) -> Val {
        self.lit(u64::from(v), Ty::Bool)
    }

    /// A literal.
    pub fn u32(&mut self, v: u32) -> Val {
        self.lit(u64::from(v), Ty::U32)
    }

    /// A literal.
    pub fn i32(&mut self, v: i32) -> Val {
        self.lit(u64::from(v as u32), Ty::I32)
    }

    /// A literal.
    pub fn f32(&mut self, v: f32) -> Val {
        self.lit(u64::from(v.to_bits()), Ty::F32)
    }

    /// A literal of any type, from a small integer.
    pub fn int(&mut self, v: i64, ty: Ty) -> Val {
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
    pub fn float(&mut self, v: f64, ty: Ty) -> Val {
        match ty {
            Ty::F64 => self.lit(v.to_bits(), ty),
            _ => self.f32(v as f32),
        }
    }

    /// A function of one value.
    pub fn un(&mut self, op: Un, x: Val) -> Val {
        let ty = match op {
            Un::HalfToFloat => Ty::F32,
            Un::FloatToHalf => Ty::U32,
            _ => x.ty,
        };
        self.value(ty, Expr::Un(op, x))
    }

    /// −x.
    pub fn neg(&mut self, x: Val) -> Val {
        self.un(Un::Neg, x)
    }

    /// The `f32` itself, hidden from reassociation.
    pub fn opaque(&mut self, x: Val) -> Val {
        self.un(Un::Opaque, x)
    }

    /// Not of a bool, or of every bit.
    pub fn not(&mut self, x: Val) -> Val {
        self.un(Un::Not, x)
    }

    /// |x| of a float.
    pub fn abs(&mut self, x: Val) -> Val {
        self.un(Un::Abs, x)
    }

    fn known(&self, v: Val) -> Option<Lit> {
        self.known.get(&v.id).copied()
    }

    /// A function of two values.
    pub fn bin(&mut self, op: Bin, a: Val, b: Val) -> Val {
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
        self.value(a.ty, Expr::Bin(op, a, b))
    }

    binaries! {
        add Add "a + b.";
        sub Sub "a − b.";
        mul Mul "a·b.";
        div Div "a/b; of integers b is not 0.";
        rem Rem "The remainder; b is not 0.";
        and And "Bits set in both.";
        or Or "Bits set in either.";
        xor Xor "Bits set in one.";
        shl Shl "a·2ᵇ.";
        shr Shr "a/2ᵇ.";
        max_int Max "The larger of two integers.";
        min_int Min "The smaller of two integers.";
    }

    /// A comparison.
    pub fn cmp(&mut self, op: Cmp, a: Val, b: Val) -> Val {
        self.value(Ty::Bool, Expr::Cmp(op, a, b))
    }

    compares! {
        eq Eq "a = b.";
        ne Ne "a ≠ b.";
        lt Lt "a < b.";
        le Le "a ≤ b.";
        gt Gt "a > b.";
        ge Ge "a ≥ b.";
    }

    /// a·b + c, rounded once where the device can.
    pub fn fma(&mut self, a: Val, b: Val, c: Val) -> Val {
        self.value(a.ty, Expr::Fma(a, b, c))
    }

    /// `a` where `condition`, else `b`.
    pub fn select(&mut self, condition: Val, a: Val, b: Val) -> Val {
        self.value(a.ty, Expr::Select(condition, a, b))
    }

    /// A number as another type: integers wrap; a float to an integer is in range.
    pub fn convert(&mut self, x: Val, ty: Ty) -> Val {
        if x.ty == ty {
            return x;
        }
        match (self.known(x), x.ty, ty) {
            (Some(lit), Ty::U32 | Ty::I32, Ty::U32 | Ty::I32) => self.lit(lit.bits, ty),
            (Some(lit), Ty::U32, Ty::I64 | Ty::U64) => self.lit(lit.bits, ty),
            _ => self.value(ty, Expr::Convert(x)),
        }
    }

    /// The same bits as another type of the same size.
    pub fn bits(&mut self, x: Val, ty: Ty) -> Val {
        if x.ty == ty { x } else { self.value(ty, Expr::Bits(x)) }
    }

    /// A variable with its first value.
    pub fn var(&mut self, first: Val) -> Var {
        let var = Var { id: self.fresh(), ty: first.ty };
        self.push(Stmt::Var(var, first));
        var
    }

    /// What a variable holds.
    pub fn get(&mut self, var: Var) -> Val {
        self.value(var.ty, Expr::Read(var))
    }

    /// Changes a variable.
    pub fn set(&mut self, var: Var, value: Val) {
        self.push(Stmt::Set(var, value));
    }

    fn block(&mut self, f: impl FnOnce(&mut Self)) -> Vec<Stmt> {
        self.open.push(Vec::new());
        f(self);
        self.open.pop().unwrap_or_default()
    }

    /// Runs `then` where `condition` holds.
    pub fn when(&mut self, condition: Val, then: impl FnOnce(&mut Self)) {
        let then = self.block(then);
        self.push(Stmt::If(condition, then, Vec::new()));
    }

    /// Counts from `from` to below `to` in steps of `step`.
    pub fn range(&mut self, from: Val, to: Val, step: Val, each: impl FnOnce(&mut Self, Val)) {
        let counter = Val { id: self.fresh(), ty: from.ty };
        let body = self.block(|b| each(b, counter));
        self.push(Stmt::For(counter, [from, to, step], body));
    }

    /// Begins a loop that [`Build::close_range`] ends: the counter.
    pub fn open_range(&mut self, from: Val) -> Val {
        self.open.push(Vec::new());
        Val { id: self.fresh(), ty: from.ty }
    }

    /// Ends a loop.
    pub fn close_range(&mut self, counter: Val, from: Val, to: Val, step: Val) {
        let body = self.open.pop().unwrap_or_default();
        self.push(Stmt::For(counter, [from, to, step], body));
    }

    /// Begins the statements before a loop's condition, which [`Build::middle_while`] ends.
    pub fn open_while(&mut self) {
        self.open.push(Vec::new());
    }

    /// Begins the body of such a loop.
    pub fn middle_while(&mut self) {
        self.open.push(Vec::new());
    }

    /// Ends a loop that runs while `condition`, made before its middle, holds.
    pub fn close_while(&mut self, condition: Val) {
        let body = self.open.pop().unwrap_or_default();
        let head = self.open.pop().unwrap_or_default();
        self.push(Stmt::While(head, condition, body));
    }

    /// Begins a list of statements that [`Build::close_when`] ends.
    pub fn open_when(&mut self) {
        self.open.push(Vec::new());
    }

    /// Ends a list of statements that run where `condition` holds.
    pub fn close_when(&mut self, condition: Val) {
        let then = self.open.pop().unwrap_or_default();
        self.push(Stmt::If(condition, then, Vec::new()));
    }

    /// Counts from 0 to below a known number.
    pub fn count(&mut self, to: u32, each: impl FnOnce(&mut Self, Val)) {
        let (zero, to, one) = (self.u32(0), self.u32(to), self.u32(1));
        self.range(zero, to, one, each);
    }

    /// Runs `each` while `condition` gives true.
    pub fn repeat(
        &mut self,
        condition: impl FnOnce(&mut Self) -> Val,
        each: impl FnOnce(&mut Self),
    ) {
        self.open.push(Vec::new());
        let holds = condition(self);
        let head = self.open.pop().unwrap_or_default();
        let body = self.block(each);
        self.push(Stmt::While(head, holds, body));
    }

    /// An element of a buffer, decoded into its register.
    pub fn load(&mut self, buf: Buf, index: Val) -> Val {
        self.moves(buf, 1);
        let ty = Ty::of(self.dtype(buf));
        self.value(ty, Expr::Load(buf, index))
    }

    /// Stores an element, encoded for its buffer.
    pub fn store(&mut self, buf: Buf, index: Val, value: Val) {
        self.moves(buf, 1);
        self.push(Stmt::Store(buf, index, value));
    }

    /// An element of a shared array.
    pub fn load_shared(&mut self, shared: Shared, index: Val) -> Val {
        self.value(shared.ty, Expr::LoadShared(shared, index))
    }

    /// Stores an element of a shared array.
    pub fn store_shared(&mut self, shared: Shared, index: Val, value: Val) {
        self.push(Stmt::StoreShared(shared, index, value));
    }

    /// Neighbouring elements of a buffer, as [`Stmt::LoadVector`] says.
    pub fn load_vector(&mut self, buf: Buf, index: Val, count: u32) -> Vec<Val> {
        if count == 1 {
            return vec![self.load(buf, index)];
        }
        self.moves(buf, count);
        let ty = Ty::of(self.dtype(buf));
        let into: Vec<Val> = (0..count).map(|_| Val { id: self.fresh(), ty }).collect();
        self.push(Stmt::LoadVector(into.clone(), buf, index));
        into
    }

    /// Stores neighbouring elements.
    pub fn store_vector(&mut self, buf: Buf, index: Val, values: Vec<Val>) {
        match values[..] {
            [value] => self.store(buf, index, value),
            _ => {
                self.moves(buf, values.len() as u32);
                self.push(Stmt::StoreVector(buf, index, values));
            }
        }
    }

    /// Neighbouring elements of a shared array.
    pub fn load_shared_vector(&mut self, shared: Shared, index: Val, count: u32) -> Vec<Val> {
        if count == 1 {
            return vec![self.load_shared(shared, index)];
        }
        let into: Vec<Val> = (0..count).map(|_| Val { id: self.fresh(), ty: shared.ty }).collect();
        self.push(Stmt::LoadSharedVector(into.clone(), shared, index));
        into
    }

    /// Stores neighbouring elements of a shared array.
    pub fn store_shared_vector(&mut self, shared: Shared, index: Val, values: &[Val]) {
        // 16 bytes are as much as goes at once.
        let most = 16 / shared.ty.size();
        for (i, values) in values.chunks(most).enumerate() {
            let away = self.u32((i * most) as u32);
            let index = self.add(index, away);
            match *values {
                [value] => self.store_shared(shared, index, value),
                _ => self.push(Stmt::StoreSharedVector(shared, index, values.to_vec())),
            }
        }
    }

    /// What the thread has whose number differs in the bit `distance`, as [`Expr::ShuffleXor`] says.
    pub fn shuffle_xor(&mut self, value: Val, distance: u32) -> Val {
        if value.ty != Ty::Bool {
            return self.value(value.ty, Expr::ShuffleXor(value, distance));
        }
        let word = self.convert(value, Ty::U32);
        let other = self.value(Ty::U32, Expr::ShuffleXor(word, distance));
        let zero = self.u32(0);
        self.ne(other, zero)
    }

    /// Whether threads this far apart can exchange values of `ty` by [`Build::shuffle_xor`].
    pub fn can_shuffle(&self, distance: u32, ty: Ty) -> bool {
        distance < self.target.subgroup && ty.size() == 4
    }

    /// Waits for the whole block. Every thread of it has to come here.
    pub fn barrier(&mut self) {
        self.push(Stmt::Barrier);
    }

    /// Copies 16 bytes meanwhile, as [`Stmt::Copy`] says.
    pub fn copy(&mut self, shared: Shared, to: Val, buf: Buf, from: Val) {
        self.push(Stmt::Copy(shared, to, buf, from));
    }

    /// Ends a batch of copies.
    pub fn end_copies(&mut self) {
        self.push(Stmt::EndCopies);
    }

    /// Waits for all copies but those of the last `batches`.
    pub fn await_copies(&mut self, batches: u32) {
        self.push(Stmt::AwaitCopies(batches));
    }

    /// Adds a product of matrices to `sums`, as [`Stmt::Matrix`] says.
    pub fn matrix(&mut self, sums: [Var; 4], a: Vec<Val>, b: Vec<Val>) {
        self.push(Stmt::Matrix(sums, a, b));
    }

    /// Starts products of wide matrices, as [`Stmt::Wide`] says; where the target has none they are
    /// made of others, and done at once.
    pub fn wide(&mut self, shared: Shared, columns: u32, products: Vec<Wide>) {
        if self.target.wide {
            return self.push(Stmt::Wide(shared, columns, products));
        }
        let (thread, lanes) = (self.thread(), self.u32(32));
        let lane = self.rem(thread, lanes);
        for product in products {
            let at = self.add(product.columns, lane);
            for (j, sums) in product.sums.chunks_exact(4).enumerate() {
                let own = [0, 1].map(|half| {
                    let away = self.u32(j as u32 * 32 + half * columns * 4);
                    let at = self.add(at, away);
                    self.load_shared(shared, at)
                });
                let sums = [sums[0], sums[1], sums[2], sums[3]];
                self.matrix(sums, product.rows.to_vec(), own.to_vec());
            }
        }
    }

    /// Waits for the products with these sums.
    pub fn await_wide(&mut self, sums: Vec<Var>) {
        if self.target.wide {
            self.push(Stmt::AwaitWide(sums));
        }
    }

    /// Lets them see what was stored, as [`Stmt::FenceWide`] says.
    pub fn fence_wide(&mut self) {
        if self.target.wide {
            self.push(Stmt::FenceWide);
        }
    }

    /// The number of the thread in its block.
    pub fn thread(&mut self) -> Val {
        self.value(Ty::U32, Expr::Thread)
    }

    /// The number of the block along the first axis of the grid.
    pub fn block_x(&mut self) -> Val {
        self.value(Ty::U32, Expr::Block)
    }

    /// The number of the block along the second axis of the grid.
    pub fn block_y(&mut self) -> Val {
        self.value(Ty::U32, Expr::BlockY)
    }

    /// How many blocks there are along the first axis.
    pub fn blocks(&mut self) -> Val {
        self.value(Ty::U32, Expr::Blocks)
    }
}
