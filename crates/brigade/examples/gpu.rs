//! "I have several GPUs and want one worker on each."
//!
//! ```sh
//! cargo run -p brigade --example gpu
//! ```
//!
//! A pool numbers the places of its workers, from 0. Such a place is a slot. `env_per_slot` shows
//! each worker the device with the number of its slot, and the initializer opens it. A replacement
//! has the same slot, so it opens the same device. The devices of this example are made up.
//!
//! It prints:
//!
//! ```text
//! 0: 0, by device 0
//! 1: 1, by device 1
//! 2: 4, by device 2
//! 3: 9, by device 0
//! 4: task 5, item 4 lost its worker (pid 19993): SIGABRT (signal 6), aborted, after 6.032ms
//! 5: 25, by device 2
//! 6: 36, by device 1
//! 7: 49, by device 2
//! 8: 64, by device 1
//! 9: 81, by device 2
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it prints its results")]

use std::error::Error;

use brigade::{Pool, worker};

/// An open device.
struct Device(u32);

/// Opens the device that the environment names, as a library would.
fn open((): ()) -> Result<Device, Box<dyn Error>> {
    Ok(Device(std::env::var("CUDA_VISIBLE_DEVICES")?.parse()?))
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
    let pool = Pool::builder()
        .workers(3)
        .env_per_slot(|slot| [("CUDA_VISIBLE_DEVICES", slot.to_string())])
        .try_initializer(open, ())
        .build()?;
    pool.warm_up()?;
    for (input, result) in pool.map(compute, 0..10).chunk(1).with_inputs() {
        match result {
            Ok(Some((device, square))) => println!("{input}: {square}, by device {device}"),
            Ok(None) => println!("{input}: no device"),
            Err(error) => println!("{input}: {error}"),
        }
    }
    Ok(())
}
