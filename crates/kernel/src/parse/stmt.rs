//! Statements and declarations.

use super::expr::builtin;
use super::value::{Pointer, Store, Value, convert, fit, literal, truth};
use super::{Parser, Symbol};
use crate::error::Pos;
use crate::lex::{Token, Wrong};
use crate::tree::{Expr, Kind, Memory, Place, Stmt};
use crate::types::{Scalar, Ty};

/// Words that may stand before a type.
pub const QUALIFIERS: [&str; 15] = [
    "const",
    "constexpr",
    "static",
    "inline",
    "device",
    "constant",
    "thread",
    "volatile",
    "restrict",
    "__restrict__",
    "__device__",
    "__constant__",
    "__forceinline__",
    "threadgroup",
    "__shared__",
];

/// The first values of an array as they are read, each with the number of its element.
struct Firsts<'a> {
    name: &'a str,
    len: u32,
    scalar: Scalar,
    values: Vec<(u32, Expr)>,
}

/// The most elements of an array of a thread or a threadgroup.
const LONGEST: i64 = 1 << 20;

/// What stands before a type.
#[derive(Clone, Copy, Default)]
pub struct Qualifiers {
    is_constant: bool,
    is_shared: bool,
}

impl Parser {
    /// Reads what stands before a type.
    pub fn qualifiers(&mut self) -> Qualifiers {
        let mut found = Qualifiers::default();
        while let Token::Name(name) = self.peek() {
            if !QUALIFIERS.contains(&&**name) {
                break;
            }
            found.is_constant |= ["const", "constexpr", "constant"].contains(&&**name);
            found.is_shared |= ["threadgroup", "__shared__"].contains(&&**name);
            self.at += 1;
        }
        found
    }

    /// Reads a statement.
    pub fn statement(&mut self, list: &mut Vec<Stmt>) -> Result<(), Wrong> {
        self.deeper(|parser| parser.any(list))
    }

    fn any(&mut self, list: &mut Vec<Stmt>) -> Result<(), Wrong> {
        let at = self.pos();
        if self.eat(";") {
            return Ok(());
        }
        if self.is("{") {
            return self.scoped(|parser| parser.braced(list));
        }
        let word = match self.peek() {
            Token::Name(name) => name.clone(),
            _ => String::new(),
        };
        match &*word {
            "if" => self.either(list),
            "for" => self.scoped(|parser| parser.counted_loop(list)),
            "while" => {
                self.at += 1;
                self.expect("(")?;
                let condition = Some(truth(self.expr()?));
                self.expect(")")?;
                let body = self.round()?;
                list.push(Stmt::Loop { condition, runs_once: false, step: Vec::new(), body, at });
                Ok(())
            }
            "do" => {
                self.at += 1;
                let body = self.round()?;
                if !self.is_name("while") {
                    return Err((self.pos(), "'while' is missing after 'do { … }'".into()));
                }
                self.at += 1;
                self.expect("(")?;
                let condition = Some(truth(self.expr()?));
                self.expect(")")?;
                list.push(Stmt::Loop { condition, runs_once: true, step: Vec::new(), body, at });
                self.expect(";")
            }
            "break" | "continue" => {
                self.at += 1;
                if self.loops == 0 {
                    return Err((at, format!("'{word}' stands outside of loops")));
                }
                list.push(if word == "break" { Stmt::Break } else { Stmt::Continue });
                self.expect(";")
            }
            "return" => self.returns(list),
            "threadgroup_barrier" | "__syncthreads" | "workgroupBarrier" => {
                self.at += 1;
                self.expect("(")?;
                while !self.is(")") && self.peek() != &Token::End {
                    self.at += 1;
                }
                self.expect(")")?;
                if self.function.is_some() {
                    return Err((at, "a barrier stands in the kernel, not in a function".into()));
                }
                self.program.has_barriers = true;
                list.push(Stmt::Barrier(at));
                self.expect(";")
            }
            "switch" | "goto" | "struct" | "typedef" | "union" | "enum" => {
                Err((at, format!("'{word}' is not part of the language")))
            }
            _ => {
                if self.declaration(list)? {
                    return Ok(());
                }
                loop {
                    list.push(Stmt::Do(self.effect()?));
                    if !self.eat(",") {
                        return self.expect(";");
                    }
                }
            }
        }
    }

