//! The types that host and worker share. In a real project this is a small crate that both depend
//! on.

use serde::{Deserialize, Serialize};

/// Incremented when the types below or the functions that use them change.
pub(crate) const VERSION: &str = "1.4";

/// The name of the worker's function, which takes a [`Resize`] and returns a [`Picture`].
pub(crate) const RESIZE: &str = "resize";

/// A picture with eight bits of gray per pixel, row by row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) pixels: Vec<u8>,
}

/// A picture and its new width.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Resize {
    pub(crate) picture: Picture,
    pub(crate) width: usize,
}
