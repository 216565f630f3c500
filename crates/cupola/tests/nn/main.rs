//! Modules, layers, losses, optimisers and their files.

mod derive;
mod edges;
mod files;
mod layers;
mod losses;
mod mlx;
mod optimizers;
mod reference;
mod training;
