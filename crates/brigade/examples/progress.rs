//! "I want a progress bar."
//!
//! ```sh
//! cargo run -p brigade --example progress
//! ```
//!
//! The results of `map_unordered` come as they are ready, so a slow input does not stop the bar.
//! The library itself draws nothing: the bar is that of the crate `indicatif`.
//!
//! It prints:
//!
//! ```text
//! 1723519 has the longest chain: 556 steps
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it prints its result")]

use std::error::Error;

use brigade::Pool;
use indicatif::{ProgressBar, ProgressStyle};

/// Returns the length of the longest chain of Collatz in this part, and its first number.
fn longest_chain(part: u32) -> (u32, u64) {
    let start = 1 + 20_000 * u64::from(part);
    (start..start + 20_000).map(|first| (length(first), first)).max().unwrap_or_default()
}

fn length(mut number: u64) -> u32 {
    let mut steps = 0;
    while number > 1 {
        number = if number.is_multiple_of(2) { number / 2 } else { 3 * number + 1 };
        steps += 1;
    }
    steps
}

fn main() -> Result<(), Box<dyn Error>> {
    brigade::init();
    let pool = Pool::builder().build()?;
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {elapsed} left {eta} {msg}")?;
    let bar = ProgressBar::new(100).with_style(style);
    let (mut longest, mut failed) = ((0, 0), 0);
    for result in bar.wrap_iter(pool.map_unordered(longest_chain, 0..100)) {
        match result {
            Ok(chain) => longest = longest.max(chain),
            Err(error) => {
                failed += 1;
                bar.println(error.to_string()); // above the bar
            }
        }
        bar.set_message(format!("{failed} failed"));
    }
    bar.finish();
    println!("{} has the longest chain: {} steps", longest.1, longest.0);
    Ok(())
}
