//! A small common language for kernels of one's own: the body of a kernel in C's manner, as Metal, CUDA and
//! WGSL have it in common. It is read into a typed tree ([`Program`]), which [`Program::run`] interprets and
//! which GPU backends lower to their own kernels.
//!
//! ```
//! use cupola_kernel::{Array, Run, Scalar, Signature, parse};
//!
//! let signature = Signature {
//!     inputs: vec![Array { name: "x".into(), scalar: Scalar::F32, rank: 1 }],
//!     outputs: vec![Array { name: "y".into(), scalar: Scalar::F32, rank: 1 }],
//!     ..Signature::default()
//! };
//! let program = parse("uint i = thread_position_in_grid.x; y[i] = x[i] * 2;", "", &signature)?;
//! let x: Vec<u8> = [1f32, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
//! let mut y = vec![0; 8];
//! let run = Run { shapes: vec![vec![2], vec![2]], ..Run::new([2, 1, 1], [2, 1, 1]) };
//! program.run(&run, &[&x], &mut [&mut y])?;
//! assert_eq!(y[4..], 4f32.to_le_bytes());
//! # Ok::<(), cupola_kernel::Error>(())
//! ```

#![forbid(unsafe_code)]

mod error;
mod lex;
mod parse;
mod run;
mod tree;
mod types;

pub use error::{Error, Pos};
pub use parse::{Array, Parameter, Signature, is_identifier, is_name, parse};
pub use run::Run;
pub use tree::{
    Access, Atomic, Axis, Binary, Builtin, Compare, Expr, Function, Kind, Math, Memory, Place,
    Program, Stmt, Unary, Variable,
};
pub use types::{Scalar, Ty};
