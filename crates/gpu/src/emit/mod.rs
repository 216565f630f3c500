//! Kernels as text. What the languages share is printed here, what differs by a [`Dialect`].

mod cuda;
mod wgsl;

use std::fmt::Write;

use crate::ir::{
    Bin, Buf, Cmp, Expr, Factors, Kernel, Lit, Local, Reg, Shared, Slot, Stmt, Ty, Wide,
};

pub use cuda::{CudaC, dynamic_shared};
pub use wgsl::Wgsl;

/// A language.
pub trait Dialect {
    /// Everything before the body of the entry point.
    fn head(&self, kernel: &Kernel) -> String;
    /// The name of a type.
    fn ty(&self, ty: Ty) -> &'static str;
    /// An expression that is no literal, variable or read of shared memory.
    fn expr(&self, kernel: &Kernel, to: Ty, expr: &Expr) -> String;
    /// A declaration of a value, or of a variable.
    fn declare(&self, ty: Ty, name: &str, is_variable: bool) -> String;
    /// A store to a buffer.
    fn store(&self, kernel: &Kernel, buf: Buf, index: Reg, value: Reg) -> String;
    /// A change of an element that has the bits of the first value, to those of the second.
    fn swap(&self, found: Reg, buf: Buf, operands: [Reg; 3]) -> String;
    /// A word for those who wait for it.
    fn post(&self, buf: Buf, index: Reg, word: Reg) -> String;
    /// A load or store of neighbours at once; none where they go one by one.
    fn vector(&self, kernel: &Kernel, stmt: &Stmt) -> Option<String>;
    /// The declaration of an array of the thread, all of whose elements are 0.
    fn local(&self, array: Local) -> String;
    /// A barrier.
    fn barrier(&self) -> &'static str;
    /// A copy of 16 bytes into a shared array, meanwhile.
    fn copy(&self, array: Shared, to: Reg, buf: Buf, from: Reg) -> String;
    /// The value of a counter in shared memory.
    fn load_counter(&self, place: &str) -> String;
    /// Gives it another one.
    fn store_counter(&self, place: &str, value: &str) -> String;
    /// Adds to it.
    fn add_counter(&self, place: &str, value: &str) -> String;
    /// The end of a batch of copies.
    fn end_copies(&self) -> String;
    /// A wait for all copies but those of the last batches.
    fn await_copies(&self, batches: u32) -> String;
    /// A product of matrices that threads hold together.
    fn matrix(&self, factors: Factors, sums: [Slot; 4], a: &[Reg], b: &[Reg]) -> String;
    /// A thread's parts of four matrices of halves.
    fn load_matrices(
        &self,
        into: &[Reg; 4],
        array: Shared,
        index: Reg,
        is_transposed: bool,
    ) -> String;
    /// How products of wide matrices are started; none where there are no such.
    fn wide(&self) -> Option<&dyn WideProducts> {
        None
    }
}

/// Products of wide matrices, in a language that has them.
pub trait WideProducts {
    /// Starts some.
    fn start(&self, array: Shared, columns: u32, products: &[Wide]) -> Vec<String>;
    /// Waits for those with these sums.
    fn wait(&self, sums: &[Slot]) -> String;
    /// Lets them see what was stored.
    fn fence(&self) -> String;
}

/// The text of `kernel` in the language of `dialect`.
pub fn print(kernel: &Kernel, dialect: &dyn Dialect) -> String {
    let text = dialect.head(kernel);
    let mut printer = Printer { kernel, dialect, text, depth: 1, spare: u32::MAX };
    kernel.locals.iter().for_each(|&array| printer.line(&dialect.local(array)));
    printer.list(&kernel.body);
    printer.text.push_str("}\n");
    printer.text
}

/// What values, variables, buffers and shared arrays are called.
pub(crate) fn value(v: Reg) -> String {
    format!("v{}", v.id)
}

pub(crate) fn variable(v: Slot) -> String {
    format!("x{}", v.id)
}

pub(crate) fn buffer(b: Buf) -> String {
    format!("b{}", b.id)
}

