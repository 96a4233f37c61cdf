//! Deaths: from the end of a process to the outcomes of its tasks.
//!
//! Protocol:
//! - The reaper notices the end by the process's descriptor, but reaps it last: until then its
//!   number cannot be another process's, so that a kill never hits a stranger.
//! - `death` reads what the worker wrote before it died: first its table, which says what was
//!   running, then its outcomes to the last complete one. An outcome that is whole counts.
//! - The scheduler learns of the death in one event, with the attempts that it has `interrupted`.
//!   They fail or begin again; tasks that had not begun go to other workers.
//! - `gone` gives back what was the worker's alone (cores, memory, control group) only once no
//!   process of its own is left.

pub(super) mod death;
pub(super) mod gone;
pub(super) mod interrupted;
