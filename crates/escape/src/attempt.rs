//! An attempt, and how it ended.

use std::ffi::CString;

use brigade::TaskError;
use brigade_testkit_sys::misdeeds::system_call;

use crate::targets::Targets;

/// An attempt to do what a sandbox forbids.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    /// The deed, in a few words.
    pub(crate) name: &'static str,
    /// The harm to its own worker, besides the ends that name a layer.
    pub(crate) ruins: Ruins,
    /// Returns the number of the error with which it was refused, or the reason why it was not.
    pub(crate) run: fn(&Targets) -> Result<i32, String>,
}

/// Returns an attempt that does no harm to its own worker.
pub(crate) const fn harmless(
    name: &'static str,
    run: fn(&Targets) -> Result<i32, String>,
) -> Attempt {
    Attempt { name, ruins: Ruins::Nothing, run }
}

/// The harm that an attempt does to its own worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ruins {
    Nothing,
    /// Without a control group, an allocation that fails ends the worker in many ways.
    Allocations,
    /// It takes away what the worker needs to talk with its host.
    Link,
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was refused, by this layer.
    Refused(String),
    /// It was not.
    Escaped(String),
}

/// Judges what has become of the task that made the attempt.
pub(crate) fn judge(
    ruins: Ruins,
    is_isolated: bool,
    outcome: Result<Result<i32, String>, TaskError>,
) -> Verdict {
    match outcome {
        Ok(Ok(libc::ENOENT)) if is_isolated => Verdict::Refused("namespaces (ENOENT)".into()),
        Ok(Ok(libc::EROFS)) if is_isolated => Verdict::Refused("namespaces (EROFS)".into()),
        Err(error) if ruins != Ruins::Nothing && error.is_worker_death() => {
            Verdict::Refused(match ruins {
                Ruins::Allocations => "limit on private memory (the worker aborts)".into(),
                _ => "the host (the worker is gone)".into(),
            })
        }
        Ok(Ok(libc::ENOSYS)) => Verdict::Refused("seccomp, as if the call did not exist".into()),
        Ok(Ok(libc::ENOTTY | libc::EOPNOTSUPP)) => {
            Verdict::Refused("seccomp, as if the file system did not have it".into())
        }
        Ok(Ok(libc::EACCES)) => Verdict::Refused("Landlock (EACCES)".into()),
        Ok(Ok(libc::EXDEV)) => Verdict::Refused("Landlock (EXDEV)".into()),
        Ok(Ok(libc::EPERM)) => Verdict::Refused("Landlock or capabilities (EPERM)".into()),
        Ok(Ok(libc::EMFILE)) => Verdict::Refused("limit on descriptors (EMFILE)".into()),
        Ok(Ok(libc::EAGAIN)) => Verdict::Refused("limit on processes (EAGAIN)".into()),
        Ok(Ok(libc::ENOMEM)) => Verdict::Refused("limit on memory (ENOMEM)".into()),
        Ok(Ok(0)) => Verdict::Refused("nothing is there, or nobody listens".into()),
        Ok(Ok(other)) => {
            Verdict::Escaped(format!("refused by no layer, but by chance: {}", error_of(other)))
        }
        Ok(Err(reason)) => Verdict::Escaped(reason),
        Err(error) if error.is_denied() => match error.kind() {
            brigade::TaskErrorKind::Denied { call, .. } => {
                Verdict::Refused(format!("seccomp ({call})"))
            }
            _ => Verdict::Escaped(error.to_string()),
        },
        Err(error) if error.is_limit() => match error.kind() {
            brigade::TaskErrorKind::LimitExceeded { limit, .. } => {
                Verdict::Refused(format!("limit ({limit})"))
            }
            _ => Verdict::Escaped(error.to_string()),
        },
        Err(error) if error.to_string().contains("broke the protocol") => {
            Verdict::Refused("the host (breach of the protocol)".into())
        }
        Err(error) if error.is_deadline() => Verdict::Refused("deadline".into()),
        Err(error) => Verdict::Escaped(error.to_string()),
    }
}

fn error_of(number: i32) -> std::io::Error {
    std::io::Error::from_raw_os_error(number)
}

/// Makes a system call. Returns its error, or that it worked.
pub(crate) fn tries<const N: usize>(number: i64, arguments: [u64; N]) -> Result<i32, String> {
    refused(call(number, arguments))
}

/// Makes a system call. Returns its result, or the error as a negative number.
pub(crate) fn call<const N: usize>(number: i64, arguments: [u64; N]) -> i64 {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    system_call(number, all)
}

pub(crate) fn refused(result: i64) -> Result<i32, String> {
    match i32::try_from(-result) {
        Ok(error) if result < 0 => Ok(error),
        _ => Err(format!("the call returned {result}")),
    }
}

/// Returns the error of an operation, or that it worked.
pub(crate) fn error_or_escape<T>(result: std::io::Result<T>, what: &str) -> Result<i32, String> {
    match result {
        Ok(_) => Err(what.to_owned()),
        Err(error) => error.raw_os_error().ok_or_else(|| error.to_string()),
    }
}

/// A text that a system call can read.
pub(crate) struct Text(CString);

impl Text {
    pub(crate) fn new(text: &str) -> Self {
        Self(CString::new(text).unwrap_or_default())
    }

    pub(crate) fn at(&self) -> u64 {
        address(self.0.as_ptr())
    }
}

pub(crate) fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

/// The descriptor that stands for the working directory.
#[expect(clippy::cast_sign_loss, reason = "it is what a register holds")]
pub(crate) const HERE: u64 = libc::AT_FDCWD as u64;
