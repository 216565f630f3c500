//! A network together with what it was trained for, and its file.

use std::collections::BTreeMap;
use std::path::Path;

use cupola_core::{Array, Error, Result};
use serde::{Deserialize, Serialize};

use super::ConvNet;
use crate::data::{ImageDataset, Normalization};
use crate::io::safetensors;
use crate::nn::Module;

/// What a network was made for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The network, [`ConvNet::ARCHITECTURE`].
    pub architecture: String,
    /// The data set's name.
    pub dataset: String,
    /// The name of each class.
    pub classes: Vec<String>,
    /// How many channels an image has.
    pub channels: usize,
    /// Height and width of an image.
    pub side: usize,
    /// The mean of each channel of the training images, of pixels in 0..=1.
    pub mean: Vec<f32>,
    /// The standard deviation of each channel likewise.
    pub std: Vec<f32>,
}

impl Description {
    /// What a network for `images` is described by.
    ///
    /// # Errors
    ///
    /// Where the images are not square.
    pub fn of(images: &ImageDataset) -> Result<Self> {
        let [height, width, channels] = images.shape();
        if height != width {
            return Err(Error::argument(
                "Description",
                format!("{}: images of {height}×{width} are not square", images.name()),
            ));
        }
        let normalization = images.normalization();
        Ok(Self {
            architecture: ConvNet::ARCHITECTURE.to_owned(),
            dataset: images.name().to_owned(),
            classes: images.classes().to_vec(),
            channels,
            side: height,
            mean: normalization.mean().to_vec(),
            std: normalization.std().to_vec(),
        })
    }

    /// What brings pixels to the scale that the network takes.
    ///
    /// # Errors
    ///
    /// Where the means and deviations are none that a normalisation can have.
    pub fn normalization(&self) -> Result<Normalization> {
        Ok(Normalization::new(self.mean.clone(), self.std.clone())?)
    }

    /// A network of the described shape, with fresh weights.
    pub(super) fn network(&self) -> Result<ConvNet> {
        ConvNet::new(self.channels, self.side, self.classes.len())
    }

    /// As entries of a file's metadata, which sorts them.
    pub(super) fn to_metadata(&self) -> Result<BTreeMap<String, String>> {
        let json = |value: serde_json::Result<String>| {
            value.map_err(|cause| Error::User(format!("metadata: {cause}")))
        };
        let entries = [
            ("architecture", self.architecture.clone()),
            ("dataset", self.dataset.clone()),
            ("classes", json(serde_json::to_string(&self.classes))?),
            ("channels", self.channels.to_string()),
            ("side", self.side.to_string()),
            ("mean", json(serde_json::to_string(&self.mean))?),
            ("std", json(serde_json::to_string(&self.std))?),
        ];
        Ok(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn from_metadata(metadata: &BTreeMap<String, String>) -> Result<Self, String> {
        let entry = |name: &str| {
            metadata.get(name).ok_or_else(|| format!("metadata lacks '{name}': no cupola model"))
        };
        fn parsed<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> Result<T, String> {
            serde_json::from_str(text).map_err(|cause| format!("metadata '{name}': {cause}"))
        }
        Ok(Self {
            architecture: entry("architecture")?.clone(),
            dataset: entry("dataset")?.clone(),
            classes: parsed("classes", entry("classes")?)?,
            channels: parsed("channels", entry("channels")?)?,
            side: parsed("side", entry("side")?)?,
            mean: parsed("mean", entry("mean")?)?,
            std: parsed("std", entry("std")?)?,
        })
    }

    /// Looks whether this describes a network that can be built.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.architecture != ConvNet::ARCHITECTURE {
            return Err(format!(
                "holds the architecture '{}', not '{}'",
                self.architecture,
                ConvNet::ARCHITECTURE
            ));
        }
        let sound = (1..=MAX_CHANNELS).contains(&self.channels)
            && (ConvNet::MIN_SIDE..=MAX_SIDE).contains(&self.side)
            && !self.classes.is_empty()
            && self.mean.len() == self.channels;
        if !sound {
            return Err(format!(
                "describes {} channels with {} means, side {} and {} classes: no such network",
                self.channels,
                self.mean.len(),
                self.side,
                self.classes.len()
            ));
        }
        self.normalization().map(drop).map_err(|error| error.to_string())
    }
}

/// A damaged description must not make us ask for memory without bound.
const MAX_CHANNELS: usize = 1 << 10;
const MAX_SIDE: usize = 1 << 11;

/// A trained network with its description.
#[derive(Debug)]
pub struct Model {
    /// What it was trained for.
    pub description: Description,
    /// The network.
    pub network: ConvNet,
}

impl Model {
    /// Writes the weights and the description. The same model gives the same bytes.
    ///
    /// # Errors
    ///
    /// Where the file cannot be written; one that was there is then as before.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        safetensors::save(path, &self.network.state(), &self.description.to_metadata()?)
    }

    /// Reads a model, in evaluation mode.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, is damaged, or holds no model of this architecture.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (tensors, metadata) = safetensors::load(path)?;
        let wrong = |detail: String| Error::io(path, detail);
        let description = Description::from_metadata(&metadata).map_err(wrong)?;
        description.check().map_err(wrong)?;
        let network = description.network()?;
        fill(&network, &tensors).map_err(wrong)?;
        network.eval();
        Ok(Self { description, network })
    }
}

/// Puts `tensors`, one for each parameter, in place.
pub(super) fn fill(network: &ConvNet, tensors: &BTreeMap<String, Array>) -> Result<(), String> {
    if let Some(name) = network.state().keys().find(|name| !tensors.contains_key(*name)) {
        return Err(format!("lacks the tensor '{name}'"));
    }
    network.update(tensors).map_err(|error| match error {
        Error::Argument { detail, .. } => detail,
        other => other.to_string(),
    })
}
