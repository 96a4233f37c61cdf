//! Starts: from the order of the scheduler to a worker that gets tasks.
//!
//! Protocol:
//! - The spawner's thread starts every process, or asks the fork server (a zygote) to. A start that
//!   fails is an event like any other: the scheduler decides on the next one.
//! - The worker's attendant does the handshake, with a deadline. Then, in this order, its slot gets
//!   the connection (`worker_slot`), the reaper watches the process, and the scheduler learns that
//!   the worker is ready (`attendant`). So a death is noticed however early it comes.
//! - What happens to processes afterwards comes in through `supervised`; calls of users that change
//!   the number of workers come in through `lifecycle`, and wait without the core's lock.

pub(super) mod attendant;
pub(super) mod lifecycle;
pub(super) mod supervised;
pub(super) mod worker_slot;
