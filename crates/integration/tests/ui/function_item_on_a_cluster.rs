//! A function without a name, for an executor that may be a cluster.

use brigade::Executor;

fn square(x: u64) -> u64 {
    x * x
}

fn anywhere(executor: &impl Executor) {
    let _ = executor.submit(square, 7);
}

fn main() {}
