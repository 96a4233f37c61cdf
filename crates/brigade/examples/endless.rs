//! "A regex or a script of a user may never end."
//!
//! ```sh
//! cargo run -p brigade --example endless
//! ```
//!
//! A small matcher tries all ways in which a pattern can match, and some patterns have billions.
//! Each match has 200 ms. What takes longer ends with its worker, and the others have their answer.
//!
//! It prints:
//!
//! ```text
//! a*a: true
//! *b: false
//! a?a*: true
//! *a*a*a*a*a*a*a*a*a*b: too slow (task 4 exceeded its deadline of 200ms (ended after
//!     201.914ms))
//! b*: false
//! all of it took 217ms
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it prints its results")]

use std::error::Error;
use std::time::{Duration, Instant};

use brigade::Pool;

/// Returns `true` if the text matches. `*` stands for any characters, `?` for one.
fn matches((pattern, text): (String, String)) -> bool {
    matches_at(pattern.as_bytes(), text.as_bytes())
}

fn matches_at(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((b'*', others)), rest) => {
            matches_at(others, text) || rest.is_some_and(|(_, rest)| matches_at(pattern, rest))
        }
        (Some((wanted, others)), Some((found, rest))) => {
            (*wanted == b'?' || wanted == found) && matches_at(others, rest)
        }
        (Some(_), None) => false,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    brigade::init();
    let pool = Pool::builder().workers(2).deadline(Duration::from_millis(200)).build()?;
    let text = "a".repeat(60);
    let begin = Instant::now();
    let mut handles = Vec::new();
    for pattern in ["a*a", "*b", "a?a*", "*a*a*a*a*a*a*a*a*a*b", "b*"] {
        handles.push((pattern, pool.submit(matches, (pattern.to_owned(), text.clone()))?));
    }
    for (pattern, handle) in handles {
        match handle.wait() {
            Ok(matches) => println!("{pattern}: {matches}"),
            Err(error) if error.is_deadline() => println!("{pattern}: too slow ({error})"),
            Err(error) => return Err(error.into()),
        }
    }
    println!("all of it took {:.0?}", begin.elapsed());
    Ok(())
}
