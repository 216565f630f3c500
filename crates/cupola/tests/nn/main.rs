//! Modules, layers, losses, optimisers and their files.

mod derive;
mod files;
mod layers;
mod losses;
mod optimizers;
mod reference;
mod training;