    /// Something that is computed for what it changes.
    fn effect(&mut self) -> Result<Expr, Wrong> {
        let at = self.pos();
        match self.assignment()? {
            Value::Nothing(expr) => Ok(expr),
            value => self.value(value, at),
        }
    }

    fn braced(&mut self, list: &mut Vec<Stmt>) -> Result<(), Wrong> {
        let at = self.pos();
        self.expect("{")?;
        while !self.eat("}") {
            if self.peek() == &Token::End {
                return Err((at, "this bracket is not closed".into()));
            }
            self.statement(list)?;
        }
        Ok(())
    }

    /// A statement in a scope of its own.
    fn block(&mut self) -> Result<Vec<Stmt>, Wrong> {
        self.scoped(|parser| {
            let mut list = Vec::new();
            parser.statement(&mut list)?;
            Ok(list)
        })
    }

    /// The body of a loop.
    fn round(&mut self) -> Result<Vec<Stmt>, Wrong> {
        self.loops += 1;
        let body = self.block();
        self.loops -= 1;
        body
    }

    fn either(&mut self, list: &mut Vec<Stmt>) -> Result<(), Wrong> {
        self.at += 1;
        if self.is_name("constexpr") {
            self.at += 1;
        }
        self.expect("(")?;
        let condition = truth(self.expr()?);
        self.expect(")")?;
        let then = self.block()?;
        let mut other = Vec::new();
        if self.is_name("else") {
            self.at += 1;
            other = self.block()?;
        }
        match condition.kind {
            // What the template decides leaves no trace.
            Kind::Literal(bits) => list.extend(if bits == 0 { other } else { then }),
            _ => list.push(Stmt::If(condition, then, other)),
        }
        Ok(())
    }

    fn counted_loop(&mut self, list: &mut Vec<Stmt>) -> Result<(), Wrong> {
        let at = self.pos();
        self.at += 1;
        self.expect("(")?;
        self.any(list)?;
        let condition = match self.is(";") {
            true => None,
            false => Some(truth(self.expr()?)),
        };
        self.expect(";")?;
        let mut step = Vec::new();
        while !self.is(")") {
            if !step.is_empty() {
                self.expect(",")?;
            }
            step.push(self.effect()?);
        }
        self.expect(")")?;
        let body = self.round()?;
        list.push(Stmt::Loop { condition, runs_once: false, step, body, at });
        Ok(())
    }

    fn returns(&mut self, list: &mut Vec<Stmt>) -> Result<(), Wrong> {
        let at = self.pos();
        self.at += 1;
        let result = self.function.as_ref().and_then(|inside| inside.result);
        if !self.is(";") {
            let value = self.expr()?;
            let Some((variable, scalar)) = result else {
                return Err((at, "nothing is given back here: write 'return;'".into()));
            };
            let value = fit(value, scalar);
            list.push(set(Place::Variable(variable), value, at));
        } else if result.is_some() {
            return Err((at, "this function gives a value back".into()));
        }
        list.push(Stmt::Return);
        self.expect(";")
    }

    /// Reads declarations, if that is what stands here.
    fn declaration(&mut self, list: &mut Vec<Stmt>) -> Result<bool, Wrong> {
        let start = self.at;
        let qualifiers = self.qualifiers();
        let at = self.pos();
        if let Token::Name(word) = self.peek().clone()
            && ["auto", "uint2", "uint3"].contains(&&*word)
            && matches!(self.ahead(1), Token::Name(_) | Token::Sign("*" | "&"))
        {
            self.at += 1;
            self.inferred(list)?;
            return Ok(true);
        }
        let Some(scalar) = self.type_here() else {
            if self.at != start || qualifiers.is_constant || qualifiers.is_shared {
                return Err((at, format!("there is no type {}", self.described())));
            }
            return Ok(false);
        };
        if !matches!(self.peek(), Token::Name(_) | Token::Sign("*" | "&")) || self.is("&") {
            if self.is("&") {
                return Err((self.pos(), "there are no references".into()));
            }
            self.at = start;
            return Ok(false);
        }
        loop {
            self.declared(scalar, qualifiers, list)?;
            if !self.eat(",") {
                self.expect(";")?;
                return Ok(true);
            }
        }
    }

