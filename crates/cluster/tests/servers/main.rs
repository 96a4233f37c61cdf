//! Clients and nodes of real servers. This program is also the nodes and their workers.

mod client;
mod login;
mod node;
mod permissions;
mod three_servers;

use std::pin::{Pin, pin};

use tokio::runtime::Runtime;

/// Runs a future. The runtime's code for it is compiled once.
fn block_on<T>(runtime: &Runtime, future: impl Future<Output = T>) -> T {
    fn run(runtime: &Runtime, future: Pin<&mut dyn Future<Output = ()>>) {
        runtime.block_on(future);
    }
    let mut result = None;
    run(runtime, pin!(async { result = Some(future.await) }));
    result.unwrap()
}

/// Runs a future on a new runtime of this thread.
fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    block_on(&runtime.unwrap(), future)
}

/// Connects a client, by the function that the cluster has compiled.
async fn connect(urls: &str) -> async_nats::Client {
    async_nats::connect(urls.split(',').map(str::trim).collect::<Vec<_>>()).await.unwrap()
}

brigade::__before_main!(node::worker_or_node);
