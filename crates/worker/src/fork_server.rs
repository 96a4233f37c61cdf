//! The server that forks the workers of a pool (a zygote, as in Android), in a process that would
//! otherwise be a worker.
//!
//! It has run `main` up to `init`, and then `preload`, if there is one. It has a single thread,
//! waits for requests without a system call in between, and runs no code of the user's any more.
//! Each worker is a copy of it, with the same parent, and goes on with the handshake over its own
//! control socket. The host ends the server by SIGKILL, or by closing its end.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

use brigade_sys::control::ControlSocket;
use brigade_sys::executable::BuildIdentity;
use brigade_sys::fork::Origin;
use brigade_sys::inherited::Inherited;
use brigade_sys::sealed::SealedView;
use brigade_sys::sibling::{self, Copied, Copier};
use brigade_sys::{clock, confine, crash, descriptors, environment, huge_pages, parent_death};
use brigade_wire::fork::{ForkRequest, FromForkServer, Serve};
use brigade_wire::handshake::{FromWorkerControl, ToWorkerControl};

use crate::control::{Control, failed_to};
use crate::error::{CannotStart, TOO_FEW};
use crate::exit_code;
use crate::functions::{Functions, Named};
use crate::marker::Marker;
use crate::program::Program;
use crate::{panic_capture, setup};

/// Makes this process a fork server. Returns in each copy, with its control socket.
pub(crate) fn serve(
    control: Control,
    marker: &Marker,
    program: &Program,
    serve: &Serve,
    descriptors: Vec<OwnedFd>,
) -> Result<Control, CannotStart> {
    let mut given = descriptors.into_iter();
    let mut next = || given.next().ok_or(TOO_FEW);
    descriptors::name_process("brigade-fork");
    let copier = match Copier::new(next()?) {
        Ok(copier) => copier,
        Err(reason) => {
            let threads = confine::threads().map_or(1, |threads| threads as u64);
            end(&control, FromForkServer::Unsuitable { reason, threads })
        }
    };
    panic_capture::install();
    let small_pages = match serve.preload {
        None => 0,
        Some(offset) => {
            let argument = SealedView::open(next()?).map_err(CannotStart::Argument)?;
            preload(&control, serve, offset, argument)?
        }
    };
    // Each copy finds these.
    clock::now();
    let _ = crash::prepare();
    let _ = Origin::here();
    sibling::flush_output();
    let (ours, _) = Inherited::now().map_err(failed_to("read /proc"))?;
    send(&control, FromForkServer::Serving { program: program.describe(), small_pages })?;
    loop {
        let (message, descriptors) = match control.receive() {
            Ok(received) => received,
            Err(CannotStart::ControlClosed) => sibling::end_at_once(exit_code::STOPPED),
            Err(error) => return Err(error),
        };
        let ToWorkerControl::Fork(request) = message else {
            return Err(CannotStart::Unexpected("another packet than a request to a fork server"));
        };
        match copier.copy() {
            Ok(Copied::Copy) => {
                drop(control);
                return become_worker(marker, &request, &ours, descriptors);
            }
            Ok(Copied::Original(pidfd)) => {
                let forked = FromWorkerControl::ForkServer(FromForkServer::Forked);
                control.send_with(&forked, &[pidfd.as_fd()])?;
            }
            Err(error) => {
                send(&control, FromForkServer::NotForked { reason: error.to_string() })?;
            }
        }
    }
}

/// Calls `preload`, and returns the bytes of private memory that are in small pages then. Ends this
/// process if it fails.
fn preload(
    control: &Control,
    serve: &Serve,
    offset: u64,
    argument: SealedView,
) -> Result<u64, CannotStart> {
    send(control, FromForkServer::Preloading)?;
    let functions = Functions::new(Named::new(), BuildIdentity::from_bytes(serve.identity));
    let called = setup::prepare(&functions, "`preload`", offset, argument);
    // A copy would find locks that a thread holds which it does not have.
    let called = called.and_then(|()| {
        sibling::single_thread()
            .map_err(|reason| format!("{reason} after `preload`; end them, or use the initializer"))
    });
    match called {
        Ok(()) => Ok(huge_pages::collapse()),
        Err(reason) => end(control, FromForkServer::PreloadFailed { reason }),
    }
}

/// Gives a copy of the server what the host gives to a new process, and returns its control socket.
fn become_worker(
    marker: &Marker,
    request: &ForkRequest,
    ours: &Inherited,
    descriptors: Vec<OwnedFd>,
) -> Result<Control, CannotStart> {
    parent_death::bind(marker.host)?;
    sibling::lead_group();
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next().ok_or(TOO_FEW);
    let control = Control::new(ControlSocket::from_fd(next()?));
    // That of the server would be an open file which all copies share.
    let (stdout, stderr) = (next()?, next()?);
    descriptors::empty_stdin()
        .and_then(|()| sibling::replace_output(stdout, stderr))
        .map_err(failed_to("replace its standard streams"))?;
    let moved = sibling::change_folder(next()?);
    moved.map_err(|error| CannotStart::Inherited("folder", error))?;
    if request.environment {
        let entries = SealedView::open(next()?).map_err(CannotStart::Argument)?;
        let replaced = environment::replace(entries.bytes()).map_err(io::Error::other);
        replaced.map_err(|error| CannotStart::Inherited("environment", error))?;
    }
    for _ in 0..request.doors {
        let entered = std::fs::File::from(next()?).write_all(b"0");
        entered.map_err(|error| CannotStart::Inherited("control group", error))?;
    }
    let applied = request.inherited.apply(ours);
    applied.map_err(|(what, error)| CannotStart::Inherited(what, error))?;
    Ok(control)
}

fn send(control: &Control, answer: FromForkServer) -> Result<(), CannotStart> {
    control.send(&FromWorkerControl::ForkServer(answer))
}

/// Sends the reason why this process forks nothing, and ends.
fn end(control: &Control, answer: FromForkServer) -> ! {
    // If this fails, the host is gone, or finds out that this process is.
    let _ = send(control, answer);
    sibling::end_at_once(exit_code::STOPPED)
}