    /// `auto name = …;`
    fn inferred(&mut self, list: &mut Vec<Stmt>) -> Result<(), Wrong> {
        if self.is("&") {
            return Err((self.pos(), "there are no references".into()));
        }
        self.eat("*");
        let here = self.pos();
        let name = self.name()?;
        self.expect("=")?;
        let at = self.pos();
        let scalar = match self.assignment()? {
            Value::Pointer(pointer) => {
                let pointer = self.held(pointer, list, at);
                self.declare(&name, here, Symbol::Pointer(pointer))?;
                return self.expect(";");
            }
            Value::Vector(vector) => {
                self.declare(&name, here, Symbol::Vector(vector))?;
                while self.eat(".") {
                    self.name()?;
                }
                return self.expect(";");
            }
            Value::Place(place, scalar) => (self.value(Value::Place(place, scalar), at)?, scalar),
            value => {
                let value = self.value(value, at)?;
                let scalar = value.ty.scalar();
                (value, scalar)
            }
        };
        let (value, scalar) = scalar;
        let variable = self.variable(&name, scalar);
        list.push(set(Place::Variable(variable), fit(value, scalar), at));
        self.declare(&name, here, Symbol::Variable(variable))?;
        self.expect(";")
    }

    /// A pointer whose offset is computed once.
    fn held(&mut self, pointer: Pointer, list: &mut Vec<Stmt>, at: Pos) -> Pointer {
        let Some(offset) = pointer.offset else { return pointer };
        let ty = offset.ty;
        let variable = self.variable("", ty.scalar());
        list.push(set(Place::Variable(variable), *offset, at));
        let kind = Kind::Load(Place::Variable(variable));
        Pointer { offset: Some(Box::new(Expr { ty, kind, at })), ..pointer }
    }

    fn declared(
        &mut self,
        scalar: Scalar,
        qualifiers: Qualifiers,
        list: &mut Vec<Stmt>,
    ) -> Result<(), Wrong> {
        let is_pointer = self.eat("*");
        while self.qualifiers().is_constant {}
        let at = self.pos();
        let name = self.name()?;
        if builtin(&name).is_some() {
            return Err((at, format!("'{name}' is a name of the language")));
        }
        if is_pointer {
            self.expect("=")?;
            let here = self.pos();
            let pointer = match self.assignment()? {
                Value::Pointer(pointer) if pointer.inner.is_empty() => pointer,
                Value::Address(Place::Array(number, index), _) => {
                    Pointer { store: Store::Array(number), offset: Some(index), inner: Vec::new() }
                }
                _ => return Err((here, "a pointer begins at an array".into())),
            };
            if self.scalar_of(pointer.store) != scalar {
                let found = self.scalar_of(pointer.store).name();
                let message = format!("a pointer to {} begins at a {found}", scalar.name());
                return Err((here, message));
            }
            let pointer = self.held(pointer, list, at);
            return self.declare(&name, at, Symbol::Pointer(pointer));
        }
        if self.is("[") {
            return self.array(name, at, scalar, qualifiers, list);
        }
        if qualifiers.is_shared {
            let message = "what a threadgroup shares is an array: write [1] behind its name";
            return Err((at, message.into()));
        }
        let first = match self.eat("=") {
            true => fit(self.expr()?, scalar),
            // Like an array's, a variable's first value is 0 where none is given.
            false => literal(0, scalar.register(), at),
        };
        if qualifiers.is_constant && matches!(first.kind, Kind::Literal(_)) {
            return self.declare(&name, at, Symbol::Constant(first));
        }
        let variable = self.variable(&name, scalar);
        list.push(set(Place::Variable(variable), first, at));
        self.declare(&name, at, Symbol::Variable(variable))
    }

