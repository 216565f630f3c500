//! Data sets and the loader that turns them into batches.
//!
//! A [`Dataset`] gives samples by index; [`DataLoader`] makes batches of them, in an order that the
//! seed and the epoch alone decide, with threads that read ahead. The sets that everybody starts
//! with are read from a folder ([`mnist`], [`fashion_mnist`], [`cifar10`], [`cifar100`]), fetched
//! by `Downloader`, or drawn by the program itself ([`digits`]).

pub mod cifar;
pub mod idx;

mod arrays;
mod augment;
mod collate;
mod dataset;
mod digits;
#[cfg(feature = "download")]
mod download;
mod error;
mod image;
mod loader;
mod normalization;
mod published;
mod rng;
mod stream;
#[cfg(test)]
mod tests;
mod workers;

pub use arrays::ArrayDataset;
pub use augment::{random_crop, random_flip};
pub use collate::Collate;
pub use dataset::{Concat, Dataset, Map, Subset};
pub use digits::{digits, digits_sized};
#[cfg(feature = "download")]
pub use download::{Downloader, Progress};
pub use error::{Error, Result};
pub use image::ImageDataset;
pub use loader::{Builder, ByFunction, ByType, DataLoader, Epoch};
pub use normalization::Normalization;
pub use published::{Published, cifar10, cifar100, cifar100_coarse, fashion_mnist, mnist};
