//! Clients and nodes of real servers. This program is also the nodes and their workers.

mod client;
mod login;
mod node;
mod permissions;
mod three_servers;

brigade::__before_main!(node::worker_or_node);
