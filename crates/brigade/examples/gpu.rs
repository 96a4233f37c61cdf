//! "I have several GPUs and want one worker on each."
//!
//! ```sh
//! cargo run -p brigade --example gpu
//! ```
//!
//! A pool numbers the places of its workers, from 0. Such a place is a slot. The initializer of a
//! worker opens the device with the number of its slot. A replacement has the same slot, so it
//! opens the same device. The devices of this example are made up.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it prints its results")]

use std::error::Error;

use brigade::{Pool, worker};

/// An open device.
struct Device(u32);

/// Opens the device of this worker.
fn open(devices: u32) -> Result<Device, String> {
    let slot = worker::slot().ok_or("this is no worker")?;
    if slot < devices { Ok(Device(slot)) } else { Err(format!("there is no device {slot}")) }
}

/// Computes on the device of this worker. One input crashes its driver.
fn compute(input: u32) -> Option<(u32, u32)> {
    let Device(number) = worker::state()?;
    if input == 4 {
        std::process::abort();
    }
    Some((*number, input * input))
}

fn main() -> Result<(), Box<dyn Error>> {
    brigade::init();
    let devices = 3;
    let pool = Pool::builder().workers(3).try_initializer(open, devices).build()?;
    pool.warm_up()?;
    for (input, result) in (0..10).zip(pool.map(compute, 0..10).chunk(1)) {
        match result {
            Ok(Some((device, square))) => println!("{input}: {square}, by device {device}"),
            Ok(None) => println!("{input}: no device"),
            Err(error) => println!("{input}: {error}"),
        }
    }
    Ok(())
}
