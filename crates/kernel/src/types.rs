//! The types of elements and of values.

/// The type of an element, or of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scalar {
    /// True or false, a byte.
    Bool,
    /// 8 bits, unsigned.
    U8,
    /// 8 bits, signed.
    I8,
    /// 16 bits, unsigned.
    U16,
    /// 16 bits, signed.
    I16,
    /// 32 bits, unsigned.
    U32,
    /// 32 bits, signed.
    I32,
    /// 64 bits, unsigned.
    U64,
    /// 64 bits, signed.
    I64,
    /// Half precision.
    F16,
    /// The upper half of single precision.
    BF16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

/// The type of a value: what elements become as soon as something is computed with them. As in C, integers of
/// less than 32 bits become `int`; halves become `float`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ty {
    /// True or false.
    Bool,
    /// `int`; wraps.
    I32,
    /// `uint`; wraps.
    U32,
    /// `long`; wraps.
    I64,
    /// `ulong`; wraps.
    U64,
    /// `float`.
    F32,
    /// `double`.
    F64,
}

/// Names of types.
const NAMES: [(&str, Scalar); 37] = [
    ("bool", Scalar::Bool),
    ("char", Scalar::I8),
    ("int8", Scalar::I8),
    ("int8_t", Scalar::I8),
    ("i8", Scalar::I8),
    ("uchar", Scalar::U8),
    ("uint8", Scalar::U8),
    ("uint8_t", Scalar::U8),
    ("u8", Scalar::U8),
    ("short", Scalar::I16),
    ("int16", Scalar::I16),
    ("int16_t", Scalar::I16),
    ("ushort", Scalar::U16),
    ("uint16", Scalar::U16),
    ("uint16_t", Scalar::U16),
    ("int", Scalar::I32),
    ("int32", Scalar::I32),
    ("int32_t", Scalar::I32),
    ("uint", Scalar::U32),
    ("uint32", Scalar::U32),
    ("uint32_t", Scalar::U32),
    ("long", Scalar::I64),
    ("int64", Scalar::I64),
    ("int64_t", Scalar::I64),
    ("ptrdiff_t", Scalar::I64),
    ("ulong", Scalar::U64),
    ("uint64", Scalar::U64),
    ("uint64_t", Scalar::U64),
    ("size_t", Scalar::U64),
    ("half", Scalar::F16),
    ("float16_t", Scalar::F16),
    ("__half", Scalar::F16),
    ("bfloat", Scalar::BF16),
    ("bfloat16_t", Scalar::BF16),
    ("__nv_bfloat16", Scalar::BF16),
    ("float", Scalar::F32),
    ("double", Scalar::F64),
];

impl Scalar {
    /// The type of that name.
    pub fn named(name: &str) -> Option<Scalar> {
        NAMES.iter().find(|(known, _)| *known == name).map(|&(_, scalar)| scalar)
    }

    /// Its name in the language.
    pub fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::U8 => "uchar",
            Scalar::I8 => "char",
            Scalar::U16 => "ushort",
            Scalar::I16 => "short",
            Scalar::U32 => "uint",
            Scalar::I32 => "int",
            Scalar::U64 => "ulong",
            Scalar::I64 => "long",
            Scalar::F16 => "half",
            Scalar::BF16 => "bfloat",
            Scalar::F32 => "float",
            Scalar::F64 => "double",
        }
    }

    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            Scalar::Bool | Scalar::U8 | Scalar::I8 => 1,
            Scalar::U16 | Scalar::I16 | Scalar::F16 | Scalar::BF16 => 2,
            Scalar::U32 | Scalar::I32 | Scalar::F32 => 4,
            Scalar::U64 | Scalar::I64 | Scalar::F64 => 8,
        }
    }

    /// What holds a value of it: of unsigned integers of less than 32 bits `uint`.
    pub fn register(self) -> Ty {
        match self {
            Scalar::Bool => Ty::Bool,
            Scalar::U8 | Scalar::U16 | Scalar::U32 => Ty::U32,
            Scalar::I8 | Scalar::I16 | Scalar::I32 => Ty::I32,
            Scalar::U64 => Ty::U64,
            Scalar::I64 => Ty::I64,
            Scalar::F16 | Scalar::BF16 | Scalar::F32 => Ty::F32,
            Scalar::F64 => Ty::F64,
        }
    }

    /// Whether its register holds more values than it does.
    pub fn is_narrow(self) -> bool {
        matches!(
            self,
            Scalar::U8 | Scalar::I8 | Scalar::U16 | Scalar::I16 | Scalar::F16 | Scalar::BF16
        )
    }
}

impl Ty {
    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Ty::F32 | Ty::F64)
    }

    /// Whether it is an integer that can be negative.
    pub fn is_signed(self) -> bool {
        matches!(self, Ty::I32 | Ty::I64)
    }

    /// Whether it has 64 bits.
    pub fn is_wide(self) -> bool {
        matches!(self, Ty::I64 | Ty::U64 | Ty::F64)
    }

    /// The element of the same values.
    pub fn scalar(self) -> Scalar {
        match self {
            Ty::Bool => Scalar::Bool,
            Ty::I32 => Scalar::I32,
            Ty::U32 => Scalar::U32,
            Ty::I64 => Scalar::I64,
            Ty::U64 => Scalar::U64,
            Ty::F32 => Scalar::F32,
            Ty::F64 => Scalar::F64,
        }
    }

    /// What arithmetic of the two gives: C's usual conversions.
    pub fn common(self, other: Ty) -> Ty {
        let rank = |ty: Ty| match ty {
            Ty::Bool | Ty::I32 => 0,
            Ty::U32 => 1,
            Ty::I64 => 2,
            Ty::U64 => 3,
            Ty::F32 => 4,
            Ty::F64 => 5,
        };
        let larger = if rank(self) >= rank(other) { self } else { other };
        if larger == Ty::Bool { Ty::I32 } else { larger }
    }

    /// The bits of a number.
    pub fn bits(self, v: f64) -> u64 {
        match self {
            Ty::Bool => u64::from(v != 0.0),
            Ty::I32 => u64::from(v as i32 as u32),
            Ty::U32 => u64::from(v as u32),
            Ty::I64 => v as i64 as u64,
            Ty::U64 => v as u64,
            Ty::F32 => u64::from((v as f32).to_bits()),
            Ty::F64 => v.to_bits(),
        }
    }
}
