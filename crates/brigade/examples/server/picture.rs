//! What host and worker agree on; in earnest a small crate that both depend on.

use serde::{Deserialize, Serialize};

/// Goes up when the types below, or what the functions do with them, change.
pub(crate) const VERSION: &str = "1.4";

/// The name of the worker's function; it takes a [`Resize`] and gives a [`Picture`].
pub(crate) const RESIZE: &str = "resize";

/// Eight bits of grey for each pixel, row by row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) pixels: Vec<u8>,
}

/// A picture, and how wide it shall be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Resize {
    pub(crate) picture: Picture,
    pub(crate) width: usize,
}
