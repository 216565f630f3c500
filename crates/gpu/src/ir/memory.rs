//! Memory: buffers, shared arrays, exchange between threads, and products of matrices.

use super::{
    Atomic, Buf, Build, Expr, Factors, Local, Operand, Reg, Shared, Stmt, Ty, Val, Var, Wide,
};

impl Buf {
    /// An element, decoded into its register.
    pub fn load<'k>(self, index: Val<'k>) -> Val<'k> {
        index.k.moves(self, 1);
        index.k.value(Ty::of(self.dtype), Expr::Load(self, index.reg()))
    }

    /// Stores an element, encoded for its buffer.
    pub fn store<'k>(self, index: Val<'k>, value: Val<'k>) {
        index.k.moves(self, 1);
        index.k.push(Stmt::Store(self, index.reg(), value.reg()));
    }

    /// Changes an element while no other thread does: what was there before.
    pub fn atomic<'k>(self, op: Atomic, index: Val<'k>, value: Val<'k>) -> Val<'k> {
        index.k.moves(self, 1);
        index.k.value(value.ty, Expr::Atomic(op, self, index.reg(), value.reg()))
    }

    /// Changes an element that has the bits of `expected`, as [`Stmt::Swap`] says: what was there before.
    pub fn swap<'k>(self, index: Val<'k>, expected: Val<'k>, value: Val<'k>) -> Val<'k> {
        index.k.moves(self, 1);
        let bits = |v: Val<'k>| if v.ty == Ty::F32 { v.bits(Ty::U32) } else { v };
        let (expected, value) = (bits(expected), bits(value));
        let found = index.k.fresh(value.ty);
        let operands = [index, expected, value].map(Val::reg);
        index.k.push(Stmt::Swap(found.reg(), self, operands));
        found.bits(Ty::of(self.dtype))
    }

    /// Posts a word for those who wait for it, as [`Stmt::Post`] says.
    pub fn post<'k>(self, index: Val<'k>, word: Val<'k>) {
        index.k.moves(self, 1);
        index.k.push(Stmt::Post(self, index.reg(), word.reg()));
    }

    /// The word that is posted there, once it is.
    pub fn awaited<'k>(self, index: Val<'k>) -> Val<'k> {
        index.k.moves(self, 1);
        index.k.value(Ty::U32, Expr::Await(self, index.reg()))
    }

    /// Neighbouring elements, as [`Stmt::LoadVector`] says.
    pub fn load_vector<'k>(self, index: Val<'k>, count: u32) -> Vec<Val<'k>> {
        if count == 1 {
            return vec![self.load(index)];
        }
        index.k.moves(self, count);
        let into = registers(index.k, Ty::of(self.dtype), count);
        index.k.push(Stmt::LoadVector(regs(&into), self, index.reg()));
        into
    }

    /// Stores neighbouring elements.
    pub fn store_vector<'k>(self, index: Val<'k>, values: &[Val<'k>]) {
        match *values {
            [value] => self.store(index, value),
            _ => {
                index.k.moves(self, values.len() as u32);
                index.k.push(Stmt::StoreVector(self, index.reg(), regs(values)));
            }
        }
    }
}

impl Local {
    /// An element.
    pub fn load<'k>(self, index: Val<'k>) -> Val<'k> {
        index.k.value(self.ty, Expr::LoadLocal(self, index.reg()))
    }

    /// Stores an element.
    pub fn store<'k>(self, index: Val<'k>, value: Val<'k>) {
        index.k.push(Stmt::StoreLocal(self, index.reg(), value.reg()));
    }
}

impl Shared {
    /// An element.
    pub fn load<'k>(self, index: Val<'k>) -> Val<'k> {
        index.k.value(self.ty, Expr::LoadShared(self, index.reg()))
    }

    /// Stores an element.
    pub fn store<'k>(self, index: Val<'k>, value: impl Operand<'k>) {
        let value = value.value(index.k, self.ty);
        index.k.push(Stmt::StoreShared(self, index.reg(), value.reg()));
    }

    /// Adds to one of [`Build::counters`].
    pub fn add<'k>(self, index: Val<'k>, value: impl Operand<'k>) {
        let value = value.value(index.k, self.ty);
        index.k.push(Stmt::AddShared(self, index.reg(), value.reg()));
    }

    /// Neighbouring elements.
    pub fn load_vector<'k>(self, index: Val<'k>, count: u32) -> Vec<Val<'k>> {
        if count == 1 {
            return vec![self.load(index)];
        }
        let into = registers(index.k, self.ty, count);
        index.k.push(Stmt::LoadSharedVector(regs(&into), self, index.reg()));
        into
    }

    /// Parts of four matrices of halves, as [`Stmt::LoadMatrices`] says.
    pub fn load_matrices<'k>(self, index: Val<'k>, is_transposed: bool) -> [Val<'k>; 4] {
        let into = [0; 4].map(|_| index.k.fresh(Ty::U32));
        index.k.push(Stmt::LoadMatrices(into.map(Val::reg), self, index.reg(), is_transposed));
        into
    }

    /// Stores neighbouring elements.
    pub fn store_vector<'k>(self, index: Val<'k>, values: &[Val<'k>]) {
        // 16 bytes are as much as goes at once.
        let most = 16 / self.ty.size();
        for (i, values) in values.chunks(most).enumerate() {
            let index = index + i * most;
            match *values {
                [value] => self.store(index, value),
                _ => index.k.push(Stmt::StoreSharedVector(self, index.reg(), regs(values))),
            }
        }
    }
}

