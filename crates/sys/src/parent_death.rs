//! Ends a worker when its host ends.

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::process::parent_pid;

pub use crate::error::ParentGone;

/// Makes the kernel kill this process when the thread of `host` that started it ends.
///
/// The kernel sends nothing for a parent that is already dead, so the parent is compared
/// afterwards.
///
/// # Errors
/// [`ParentGone`] if the parent is not `host`, or no longer.
pub fn bind(host: u32) -> Result<(), ParentGone> {
    // Does not fail for a valid signal.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let parent = parent_pid();
    if parent == host { Ok(()) } else { Err(ParentGone { host, parent }) }
}

/// Undoes [`bind`], for moments in which this process must clean up after itself.
pub fn unbind() {
    let _ = set_parent_process_death_signal(None);
}
