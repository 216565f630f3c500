//! Words of a source.

use crate::error::Pos;

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A name, without the namespaces before it.
    Name(String),
    /// A whole number, whether it is written in decimal, and the letters behind it.
    Integer {
        /// The number.
        value: u64,
        /// Whether it is neither octal nor hexadecimal.
        is_decimal: bool,
        /// The letters.
        suffix: String,
    },
    /// A number with a point or an exponent, with the letters behind it.
    Float(f64, String),
    /// An operator or a bracket.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// Operators, those that begin with others first.
const SIGNS: [&str; 47] = [
    "<<=", ">>=", "++", "--", "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=",
    "*=", "/=", "%=", "&=", "|=", "^=", "::", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!",
    "<", ">", "=", "?", ":", ";", ",", ".", "(", ")", "[", "]", "{", "}", "@",
];

/// What may stand behind a whole number.
const SUFFIXES: [&str; 7] = ["", "u", "l", "ul", "lu", "ull", "ll"];

/// What is wrong, and where.
pub type Wrong = (Pos, String);

/// The words of `text`, with an end behind them.
pub fn words(text: &str, in_header: bool) -> Result<Vec<(Token, Pos)>, Wrong> {
    let mut lexer =
        Lexer { chars: text.chars().collect(), at: 0, pos: Pos { in_header, line: 1, column: 1 } };
    let mut found = Vec::new();
    loop {
        lexer.skip()?;
        let at = lexer.pos;
        let token = lexer.next()?;
        let is_end = token == Token::End;
        found.push((token, at));
        if is_end {
            return Ok(found);
        }
    }
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    pos: Pos,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        if c == '\n' {
            self.pos.line += 1;
            self.pos.column = 1;
        } else {
            self.pos.column += 1;
        }
        Some(c)
    }

    fn take_while(&mut self, holds: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(c) = self.peek(0).filter(|&c| holds(c)) {
            text.push(c);
            self.take();
        }
        text
    }

    /// Skips blanks, comments, and the preprocessor's lines that say nothing here.
    fn skip(&mut self) -> Result<(), Wrong> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(c), _) if c.is_whitespace() => {
                    self.take();
                }
                (Some('/'), Some('/')) => {
                    self.take_while(|c| c != '\n');
                }
                (Some('/'), Some('*')) => {
                    let at = self.pos;
                    while (self.peek(0), self.peek(1)) != (Some('*'), Some('/')) {
                        if self.take().is_none() {
                            return Err((at, "this comment has no end".into()));
                        }
                    }
                    self.take();
                    self.take();
                }
                (Some('#'), _) => {
                    let at = self.pos;
                    let line = self.take_while(|c| c != '\n');
                    let word = line[1..].trim_start();
                    if !["pragma", "include"].iter().any(|known| word.starts_with(known)) {
                        let message = "there is no preprocessor: write a constant or a function";
                        return Err((at, message.into()));
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    fn next(&mut self) -> Result<Token, Wrong> {
        let at = self.pos;
        let Some(c) = self.peek(0) else { return Ok(Token::End) };
        if c.is_ascii_alphabetic() || c == '_' {
            return Ok(Token::Name(self.take_while(|c| c.is_ascii_alphanumeric() || c == '_')));
        }
        let point = c == '.' && self.peek(1).is_some_and(|c| c.is_ascii_digit());
        if c.is_ascii_digit() || point {
            return self.number();
        }
        for sign in SIGNS {
            if sign.chars().enumerate().all(|(i, c)| self.peek(i) == Some(c)) {
                sign.chars().for_each(|_| {
                    self.take();
                });
                return Ok(Token::Sign(sign));
            }
        }
        Err((at, format!("a '{c}' stands for nothing here")))
    }

    fn number(&mut self) -> Result<Token, Wrong> {
        let at = self.pos;
        let wrong = |text: &str| (at, format!("'{text}' is not a number"));
        if self.peek(0) == Some('0') && matches!(self.peek(1), Some('x' | 'X')) {
            self.take();
            self.take();
            let digits = self.take_while(|c| c.is_ascii_hexdigit());
            let suffix = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_').to_lowercase();
            let value = u64::from_str_radix(&digits, 16).ok();
            let value = value.filter(|_| SUFFIXES.contains(&&*suffix));
            let value = value.ok_or_else(|| wrong(&format!("0x{digits}{suffix}")))?;
            return Ok(Token::Integer { value, is_decimal: false, suffix });
        }
        let mut text = self.take_while(|c| c.is_ascii_digit());
        let mut is_float = false;
        if self.peek(0) == Some('.') {
            is_float = true;
            self.take();
            text.push('.');
            text += &self.take_while(|c| c.is_ascii_digit());
        }
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let signed = matches!(self.peek(1), Some('+' | '-')) && digit(self.peek(2));
        if matches!(self.peek(0), Some('e' | 'E')) && (digit(self.peek(1)) || signed) {
            is_float = true;
            self.take();
            text.push('e');
            text.extend(self.take());
            text += &self.take_while(|c| c.is_ascii_digit());
        }
        let suffix = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_').to_lowercase();
        let float = is_float || ["f", "h"].contains(&&*suffix);
        let known: &[&str] = if float { &["", "f", "h", "l"] } else { &SUFFIXES };
        if !known.contains(&&*suffix) {
            return Err(wrong(&format!("{text}{suffix}")));
        }
        if float {
            let value = if text == "." {
                Err(wrong(&text))
            } else {
                text.parse().map_err(|_| wrong(&text))
            };
            return Ok(Token::Float(value?, suffix));
        }
        let is_decimal = !text.starts_with('0');
        let value = u64::from_str_radix(&text, if is_decimal { 10 } else { 8 });
        Ok(Token::Integer { value: value.map_err(|_| wrong(&text))?, is_decimal, suffix })
    }
}
