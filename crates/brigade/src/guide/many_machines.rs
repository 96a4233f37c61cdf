//! Many machines: the same tasks on a cluster.
//!
//! # The parts
//!
//! A *client* is a program that submits tasks. A *node* is a program that runs them, in a pool of
//! its own. Between them stands a [NATS](https://nats.io) server, which keeps the tasks. Client and
//! node know only the server, and come and go at any time.
//!
//! ```sh
//! cargo add brigade --features cluster
//! nats-server -js    # from the package `nats-server` of Debian, for example
//! ```
//!
//! # A key
//!
//! Client and node are two programs, so a function needs a name. A [`Key`](crate::Key) is a name,
//! the types, and the function. The compiler checks the types on both sides.
//!
//! ```no_run
//! # #[cfg(feature = "cluster")]
//! # mod example {
//! use brigade::Key;
//! use brigade::cluster::{Cluster, Node};
//!
//! static SQUARE: Key<u64, u64> = Key::new("square/1", |x| x * x);
//!
//! # pub
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     brigade::init();
//!     let url = "nats://127.0.0.1:4222";
//!     if std::env::args().any(|argument| argument == "node") {
//!         Node::builder().url(url).register(&SQUARE).run()?; // until SIGTERM
//!         return Ok(());
//!     }
//!     let cluster = Cluster::connect(url)?;
//!     println!("{}", cluster.submit(&SQUARE, 7)?.wait()?);
//!     for square in cluster.map(&SQUARE, 0..1_000) {
//!         println!("{}", square?);
//!     }
//!     Ok(())
//! }
//! # }
//! # #[cfg(feature = "cluster")]
//! # use example::main;
//! # #[cfg(not(feature = "cluster"))]
//! # fn main() {}
//! ```
//!
//! Start two nodes and a client, each in a terminal of its own:
//!
//! ```sh
//! cargo run -- node
//! cargo run -- node
//! cargo run
//! ```
//!
//! A node prints nothing, and runs until it is ended. A client that finds no node waits until there
//! is one. [`brigade cluster status URL`](super#the-command) shows which nodes there are.
//!
//! Change the name when the types or the meaning change: `square/2`. Then old nodes and new clients
//! do not mistake each other.
//!
//! # What is different from a pool
//!
//! | | pool | cluster |
//! |---|---|---|
//! | a task runs | once, plus its retries | at least once: a node may die after the task ran |
//! | outcome | one | one: the first that is recorded |
//! | function | any | a key |
//! | large data | shared memory | the object store of the server |
//! | queue deadline | yes | no: machines share no clock |
//!
//! So a task must tolerate running twice.
//!
//! # A batch
//!
//! A *batch* is a set of tasks with a name. A client that dies and starts again continues the batch
//! under the same name. It submits nothing twice.
//!
//! ```no_run
//! # #[cfg(feature = "cluster")]
//! # mod example {
//! # use brigade::Key;
//! # use brigade::cluster::Cluster;
//! # static SQUARE: Key<u64, u64> = Key::new("square/1", |x| x * x);
//! # pub fn run(cluster: Cluster) -> Result<(), Box<dyn std::error::Error>> {
//! let batch = cluster.batch("squares-2026-11-28")?;
//! for square in batch.map(&SQUARE, 0..1_000_000) {
//!     println!("{}", square?);
//! }
//! # Ok(())
//! # }
//! # }
//! # fn main() {}
//! ```
//!
//! # Which node?
//!
//! `Requirements` says what a task requires: cores, memory, labels. A node offers what it has. A
//! label such as `gpu` keeps tasks on the machines that have one. Tasks that share the pieces of a
//! node say how many they need, as in a pool: `.needs("gpu", 1)`.
//!
//! # A task that kills nodes
//!
//! A task that ends several nodes is given up. It becomes a *dead letter*, with the history of its
//! attempts. `brigade cluster dead URL` lists them, and `--requeue` tries again.
//!
//! # Commands
//!
//! A list of commands needs no program of yours:
//!
//! ```sh
//! brigade node --nats nats://server:4222 --allow-commands     # on each machine
//! brigade run --cluster nats://server:4222 commands.txt
//! ```
//!
//! All guarantees are in
//! [clusters](https://github.com/brigade-rs/brigade/blob/main/docs/cluster.md).
//!
//! Next: [the checklist for production](super::production).