    /// An array's axes and first values.
    fn array(
        &mut self,
        name: String,
        place: Pos,
        scalar: Scalar,
        qualifiers: Qualifiers,
        list: &mut Vec<Stmt>,
    ) -> Result<(), Wrong> {
        let start = self.pos();
        let mut axes: Vec<u32> = Vec::new();
        while self.eat("[") {
            let at = self.pos();
            let length = self.expr()?;
            let length = self.constant(&length).filter(|length| (1..=LONGEST).contains(length));
            let Some(length) = length else {
                let message =
                    format!("an array's length is a number from 1 to {LONGEST} that is known");
                return Err((at, message));
            };
            axes.push(length as u32);
            self.expect("]")?;
        }
        let len = axes.iter().fold(1i64, |all, &axis| all.saturating_mul(axis.into()));
        if len > LONGEST {
            return Err((start, format!("an array has at most {LONGEST} elements")));
        }
        let memory = Memory { name: name.clone(), scalar, len: len as u32 };
        let store = if qualifiers.is_shared {
            self.program.shared.push(memory);
            Store::Shared(self.program.shared.len() - 1)
        } else {
            self.program.locals.push(memory);
            Store::Local(self.program.locals.len() - 1)
        };
        if self.eat("=") {
            let at = self.pos();
            if qualifiers.is_shared {
                return Err((at, "what a threadgroup shares has no first values".into()));
            }
            self.expect("{")?;
            let mut firsts = Firsts { name: &name, len: len as u32, scalar, values: Vec::new() };
            self.firsts(&axes, 0, true, &mut firsts)?;
            let mut number = 0u32;
            for (place, value) in firsts.values {
                if number < place {
                    self.clear(store, scalar, (number, place), list, at);
                }
                list.push(set(store.at(literal(place.into(), Ty::U32, at)), value, at));
                number = place + 1;
            }
            if number < len as u32 {
                self.clear(store, scalar, (number, len as u32), list, at);
            }
        }
        let inner = axes[1..].to_vec();
        self.declare(&name, place, Symbol::Pointer(Pointer { store, offset: None, inner }))
    }

    /// Reads the first values of the part of an array that has these axes and begins at an element: what its own
    /// braces hold, the first of which is read, or as many of the values that follow.
    fn firsts(
        &mut self,
        axes: &[u32],
        start: u32,
        in_braces: bool,
        firsts: &mut Firsts<'_>,
    ) -> Result<(), Wrong> {
        let Some((&count, inner)) = axes.split_first().or(in_braces.then_some((&1, &[]))) else {
            firsts.values.push((start, fit(self.expr()?, firsts.scalar)));
            return Ok(());
        };
        let step: u32 = inner.iter().product();
        let mut number = 0;
        while !(in_braces && self.eat("}")) {
            if number > 0 {
                // What is left over is of the part after this one, or of none.
                let is_last = number == count || matches!(self.ahead(1), Token::Sign("}"));
                if !in_braces && (!self.is(",") || is_last) {
                    return Ok(());
                }
                self.expect(",")?;
                if in_braces && self.eat("}") {
                    return Ok(());
                }
            }
            if number == count {
                let (name, len) = (firsts.name, count * step);
                let elements = if len == 1 { "element" } else { "elements" };
                let here = if len == firsts.len { "" } else { " in these braces" };
                return Err((self.pos(), format!("'{name}' has only {len} {elements}{here}")));
            }
            let start = start + number * step;
            let in_braces = self.eat("{");
            self.deeper(|parser| parser.firsts(inner, start, in_braces, firsts))?;
            number += 1;
        }
        Ok(())
    }

    /// Puts 0 in the elements from one number to below another.
    fn clear(
        &mut self,
        store: Store,
        scalar: Scalar,
        (from, to): (u32, u32),
        list: &mut Vec<Stmt>,
        at: Pos,
    ) {
        use crate::tree::{Binary, Compare};
        let counter = self.variable("", Scalar::U32);
        self.program.variables[counter].is_constant = false;
        let place = || Place::Variable(counter);
        let read = || Expr { ty: Ty::U32, kind: Kind::Load(place()), at };
        let number = |v: u32| literal(v.into(), Ty::U32, at);
        list.push(set(place(), number(from), at));
        let below = Kind::Compare(Compare::Less, Box::new(read()), Box::new(number(to)));
        let zero = convert(number(0), scalar.register());
        let kind = Kind::Assign {
            place: place(),
            value: Box::new(number(1)),
            operation: Some((Binary::Add, Ty::U32)),
            gives_old: false,
        };
        list.push(Stmt::Loop {
            condition: Some(Expr { ty: Ty::Bool, kind: below, at }),
            runs_once: false,
            step: vec![Expr { ty: Ty::U32, kind, at }],
            body: vec![set(store.at(read()), zero, at)],
            at,
        });
    }
}

/// Gives a place a value of its own type.
fn set(place: Place, value: Expr, at: Pos) -> Stmt {
    let ty = value.ty;
    let value = Box::new(value);
    let kind = Kind::Assign { place, value, operation: None, gives_old: false };
    Stmt::Do(Expr { ty, kind, at })
}
