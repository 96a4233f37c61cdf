//! A worker's end when its host ends.

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::process::parent_pid;

pub use crate::error::ParentGone;

/// Has the kernel kill this process when the thread of `host` that started it ends.
///
/// The kernel sends nothing for a parent that is dead already, so the parent is compared afterwards.
///
/// # Errors
/// [`ParentGone`] when the parent is not `host` (any more).
pub fn bind(host: u32) -> Result<(), ParentGone> {
    // Fails for no valid signal.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let parent = parent_pid();
    if parent == host { Ok(()) } else { Err(ParentGone { host, parent }) }
}

/// Undoes `bind`, for the moments in which this process must clean up after itself.
pub fn unbind() {
    let _ = set_parent_process_death_signal(None);
}
