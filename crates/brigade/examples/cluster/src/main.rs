//! "A nightly batch runs on ten machines": counts primes, over NATS.
//!
//! Start a server, as many nodes as there are machines, and a client:
//!
//! ```text
//! nats-server -js
//! cargo build --release -p brigade-example-cluster
//! target/release/cluster node nats://localhost
//! target/release/cluster count nats://localhost 100000000
//! ```
//!
//! The client uses a named batch: if it is killed, the next one with the same limit goes on.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::env;
use std::error::Error;
use std::ops::Range;

use brigade::Key;
use brigade::cluster::{Cluster, Node};

/// The key that client and nodes share: the name travels, the types are checked by the compiler.
static COUNT_PRIMES: Key<Range<u64>, u64> = Key::new("count-primes/1", count_primes);

/// Length of the range of one task.
const STEP: u64 = 100_000;

fn count_primes(range: Range<u64>) -> u64 {
    let is_prime = |number: &u64| {
        let mut divisors = 2..=number.isqrt();
        *number >= 2 && !divisors.any(|divisor| number.is_multiple_of(divisor))
    };
    range.filter(is_prime).count() as u64
}

fn main() -> Result<(), Box<dyn Error>> {
    brigade::init();
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["node", url] => {
            let status = Node::builder().url(url).register(&COUNT_PRIMES).run()?;
            println!("{} has recorded {} outcomes", status.name, status.recorded);
        }
        ["count", url, limit] => println!("{} primes", count(url, limit.parse()?)?),
        _ => return Err("usage: cluster node URL | cluster count URL LIMIT".into()),
    }
    Ok(())
}

fn count(url: &str, limit: u64) -> Result<u64, Box<dyn Error>> {
    let cluster = Cluster::connect(url)?;
    let batch = cluster.batch(&format!("primes-below-{limit}"))?;
    let starts = (0..limit).step_by(usize::try_from(STEP)?);
    let ranges = starts.map(|start| start..limit.min(start + STEP));
    let mut primes = 0;
    for found in batch.map_unordered(&COUNT_PRIMES, ranges).chunk(1) {
        primes += found?;
    }
    Ok(primes)
}
