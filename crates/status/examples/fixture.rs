//! Serves the page for a pool that does not exist: `cargo run --example fixture -- 256`.

#![expect(clippy::print_stdout, reason = "an example prints its address")]

use brigade_metrics::PoolSnapshot;
use brigade_status::{Source, StatusServer};
use brigade_testkit_core::example_snapshot;

struct Fixture(u32);

impl Source for Fixture {
    fn snapshot(&self) -> Option<PoolSnapshot> {
        serde_json::from_value(example_snapshot(self.0)).ok()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let workers = arguments.next().map_or(Ok(2), |number| number.parse())?;
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let server = StatusServer::serve(address.as_str(), Fixture(workers))?;
    println!("open {server}, and press Return to end");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}