fn registers(k: &Build, ty: Ty, count: u32) -> Vec<Val<'_>> {
    (0..count).map(|_| k.fresh(ty)).collect()
}

fn regs(values: &[Val<'_>]) -> Vec<Reg> {
    values.iter().map(|v| v.reg()).collect()
}

impl<'k> Val<'k> {
    /// What the thread has whose number differs in the bit `distance`, as [`Expr::ShuffleXor`]
    /// says.
    pub fn shuffle_xor(self, distance: u32) -> Val<'k> {
        if self.ty != Ty::Bool {
            return self.k.value(self.ty, Expr::ShuffleXor(self.reg(), distance));
        }
        self.convert(Ty::U32).shuffle_xor(distance).ne(0)
    }

    /// It and `next` as a word of two halves, as [`Expr::Pair`] says.
    pub fn pair(self, next: Val<'k>, factors: Factors) -> Val<'k> {
        self.k.value(Ty::U32, Expr::Pair(factors, self.reg(), next.reg()))
    }

    /// This word's halves times those of `b`, and those of `c` added, as [`Expr::FmaPairs`] says.
    pub fn fma_pairs(self, b: Val<'k>, c: Val<'k>, factors: Factors) -> Val<'k> {
        self.k.value(Ty::U32, Expr::FmaPairs(factors, [self, b, c].map(Val::reg)))
    }
}

impl Wide {
    /// The product of a thread's elements `rows` and what lies from `columns` on, added to `sums`.
    pub fn new<'k>(
        sums: impl IntoIterator<Item = Var<'k>>,
        rows: [Val<'k>; 4],
        columns: Val<'k>,
    ) -> Wide {
        let sums = sums.into_iter().map(|sum| sum.slot).collect();
        Wide { sums, rows: rows.map(Val::reg), columns: columns.reg() }
    }
}

impl Build {
    /// Whether threads this far apart can exchange values of `ty` by [`Val::shuffle_xor`].
    pub fn can_shuffle(&self, distance: u32, ty: Ty) -> bool {
        distance < self.target.subgroup && ty.size() == 4
    }

    /// Waits for the whole block. Every thread of it has to come here.
    pub fn barrier(&self) {
        self.push(Stmt::Barrier);
    }

    /// Prefetches 16 bytes into shared memory, as [`Stmt::Copy`] says.
    pub fn copy<'k>(&'k self, shared: Shared, to: Val<'k>, buf: Buf, from: Val<'k>) {
        self.push(Stmt::Copy(shared, to.reg(), buf, from.reg()));
    }

    /// Ends a batch of copies.
    pub fn end_copies(&self) {
        self.push(Stmt::EndCopies);
    }

    /// Waits for all copies but those of the last `batches`.
    pub fn await_copies(&self, batches: u32) {
        self.push(Stmt::AwaitCopies(batches));
    }

    /// Adds a product of matrices to `sums`, as [`Stmt::Matrix`] says.
    pub fn matrix<'k>(
        &'k self,
        factors: Factors,
        sums: [Var<'k>; 4],
        a: &[Val<'k>],
        b: &[Val<'k>],
    ) {
        self.push(Stmt::Matrix(factors, sums.map(|sum| sum.slot), regs(a), regs(b)));
    }

    /// Starts products of wide matrices, as [`Stmt::Wide`] says; where the target has none they are
    /// made of others, and done at once.
    pub fn wide(&self, shared: Shared, columns: u32, products: Vec<Wide>) {
        if self.target.wide {
            return self.push(Stmt::Wide(shared, columns, products));
        }
        let lane = self.thread() % 32;
        for product in products {
            let at = Val::of(self, product.columns) + lane;
            for (j, sums) in product.sums.chunks_exact(4).enumerate() {
                let own =
                    [0, 1].map(|half| shared.load(at + (j as u32 * 32 + half * columns * 4)).reg());
                let sums = [sums[0], sums[1], sums[2], sums[3]];
                let rows = product.rows.to_vec();
                self.push(Stmt::Matrix(Factors::Tf32, sums, rows, own.to_vec()));
            }
        }
    }

    /// Waits for the products with these sums.
    pub fn await_wide<'k>(&'k self, sums: impl IntoIterator<Item = Var<'k>>) {
        if self.target.wide {
            self.push(Stmt::AwaitWide(sums.into_iter().map(|sum| sum.slot).collect()));
        }
    }

    /// Lets them see what was stored, as [`Stmt::FenceWide`] says.
    pub fn fence_wide(&self) {
        if self.target.wide {
            self.push(Stmt::FenceWide);
        }
    }
}
