//! The work: decodes a picture, scales it down, and encodes it.

use std::io::Cursor;
use std::thread;
use std::time::Duration;

use image::ImageFormat;
use serde::{Deserialize, Serialize};

/// Longest side of a thumbnail.
const SIDE: u32 = 128;

/// The query of a request, which makes the decoder misbehave.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Manner {
    /// Aborts the process if it is there.
    crash: Option<String>,
    /// Milliseconds to sleep first.
    delay: Option<u64>,
}

/// Returns the thumbnail as a JPEG.
pub(crate) fn thumbnail(picture: &[u8], manner: &Manner) -> Result<Vec<u8>, String> {
    if let Some(delay) = manner.delay {
        thread::sleep(Duration::from_millis(delay));
    }
    if manner.crash.is_some() {
        std::process::abort();
    }
    let picture = image::load_from_memory(picture).map_err(|error| error.to_string())?;
    let small = picture.thumbnail(SIDE, SIDE).into_rgb8();
    let mut jpeg = Cursor::new(Vec::new());
    small.write_to(&mut jpeg, ImageFormat::Jpeg).map_err(|error| error.to_string())?;
    Ok(jpeg.into_inner())
}
