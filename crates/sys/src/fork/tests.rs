//! Compares copies of this process, and runs the checks of others in one.

use super::*;

/// Runs `check` in a copy of this process; returns `true` if it returned `true` there.
pub(crate) fn in_a_copy(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child only makes system calls and uses atomics, and ends without running any code
    // of the parent's.
    match unsafe { libc::fork() } {
        0 => {
            let check = std::panic::AssertUnwindSafe(check);
            let code = i32::from(!std::panic::catch_unwind(check).unwrap_or(false));
            // SAFETY: it ends the process.
            unsafe { libc::_exit(code) }
        }
        pid => {
            assert!(pid > 0, "no fork");
            let mut status = 0;
            // SAFETY: the child is ours and nobody else waits for it.
            assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
            status == 0
        }
    }
}

#[test]
fn a_copy_is_not_the_origin_and_has_its_own() {
    let origin = Origin::here();
    assert!(in_a_copy(|| !origin.is_here() && Origin::here().is_here()));
    assert!(origin.is_here(), "a copy has changed the original");
    assert_eq!(Origin::here(), origin);
}

#[test]
fn a_copy_of_a_copy_without_a_generation_is_not_the_origin() {
    let origin = Origin::here();
    assert!(in_a_copy(|| in_a_copy(|| !origin.is_here())));
}

#[test]
fn a_copy_of_a_copy_is_neither_of_its_ancestors() {
    let origin = Origin::here();
    assert!(in_a_copy(|| {
        let first = Origin::here();
        in_a_copy(|| !origin.is_here() && !first.is_here())
    }));
}
