//! "A plugin is an executable of its own, and may not match my program."
//!
//! ```sh
//! cargo build -p brigade --examples
//! cargo run -p brigade --example server-host
//! ```
//!
//! It resizes a picture in the worker, then makes the common mistakes: a name that the worker does
//! not know, a function of this program, and a worker program that was not updated.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it prints the results and errors of a pool")]

mod picture;

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

use brigade::{Pool, PoolBuilder};

use picture::{Picture, RESIZE, Resize, VERSION};

fn main() -> Result<(), Box<dyn Error>> {
    // No `brigade::init()`: this program is never its own worker.
    let pool = workers()?.worker_version(VERSION).build()?;
    let picture = Picture { width: 4, pixels: b" .:-=+*#%@@%#*+=".to_vec() };
    let job = Resize { picture: picture.clone(), width: 8 };
    let resized = pool.submit::<_, _, Result<Picture, String>, _>(RESIZE, job)?.wait()??;
    show("the picture", &picture);
    show("the picture, resized by another program", &resized);

    let error = pool.submit::<_, _, Picture, _>("rotate", picture.clone())?.wait().unwrap_err();
    println!("\na name that the worker does not know:\n  {error}");

    let error = pool.submit(|picture: Picture| picture.width, picture.clone())?.wait().unwrap_err();
    println!("\na function of this program:\n  {error}");
    pool.shutdown()?;

    let pool = workers()?.worker_version("2.0").build()?;
    let error = pool.submit::<_, _, Picture, _>(RESIZE, picture)?.wait().unwrap_err();
    println!("\na worker program of another version:\n  {error}");
    Ok(())
}

/// Returns a pool builder whose workers are the program next to this one.
fn workers() -> Result<PoolBuilder, Box<dyn Error>> {
    let program: PathBuf = std::env::current_exe()?.with_file_name("server-worker");
    if !program.exists() {
        return Err("build the worker first: cargo build -p brigade --examples".into());
    }
    Ok(Pool::builder().name("pictures").workers(2).worker_command(&Command::new(program)))
}

fn show(title: &str, picture: &Picture) {
    println!("{title}:");
    for row in picture.pixels.chunks(picture.width) {
        println!("  |{}|", String::from_utf8_lossy(row));
    }
}
