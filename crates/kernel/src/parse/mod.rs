//! From a source to the typed tree, in one pass: names are known before they are used.

mod call;
mod expr;
mod library;
mod stmt;
mod value;

use std::collections::HashMap;

use crate::error::{Error, Pos};
use crate::lex::{Token, Wrong, words};
use crate::tree::{Access, Builtin, Expr, Program, Stmt};
use crate::types::{Scalar, Ty};
use value::{Pointer, Store};

/// An array that a kernel is given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Array {
    /// What the source calls it.
    pub name: String,
    /// Its elements.
    pub scalar: Scalar,
    /// Its number of axes. An input without axes is a value: `x`, not `x[0]`.
    pub rank: usize,
}

/// What stands for a name of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parameter {
    /// A type.
    Type(Scalar),
    /// A whole number.
    Integer(i64),
    /// True or false.
    Bool(bool),
}

impl Parameter {
    /// The name of the number that says how many bytes a body in CUDA C++ shares as an array without a length.
    pub const SHARED_MEMORY: &str = "shared_memory";
}

/// What a kernel is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The arrays that it reads.
    pub inputs: Vec<Array>,
    /// The arrays that it writes.
    pub outputs: Vec<Array>,
    /// The template's names, with what stands for them.
    pub template: Vec<(String, Parameter)>,
}

/// Reads the body of a kernel, with functions and constants from a header.
///
/// # Errors
/// Where the text is not of the language, with its line.
pub fn parse(body: &str, header: &str, signature: &Signature) -> Result<Program, Error> {
    program(body, header, signature)
        .map_err(|(at, message)| Error::source(at, message, header, body))
}

/// Words that no name can be, besides those of types and what may stand before them.
const WORDS: &str = "auto break case continue default do else enum extern false for goto if register return signed \
    sizeof struct switch template thread_index_in_threadgroup true typedef uint2 uint3 union unsigned using void while";

/// Whether something that a kernel is given can have this name: one of C's that the language has no use for.
///
/// ```
/// use cupola_kernel::is_name;
/// assert!(is_name("x_2") && is_name("_y"));
/// assert!(["", "2x", "a b", "if", "float", "thread_position_in_grid"].iter().all(|name| !is_name(name)));
/// ```
pub fn is_name(name: &str) -> bool {
    let is_word = WORDS.split(' ').any(|word| word == name)
        || stmt::QUALIFIERS.contains(&name)
        || Scalar::named(name).is_some()
        || expr::builtin(name).is_some();
    is_identifier(name) && !is_word
}

/// Whether these are the letters of a name of C.
pub fn is_identifier(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| is_letter(c) && !c.is_ascii_digit()) && name.chars().all(is_letter)
}

fn program(body: &str, header: &str, signature: &Signature) -> Result<Program, Wrong> {
    let arrays = signature.inputs.iter().chain(&signature.outputs);
    let access = |a: &Array| Access {
        name: a.name.clone(),
        scalar: a.scalar,
        rank: a.rank,
        is_atomic: false,
    };
    let program = Program {
        arrays: arrays.map(access).collect(),
        inputs: signature.inputs.len(),
        ..Program::default()
    };
    let mut parser = Parser {
        words: words(header, true)?,
        at: 0,
        scopes: vec![HashMap::new()],
        program,
        known: HashMap::new(),
        loops: 0,
        depth: 0,
        function: None,
    };
    parser.given(signature);
    let mut list = parser.header()?;
    parser.words = words(body, false)?;
    parser.at = 0;
    parser.scopes.push(HashMap::new());
    while parser.peek() != &Token::End {
        parser.statement(&mut list)?;
    }
    parser.program.body = list;
    Ok(parser.program)
}

/// What a name stands for.
#[derive(Clone)]
enum Symbol {
    Type(Scalar),
    Constant(Expr),
    Variable(usize),
    Array(usize),
    Pointer(Pointer),
    Shape(usize),
    Strides(usize),
    Rank(usize),
    Vector(Builtin),
    Function(usize),
}

/// The function that is being read.
struct Inside {
    result: Option<(usize, Scalar)>,
}

struct Parser {
    words: Vec<(Token, Pos)>,
    at: usize,
    scopes: Vec<HashMap<String, Symbol>>,
    program: Program,
    /// Functions of the library, for the types that they were called with.
    known: HashMap<(String, Scalar), usize>,
    /// How many loops are open.
    loops: usize,
    /// How deep expressions and statements lie in each other.
    depth: usize,
    function: Option<Inside>,
}

/// How deep they may: the parser and what walks the tree recur.
const DEEPEST: usize = 100;

impl Parser {
    fn given(&mut self, signature: &Signature) {
        let at = Pos::default();
        for number in 0..self.program.arrays.len() {
            let Access { name, rank, .. } = self.program.arrays[number].clone();
            let whole = number >= self.program.inputs || rank > 0;
            let pointer = Pointer { store: Store::Array(number), offset: None, inner: Vec::new() };
            self.give(&name, if whole { Symbol::Pointer(pointer) } else { Symbol::Array(number) });
            self.give(&format!("{name}_shape"), Symbol::Shape(number));
            self.give(&format!("{name}_strides"), Symbol::Strides(number));
            self.give(&format!("{name}_ndim"), Symbol::Rank(number));
        }
        for (name, parameter) in &signature.template {
            let symbol = match *parameter {
                Parameter::Type(scalar) => Symbol::Type(scalar),
                Parameter::Integer(v) => {
                    let ty = if i32::try_from(v).is_ok() { Ty::I32 } else { Ty::I64 };
                    let bits = if ty == Ty::I32 { u64::from(v as i32 as u32) } else { v as u64 };
                    Symbol::Constant(value::literal(bits, ty, at))
                }
                Parameter::Bool(v) => Symbol::Constant(value::literal(u64::from(v), Ty::Bool, at)),
            };
            self.give(name, symbol);
        }
    }

