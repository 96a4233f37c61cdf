//! The worker program: it offers a function by name and knows nothing about the program that calls
//! it.
//!
//! See `host.rs`, which starts it.

#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "it explains itself if it is started by hand")]

mod picture;

use std::process::ExitCode;

use brigade::worker::Server;

use picture::{Picture, RESIZE, Resize, VERSION};

/// Scales a picture by copying the nearest pixel of the original.
fn resize(Resize { picture, width }: Resize) -> Result<Picture, String> {
    if width == 0 || picture.width == 0 {
        return Err("a picture needs a width".to_owned());
    }
    let height = picture.pixels.len() / picture.width * width / picture.width;
    let nearest = |row: usize, column: usize| {
        let (x, y) = (column * picture.width / width, row * picture.width / width);
        picture.pixels[y * picture.width + x]
    };
    let pixels = (0..height).flat_map(|row| (0..width).map(move |column| (row, column)));
    let pixels = pixels.map(|(row, column)| nearest(row, column)).collect();
    Ok(Picture { width, pixels })
}

fn main() -> ExitCode {
    Server::new().task(RESIZE, resize).version(VERSION).run(); // a worker never gets beyond this line
    eprintln!("server-worker: started by `server-host`, not by hand");
    ExitCode::from(2)
}
