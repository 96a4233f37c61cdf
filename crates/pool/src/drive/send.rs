//! Sending: from a submission to the frame in a worker's queue.
//!
//! Each worker has one queue of frames, a single-producer, single-consumer ring or a socket. Its
//! producer is the host, whichever thread holds the core's lock; so frames are written under that
//! lock, in the order in which the scheduler decided on them.
//!
//! Protocol:
//! - `submit` passes a task to the scheduler as one event. It waits before that, without the lock,
//!   if the queue is full (`room`), and looks for outcomes after every few submissions.
//! - `carry_out` does what the scheduler orders. A task's state word in the worker's table is armed
//!   before its frame is written, so that a worker never finds a frame without its word. Links
//!   never block the host: the scheduler sends no more than a worker has credit for. If a send
//!   fails all the same, the worker is killed, and its death brings the task back.
//! - A revoke is one compare-and-swap of the state word: either the worker has begun, or it never
//!   will. The scheduler decides what follows from the answer.
//! - A worker is woken only if it sleeps, once for all frames of an event.

pub(super) mod carry_out;
pub(super) mod room;
pub(super) mod submit;
