//! One trait over everything that holds arrays: parameters, buffers, optimiser state, gradients.

use std::collections::BTreeMap;

use crate::array::Array;

/// What a leaf is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A parameter that training changes.
    Parameter,
    /// A parameter that training leaves alone.
    Frozen,
    /// Saved with the model, not trained: running statistics.
    Buffer,
    /// Anything else: optimiser state, gradients, plain arrays.
    State,
}

/// What a visitor is told of a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    /// The names on the way to it, joined by dots.
    pub path: &'a str,
    /// What it is for.
    pub role: Role,
    /// Equal for leaves that are one and the same: a tied parameter is visited at each of its
    /// places, and changes at all of them.
    pub identity: Option<usize>,
}

/// The names on the way to a leaf.
#[derive(Default, Debug)]
pub struct Path(String);

impl Path {
    /// Runs `f` one name further down.
    pub fn with<R>(&mut self, name: impl std::fmt::Display, f: impl FnOnce(&mut Path) -> R) -> R {
        use std::fmt::Write;
        let length = self.0.len();
        if length > 0 {
            self.0.push('.');
        }
        // Writing to a string does not fail.
        let _ = write!(self.0, "{name}");
        let result = f(self);
        self.0.truncate(length);
        result
    }

    /// The names, joined by dots.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Something that holds arrays under names.
///
/// Both walks go over the same leaves in the same order. `#[derive(Module)]` writes them for
/// structs.
pub trait Tree {
    /// Shows `f` every leaf.
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array));

    /// Lets `f` change every leaf.
    fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array));

    /// Tells `f` what a function of the tree may depend on besides the leaves, such as whether a
    /// module trains: `compile` traces again where that differs.
    fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
        let _ = f;
    }
}

/// Every leaf of `tree` with its path; a tied one at each of its places.
pub fn leaves(tree: &(impl Tree + ?Sized)) -> Vec<(String, Array)> {
    let mut out = Vec::new();
    tree.visit(&mut Path::default(), &mut |leaf, array| {
        out.push((leaf.path.to_owned(), array.clone()));
    });
    out
}

impl Tree for Array {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
        f(Leaf { path: path.as_str(), role: Role::State, identity: None }, self);
    }

    fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
        f(Leaf { path: path.as_str(), role: Role::State, identity: None }, self);
    }
}

impl Tree for () {
    fn visit(&self, _: &mut Path, _: &mut dyn FnMut(Leaf<'_>, &Array)) {}

    fn visit_mut(&mut self, _: &mut Path, _: &mut dyn FnMut(Leaf<'_>, &mut Array)) {}
}

macro_rules! forward {
    ($($type:ty),*) => {$(
        impl<T: Tree + ?Sized> Tree for $type {
            fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
                (**self).visit(path, f);
            }

            fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
                (**self).visit_mut(path, f);
            }

            fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
                (**self).visit_settings(f);
            }
        }
    )*};
}

forward!(Box<T>, &mut T);

impl<T: Tree> Tree for Option<T> {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
        if let Some(tree) = self {
            tree.visit(path, f);
        }
    }

    fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
        if let Some(tree) = self {
            tree.visit_mut(path, f);
        }
    }

    fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
        self.iter().for_each(|tree| tree.visit_settings(f));
    }
}

impl<T: Tree> Tree for [T] {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
        for (index, tree) in self.iter().enumerate() {
            path.with(index, |path| tree.visit(path, f));
        }
    }

    fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
        for (index, tree) in self.iter_mut().enumerate() {
            path.with(index, |path| tree.visit_mut(path, f));
        }
    }

    fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
        self.iter().for_each(|tree| tree.visit_settings(f));
    }
}

impl<T: Tree> Tree for Vec<T> {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
        self.as_slice().visit(path, f);
    }

    fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
        self.as_mut_slice().visit_mut(path, f);
    }

    fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
        self.as_slice().visit_settings(f);
    }
}

impl<T: Tree, const N: usize> Tree for [T; N] {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
        self.as_slice().visit(path, f);
    }

    fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
        self.as_mut_slice().visit_mut(path, f);
    }

    fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
        self.as_slice().visit_settings(f);
    }
}

impl<K: std::fmt::Display, T: Tree> Tree for BTreeMap<K, T> {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
        for (name, tree) in self {
            path.with(name, |path| tree.visit(path, f));
        }
    }

    fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
        for (name, tree) in self {
            path.with(name, |path| tree.visit_mut(path, f));
        }
    }

    fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
        self.values().for_each(|tree| tree.visit_settings(f));
    }
}

macro_rules! tuples {
    ($($name:ident $index:tt),*) => {
        impl<$($name: Tree),*> Tree for ($($name,)*) {
            fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
                $(path.with($index, |path| self.$index.visit(path, f));)*
            }

            fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
                $(path.with($index, |path| self.$index.visit_mut(path, f));)*
            }

            fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
                $(self.$index.visit_settings(f);)*
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