pub(crate) fn shared(s: Shared) -> String {
    format!("s{}", s.id)
}

pub(crate) fn local(a: Local) -> String {
    format!("a{}", a.id)
}

/// How both languages spell a comparison.
pub(crate) fn compare(op: Cmp) -> &'static str {
    match op {
        Cmp::Eq => "==",
        Cmp::Ne => "!=",
        Cmp::Lt => "<",
        Cmp::Le => "<=",
        Cmp::Gt => ">",
        Cmp::Ge => ">=",
    }
}

/// The type of a shared array's elements: bools are kept as words, since there are drivers that
/// lose neighbouring ones.
pub(crate) fn shared_ty(s: Shared) -> Ty {
    if s.ty == Ty::Bool { Ty::U32 } else { s.ty }
}

struct Printer<'a> {
    kernel: &'a Kernel,
    dialect: &'a dyn Dialect,
    text: String,
    depth: usize,
    /// The last number that no value of the kernel has.
    spare: u32,
}

impl Printer<'_> {
    fn line(&mut self, line: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{:1$}{line}", "", self.depth * 4);
    }

    fn inner(&mut self, list: &[Stmt]) {
        self.depth += 1;
        self.list(list);
        self.depth -= 1;
    }

    fn list(&mut self, list: &[Stmt]) {
        list.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(val, expr) => {
                let right = match expr {
                    Expr::Read(var) => variable(*var),
                    Expr::LoadLocal(array, index) => {
                        format!("{}[{}]", local(*array), value(*index))
                    }
                    Expr::LoadShared(array, index) => {
                        let element = format!("{}[{}]", shared(*array), value(*index));
                        match array.ty {
                            Ty::Bool => format!("{element} != 0u"),
                            _ if array.counts => self.dialect.load_counter(&element),
                            _ => element,
                        }
                    }
                    other => self.dialect.expr(self.kernel, val.ty, other),
                };
                let left = self.dialect.declare(val.ty, &value(*val), false);
                self.line(&format!("{left} = {right};"));
            }
            Stmt::Var(var, first) => {
                let left = self.dialect.declare(var.ty, &variable(*var), true);
                self.line(&format!("{left} = {};", value(*first)));
            }
            Stmt::Set(var, val) => self.line(&format!("{} = {};", variable(*var), value(*val))),
            Stmt::If(condition, then, other) => {
                self.line(&format!("if ({}) {{", value(*condition)));
                self.inner(then);
                if !other.is_empty() {
                    self.line("} else {");
                    self.inner(other);
                }
                self.line("}");
            }
            Stmt::For(counter, [from, to, step], body) => {
                let name = value(*counter);
                let first = self.dialect.declare(counter.ty, &name, true);
                let (from, to, step) = (value(*from), value(*to), value(*step));
                self.line(&format!(
                    "for ({first} = {from}; {name} < {to}; {name} = {name} + {step}) {{"
                ));
                self.inner(body);
                self.line("}");
            }
            Stmt::While(head, condition, body) => {
                self.line("while (true) {");
                self.inner(head);
                self.depth += 1;
                self.line(&format!("if (!{}) {{ break; }}", value(*condition)));
                self.depth -= 1;
                self.inner(body);
                self.line("}");
            }
            Stmt::Break => self.line("break;"),
            Stmt::Continue => self.line("continue;"),
            Stmt::Return => self.line("return;"),
            // Lines of the text are those of whoever wrote it.
            Stmt::Text(text) => self.text.push_str(text),
            Stmt::StoreLocal(array, index, val) => {
                self.line(&format!("{}[{}] = {};", local(*array), value(*index), value(*val)));
            }
            Stmt::Store(buf, index, val) => {
                let line = self.dialect.store(self.kernel, *buf, *index, *val);
                self.line(&line);
            }
            Stmt::Swap(found, buf, operands) => {
                let line = self.dialect.swap(*found, *buf, *operands);
                self.line(&line);
            }
            Stmt::Post(buf, index, word) => {
                let line = self.dialect.post(*buf, *index, *word);
                self.line(&line);
            }
            Stmt::StoreShared(array, index, val) => {
                let element = match array.ty {
                    Ty::Bool => format!("u32({})", value(*val)),
                    _ => value(*val),
                };
                let place = format!("{}[{}]", shared(*array), value(*index));
                let line = match array.counts {
                    true => self.dialect.store_counter(&place, &element),
                    false => format!("{place} = {element};"),
                };
                self.line(&line);
            }
            Stmt::AddShared(array, index, val) => {
                let place = format!("{}[{}]", shared(*array), value(*index));
                let line = self.dialect.add_counter(&place, &value(*val));
                self.line(&line);
            }
            Stmt::LoadVector(..)
            | Stmt::StoreVector(..)
            | Stmt::LoadSharedVector(..)
            | Stmt::StoreSharedVector(..) => self.vector(stmt),
            Stmt::Copy(array, to, buf, from) => {
                let line = self.dialect.copy(*array, *to, *buf, *from);
                self.line(&line);
            }
            Stmt::EndCopies => self.line(&self.dialect.end_copies()),
            Stmt::AwaitCopies(batches) => self.line(&self.dialect.await_copies(*batches)),
            Stmt::Barrier => self.line(self.dialect.barrier()),
            Stmt::Matrix(factors, sums, a, b) => {
                let line = self.dialect.matrix(*factors, *sums, a, b);
                self.line(&line);
            }
            Stmt::LoadMatrices(into, array, index, is_transposed) => {
                let line = self.dialect.load_matrices(into, *array, *index, *is_transposed);
                self.line(&line);
            }
            Stmt::Wide(..) | Stmt::AwaitWide(_) | Stmt::FenceWide => self.wide(stmt),
        }
    }

    fn wide(&mut self, stmt: &Stmt) {
        let Some(wide) = self.dialect.wide() else {
            unreachable!("no wide matrix is printed: the target has none")
        };
        match stmt {
            Stmt::Wide(array, columns, products) => {
                wide.start(*array, *columns, products).iter().for_each(|line| self.line(line));
            }
            Stmt::AwaitWide(sums) => self.line(&wide.wait(sums)),
            _ => self.line(&wide.fence()),
        }
    }

    /// Neighbours at once, or one by one.
    fn vector(&mut self, stmt: &Stmt) {
        match self.dialect.vector(self.kernel, stmt) {
            Some(line) => self.line(&line),
            None => self.scalars(stmt),
        }
    }

    fn scalars(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::LoadVector(into, buf, index) => {
                for (i, &val) in into.iter().enumerate() {
                    let at = self.neighbour(*index, i);
                    self.stmt(&Stmt::Let(val, Expr::Load(*buf, at)));
                }
            }
            Stmt::StoreVector(buf, index, values) => {
                for (i, &val) in values.iter().enumerate() {
                    let at = self.neighbour(*index, i);
                    self.stmt(&Stmt::Store(*buf, at, val));
                }
            }
            Stmt::LoadSharedVector(into, array, index) => {
                for (i, &val) in into.iter().enumerate() {
                    let at = self.neighbour(*index, i);
                    self.stmt(&Stmt::Let(val, Expr::LoadShared(*array, at)));
                }
            }
            Stmt::StoreSharedVector(array, index, values) => {
                for (i, &val) in values.iter().enumerate() {
                    let at = self.neighbour(*index, i);
                    self.stmt(&Stmt::StoreShared(*array, at, val));
                }
            }
            other => self.stmt(other),
        }
    }

    /// The place `step` after `index`.
    fn neighbour(&mut self, index: Reg, step: usize) -> Reg {
        if step == 0 {
            return index;
        }
        let bits = step as u64;
        let [away, at] = [0, 1].map(|_| {
            self.spare -= 1;
            Reg { id: self.spare, ty: index.ty }
        });
        self.stmt(&Stmt::Let(away, Expr::Lit(Lit { bits, ty: index.ty })));
        self.stmt(&Stmt::Let(at, Expr::Bin(Bin::Add, index, away)));
        at
    }
}
