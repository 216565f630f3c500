//! What a module is made of: a walk over its cells that needs no exclusive access.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use cupola_core::tree::{Leaf, Path, Tree};
use cupola_core::{Array, DType, Device, Shape, ops};

use super::cell::{Buffer, Mode, Param, change_buffer, change_param};

/// One cell of a module.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// A parameter.
    Param(&'a Param),
    /// A buffer.
    Buffer(&'a Buffer),
    /// A mode.
    Mode(&'a Mode),
}

/// Something that a module may hold: cells, modules, containers of them, and plain values, which
/// hold no cells.
///
/// `#[derive(Module)]` writes it. A field whose type does not implement it must be marked
/// `#[module(skip)]`, so that no parameter is ever left out by accident. Arrays are constants of
/// the module: neither trained nor saved.
///
/// ```compile_fail,E0277
/// use std::collections::HashMap;
/// use cupola::nn::{Linear, Module};
///
/// // The order of a hash map changes from run to run: a `BTreeMap` is a module.
/// #[derive(Module)]
/// struct Heads {
///     by_name: HashMap<String, Linear>,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can be no part of a module",
    note = "derive `Module` for it, or mark the field `#[module(skip)]` if it holds no parameters"
)]
pub trait Parts {
    /// Shows `f` every cell with its path; a tied one at each of its places.
    fn parts(&self, path: &mut Path, f: &mut dyn FnMut(&str, Part<'_>));
}

/// [`Tree::visit`] of a type that is made of parts.
pub fn visit_leaves(
    parts: &(impl Parts + ?Sized),
    path: &mut Path,
    f: &mut dyn FnMut(Leaf<'_>, &Array),
) {
    parts.parts(path, &mut |at, part| {
        // The cells' own visits put nothing but the path in front.
        let mut path = Path::default();
        path.with(at, |path| match part {
            Part::Param(param) => param.visit(path, f),
            Part::Buffer(buffer) => buffer.visit(path, f),
            Part::Mode(_) => {}
        });
    });
}

/// [`Tree::visit_mut`] of a type that is made of parts.
pub fn visit_leaves_mut(
    parts: &(impl Parts + ?Sized),
    path: &mut Path,
    f: &mut dyn FnMut(Leaf<'_>, &mut Array),
) {
    parts.parts(path, &mut |at, part| match part {
        Part::Param(param) => change_param(param, at, f),
        Part::Buffer(buffer) => change_buffer(buffer, at, f),
        Part::Mode(_) => {}
    });
}

/// [`Tree::visit_settings`] of a type that is made of parts: what is frozen, and what trains.
pub fn visit_settings(parts: &(impl Parts + ?Sized), f: &mut dyn FnMut(u64)) {
    parts.parts(&mut Path::default(), &mut |_, part| match part {
        Part::Param(param) => param.visit_settings(f),
        Part::Mode(mode) => mode.visit_settings(f),
        Part::Buffer(_) => {}
    });
}

macro_rules! cells {
    ($($cell:ident),*) => {$(
        impl Parts for $cell {
            fn parts(&self, path: &mut Path, f: &mut dyn FnMut(&str, Part<'_>)) {
                f(path.as_str(), Part::$cell(self));
            }
        }
    )*};
}

cells!(Param, Buffer, Mode);

macro_rules! plain {
    ($($type:ty),* $(,)?) => {$(
        impl Parts for $type {
            fn parts(&self, _: &mut Path, _: &mut dyn FnMut(&str, Part<'_>)) {}
        }
    )*};
}

plain!(
    (),
    bool,
    char,
    u8,
    u16,
    u32,
    u64,
    usize,
    i8,
    i16,
    i32,
    i64,
    isize,
    f32,
    f64,
    String,
    &'static str,
    std::path::PathBuf,
    DType,
    Device,
    Shape,
    Array,
    ops::DataFormat,
    ops::ConvOptions,
    ops::PoolOptions,
);

impl<T> Parts for PhantomData<T> {
    fn parts(&self, _: &mut Path, _: &mut dyn FnMut(&str, Part<'_>)) {}
}

macro_rules! forward {
    ($($type:ty),*) => {$(
        impl<T: Parts + ?Sized> Parts for $type {
            fn parts(&self, path: &mut Path, f: &mut dyn FnMut(&str, Part<'_>)) {
                (**self).parts(path, f);
            }
        }
    )*};
}

forward!(Box<T>, &mut T, Arc<T>);

impl<T: Parts> Parts for Option<T> {
    fn parts(&self, path: &mut Path, f: &mut dyn FnMut(&str, Part<'_>)) {
        if let Some(inner) = self {
            inner.parts(path, f);
        }
    }
}

impl<T: Parts> Parts for [T] {
    fn parts(&self, path: &mut Path, f: &mut dyn FnMut(&str, Part<'_>)) {
        for (index, inner) in self.iter().enumerate() {
            path.with(index, |path| inner.parts(path, f));
        }
    }
}

impl<T: Parts> Parts for Vec<T> {
    fn parts(&self, path: &mut Path, f: &mut dyn FnMut(&str, Part<'_>)) {
        self.as_slice().parts(path, f);
    }
}

impl<T: Parts, const N: usize> Parts for [T; N] {
    fn parts(&self, path: &mut Path, f: &mut dyn FnMut(&str, Part<'_>)) {
        self.as_slice().parts(path, f);
    }
}

impl<K: std::fmt::Display, T: Parts> Parts for BTreeMap<K, T> {
    fn parts(&self, path: &mut Path, f: &mut dyn FnMut(&str, Part<'_>)) {
        for (name, inner) in self {
            path.with(name, |path| inner.parts(path, f));
        }
    }
}

macro_rules! tuples {
    ($($name:ident $index:tt),*) => {
        impl<$($name: Parts),*> Parts for ($($name,)*) {
            fn parts(&self, path: &mut Path, f: &mut dyn FnMut(&str, Part<'_>)) {
                $(path.with($index, |path| self.$index.parts(path, f));)*
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
