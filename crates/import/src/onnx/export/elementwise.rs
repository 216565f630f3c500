//! Elementwise primitives as operators.

use cupola_core::prim::{Binary, Compare, Elementwise, Unary};
use cupola_core::{Aval, DType};

use super::{Attr, Exporter};
use crate::onnx::error::Fault;

impl Exporter {
    /// An elementwise primitive; operands that are repeated numbers come without axes.
    pub(super) fn elementwise(
        &mut self,
        op: Elementwise,
        names: &[String],
        avals: &[&Aval],
        out: &Aval,
    ) -> Result<String, Fault> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let dtype = avals[0].dtype;
        match op {
            Elementwise::Unary(op) => self.unary(op, names[0], dtype),
            Elementwise::Binary(op) => self.binary(op, names[0], names[1], dtype),
            Elementwise::Compare(op) => Ok(self.compare(op, names[0], names[1], dtype)),
            Elementwise::Select(_) => Ok(self.op("Where", &names)),
            Elementwise::Cast(_) => Ok(self.cast(names[0], out.dtype)),
        }
    }

    fn unary(&mut self, op: Unary, x: &str, dtype: DType) -> Result<String, Fault> {
        let name = match op {
            Unary::Neg => "Neg",
            Unary::Abs => "Abs",
            Unary::Sign => "Sign",
            // Integers are whole.
            Unary::Floor | Unary::Ceil | Unary::Round if dtype.is_integer() => "Identity",
            Unary::Floor => "Floor",
            Unary::Ceil => "Ceil",
            Unary::Round => "Round",
            Unary::Sqrt => "Sqrt",
            Unary::Exp => "Exp",
            Unary::Log => "Log",
            Unary::Sin => "Sin",
            Unary::Cos => "Cos",
            Unary::Tan => "Tan",
            Unary::Asin => "Asin",
            Unary::Acos => "Acos",
            Unary::Atan => "Atan",
            Unary::Sinh => "Sinh",
            Unary::Cosh => "Cosh",
            Unary::Tanh => "Tanh",
            Unary::Asinh => "Asinh",
            Unary::Acosh => "Acosh",
            Unary::Atanh => "Atanh",
            Unary::Sigmoid => "Sigmoid",
            Unary::Erf => "Erf",
            Unary::Not => "Not",
            Unary::Invert if self.opset >= 18 => "BitwiseNot",
            Unary::Square => return Ok(self.op("Mul", &[x, x])),
            Unary::Rsqrt => {
                let root = self.op("Sqrt", &[x]);
                return Ok(self.op("Reciprocal", &[&root]));
            }
            Unary::Expm1 => {
                let power = self.op("Exp", &[x]);
                return Ok(self.by("Sub", &power, 1.0, dtype));
            }
            Unary::Log1p => {
                let more = self.by("Add", x, 1.0, dtype);
                return Ok(self.op("Log", &[&more]));
            }
            Unary::Log2 => return Ok(self.logarithm(x, std::f64::consts::LN_2, dtype)),
            Unary::Log10 => return Ok(self.logarithm(x, std::f64::consts::LN_10, dtype)),
            Unary::Erfc => {
                let erf = self.op("Erf", &[x]);
                let one = self.number(1.0, dtype);
                return Ok(self.op("Sub", &[&one, &erf]));
            }
            Unary::Invert | Unary::ErfInv | Unary::Conj | Unary::Real | Unary::Imag => {
                let opset = self.opset;
                return Err(Fault::unsupported(format!("has no operator in opset {opset}")));
            }
        };
        Ok(self.op(name, &[x]))
    }

    fn logarithm(&mut self, x: &str, base: f64, dtype: DType) -> String {
        let natural = self.op("Log", &[x]);
        self.by("Div", &natural, base, dtype)
    }

    /// An operator of a value and a number.
    fn by(&mut self, op: &str, x: &str, number: f64, dtype: DType) -> String {
        let number = self.number(number, dtype);
        self.op(op, &[x, &number])
    }

    fn binary(&mut self, op: Binary, a: &str, b: &str, dtype: DType) -> Result<String, Fault> {
        let is_bool = dtype == DType::Bool;
        let name = match op {
            Binary::Add => "Add",
            Binary::Sub => "Sub",
            Binary::Mul => "Mul",
            Binary::Div => "Div",
            Binary::Power => "Pow",
            Binary::Maximum | Binary::BitOr if is_bool => "Or",
            Binary::Minimum | Binary::BitAnd if is_bool => "And",
            Binary::BitXor if is_bool => "Xor",
            Binary::Maximum => "Max",
            Binary::Minimum => "Min",
            Binary::BitAnd if self.opset >= 18 => "BitwiseAnd",
            Binary::BitOr if self.opset >= 18 => "BitwiseOr",
            Binary::BitXor if self.opset >= 18 => "BitwiseXor",
            Binary::FloorDivide if dtype.is_float() => {
                let quotient = self.op("Div", &[a, b]);
                return Ok(self.op("Floor", &[&quotient]));
            }
            // The operator cuts off: what is left over goes first.
            Binary::FloorDivide => {
                let over = self.op("Mod", &[a, b]);
                let whole = self.op("Sub", &[a, &over]);
                return Ok(self.op("Div", &[&whole, b]));
            }
            Binary::Remainder if dtype.is_float() => {
                let quotient = self.op("Div", &[a, b]);
                let whole = self.op("Floor", &[&quotient]);
                let part = self.op("Mul", &[&whole, b]);
                return Ok(self.op("Sub", &[a, &part]));
            }
            Binary::Remainder => "Mod",
            Binary::LogAddExp => {
                let most = self.op("Max", &[a, b]);
                let gap = self.op("Sub", &[a, b]);
                let gap = self.op("Abs", &[&gap]);
                let gap = self.op("Neg", &[&gap]);
                let small = self.op("Exp", &[&gap]);
                let more = self.by("Add", &small, 1.0, dtype);
                let log = self.op("Log", &[&more]);
                return Ok(self.op("Add", &[&most, &log]));
            }
            Binary::ShiftLeft | Binary::ShiftRight if !dtype.is_signed() => {
                let left = op == Binary::ShiftLeft;
                let direction = Attr::Text(if left { "LEFT" } else { "RIGHT" });
                return Ok(self.with("BitShift", &[a, b], &[("direction", direction)]));
            }
            Binary::BitAnd
            | Binary::BitOr
            | Binary::BitXor
            | Binary::ShiftLeft
            | Binary::ShiftRight
            | Binary::Atan2 => {
                let opset = self.opset;
                return Err(Fault::unsupported(format!(
                    "of {dtype} has no operator in opset {opset}"
                )));
            }
        };
        Ok(self.op(name, &[a, b]))
    }

    fn compare(&mut self, op: Compare, a: &str, b: &str, dtype: DType) -> String {
        let name = match op {
            Compare::Eq | Compare::Ne => "Equal",
            Compare::Lt => "Less",
            Compare::Le => "LessOrEqual",
            Compare::Gt => "Greater",
            Compare::Ge => "GreaterOrEqual",
        };
        let result = match dtype == DType::Bool && name != "Equal" {
            true => {
                let [a, b] = [a, b].map(|x| self.cast(x, DType::I32));
                self.op(name, &[&a, &b])
            }
            false => self.op(name, &[a, b]),
        };
        if op == Compare::Ne { self.op("Not", &[&result]) } else { result }
    }
}
