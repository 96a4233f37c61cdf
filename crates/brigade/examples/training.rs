//! "I load batches for training, and loading must not be the slow part."
//!
//! ```sh
//! cargo run -p brigade --example training
//! ```
//!
//! Workers load batches ahead of the loop that trains, in order, and reproducibly: the seed of a
//! batch depends on its number, and not on the worker. A batch is shared memory that a worker
//! writes once. `image_loader` is the same for files of images.
//!
//! It prints:
//!
//! ```text
//! batch 0: 262144 numbers from 0.24060059 on
//! batch 1: 262144 numbers from 0.21989441 on
//! 8 inputs: 8 delivered (0 failed, 0 of them lost), 0 dropped, 0 pending; at most 8 pending,
//!     2 finished and not received
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it prints its progress")]

use std::error::Error;
use std::thread;

use brigade::{Pool, SharedBuf, worker};

/// Numbers of a batch.
const LENGTH: usize = 1 << 18;

/// Loads a batch: here, random numbers between 0 and 1.
fn load(_batch: u64) -> Result<SharedBuf, String> {
    let mut buffer = worker::alloc(LENGTH * size_of::<f32>()).map_err(|error| error.to_string())?;
    let mut state = worker::seed().unwrap_or_default() | 1;
    for number in buffer.typed_mut::<f32>().map_err(|error| error.to_string())? {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let [first, second, ..] = state.to_le_bytes();
        *number = f32::from(u16::from_le_bytes([first, second])) / 65_536.0;
    }
    Ok(buffer.freeze())
}

fn main() -> Result<(), Box<dyn Error>> {
    brigade::init();
    let pool = Pool::builder().workers(2).build()?;
    // At most two batches for each worker wait, and three are ready for the loop.
    let batches = pool.stream(load).ordered(true).per_worker(2).output(3).seed(7).start()?;
    thread::scope(|scope| {
        scope.spawn(|| {
            // Ends early if the loop below ends, because `put` is an error then.
            let _ = (0..8).try_for_each(|batch| batches.put(batch).map(drop));
            batches.finish();
        });
        for item in &batches {
            let batch = item.result??;
            let numbers = batch.typed::<f32>()?; // where the worker wrote them
            println!("batch {}: {} numbers from {} on", item.id, numbers.len(), numbers[0]);
        }
        println!("{}", batches.report());
        Ok(())
    })
}
