//! Types that own one descriptor.

/// Implements `AsFd` for a type by the field that owns the descriptor.
///
/// ```
/// use std::os::fd::{AsFd, OwnedFd};
///
/// struct Inbox {
///     file: OwnedFd,
/// }
///
/// brigade_sys::as_fd!(Inbox, file);
///
/// let inbox = Inbox { file: std::fs::File::open("/dev/null")?.into() };
/// assert!(inbox.as_fd().try_clone_to_owned().is_ok());
/// # Ok::<(), std::io::Error>(())
/// ```
#[macro_export]
macro_rules! as_fd {
    ($owner:ident, $field:tt) => {
        impl ::std::os::fd::AsFd for $owner {
            fn as_fd(&self) -> ::std::os::fd::BorrowedFd<'_> {
                ::std::os::fd::AsFd::as_fd(&self.$field)
            }
        }
    };
}