    /// Gives a name of the source its meaning, which it has once in a scope.
    fn declare(&mut self, name: &str, at: Pos, symbol: Symbol) -> Result<(), Wrong> {
        if self.scopes.last().is_some_and(|scope| scope.contains_key(name)) {
            return Err((at, format!("'{name}' is declared here already")));
        }
        self.give(name, symbol);
        Ok(())
    }

    fn give(&mut self, name: &str, symbol: Symbol) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), symbol);
        }
    }

    fn find(&self, name: &str) -> Option<&Symbol> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    fn peek(&self) -> &Token {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> &Token {
        // The last word is the end.
        self.words.get(self.at + by).map_or(&Token::End, |(token, _)| token)
    }

    fn pos(&self) -> Pos {
        let last = self.words.len().saturating_sub(1);
        self.words.get(self.at.min(last)).map_or(Pos::default(), |&(_, at)| at)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(s) if *s == sign)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Token::Name(n) if n == name)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Wrong> {
        if self.eat(sign) {
            return Ok(());
        }
        Err((self.pos(), format!("there should be '{sign}' before {}", self.described())))
    }

    fn name(&mut self) -> Result<String, Wrong> {
        let at = self.pos();
        match self.next() {
            Token::Name(name) => Ok(name),
            _ => {
                self.at -= 1;
                Err((at, format!("there should be a name before {}", self.described())))
            }
        }
    }

    fn described(&self) -> String {
        match self.peek() {
            Token::Name(name) => format!("'{name}'"),
            Token::Integer { value, .. } => format!("'{value}'"),
            Token::Float(v, _) => format!("'{v}'"),
            Token::Sign(sign) => format!("'{sign}'"),
            Token::End => "the end of the source".into(),
        }
    }

    /// Runs `read` one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Wrong>) -> Result<T, Wrong> {
        if self.depth == DEEPEST {
            return Err((self.pos(), format!("this lies more than {DEEPEST} levels deep")));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// Runs `read` in a scope of its own.
    fn scoped<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Wrong>) -> Result<T, Wrong> {
        self.scopes.push(HashMap::new());
        let found = read(self);
        self.scopes.pop();
        found
    }

    /// The type that stands here, if one does; several words can be one.
    fn type_here(&mut self) -> Option<Scalar> {
        self.skip_namespaces();
        let Token::Name(first) = self.peek().clone() else { return None };
        let mut scalar = match self.find(&first) {
            Some(Symbol::Type(scalar)) => Some(*scalar),
            Some(_) => return None,
            None => Scalar::named(&first),
        };
        if ["unsigned", "signed"].contains(&&*first) {
            self.at += 1;
            let signed = first == "signed";
            let rest = match self.peek() {
                Token::Name(name) => Scalar::named(name),
                _ => None,
            };
            let Some(rest) = rest else {
                return Some(if signed { Scalar::I32 } else { Scalar::U32 });
            };
            scalar = Some(match rest {
                Scalar::I8 if !signed => Scalar::U8,
                Scalar::I16 if !signed => Scalar::U16,
                Scalar::I32 if !signed => Scalar::U32,
                Scalar::I64 if !signed => Scalar::U64,
                other => other,
            });
        }
        let scalar = scalar?;
        self.at += 1;
        while matches!(scalar, Scalar::I64 | Scalar::U64 | Scalar::I16 | Scalar::U16)
            && (self.is_name("long") || self.is_name("int"))
        {
            self.at += 1;
        }
        Some(scalar)
    }

    /// Skips `metal::precise::` and the like.
    fn skip_namespaces(&mut self) {
        while matches!(self.peek(), Token::Name(_)) && matches!(self.ahead(1), Token::Sign("::")) {
            self.at += 2;
        }
    }

    /// Functions and constants.
    fn header(&mut self) -> Result<Vec<Stmt>, Wrong> {
        let mut list = Vec::new();
        while self.peek() != &Token::End {
            if self.is_name("using") {
                while !matches!(self.next(), Token::Sign(";") | Token::End) {}
                continue;
            }
            if self.is_name("template") {
                let message = "functions have no templates; the kernel's own names are known here";
                return Err((self.pos(), message.into()));
            }
            let start = self.at;
            self.qualifiers();
            let at = self.pos();
            let result = if self.is_name("void") {
                self.at += 1;
                None
            } else {
                let Some(scalar) = self.type_here() else {
                    let found = self.described();
                    return Err((at, format!("a header has functions and constants, not {found}")));
                };
                Some(scalar)
            };
            if matches!(self.ahead(1), Token::Sign("(")) {
                let at = self.pos();
                let name = self.name()?;
                self.function(name, at, result)?;
            } else {
                self.at = start;
                self.statement(&mut list)?;
            }
        }
        Ok(list)
    }
}
