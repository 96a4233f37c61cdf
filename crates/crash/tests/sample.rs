//! A process that is asked where it is names the functions of its main thread.

use std::os::fd::AsFd;
use std::process;
use std::sync::Arc;

use brigade_crash::{Files, Frame, Origin, Stack};
use brigade_sys::clock::now;
use brigade_sys::control::{ControlSocket, Received};
use brigade_sys::crash::{CrashArea, Notices, WORDS, install};
use brigade_sys::segment::Segment;
use brigade_sys::signals::block_in_thread;
use brigade_testkit_core::BOUND;
use brigade_testkit_core::processes::{self, Signal};

/// The handlers are those of the process, so this is the only test here.
#[test]
fn a_sample_has_the_calls_of_the_thread_and_is_announced() {
    let segment = Arc::new(Segment::create("test", WORDS).unwrap());
    let area = CrashArea::new(&segment, 0).unwrap();
    let (host, worker) = ControlSocket::pair().unwrap();
    let notices = Notices { crashed: vec![1], sampled: vec![2] };
    install(&segment, 0, worker.as_fd(), notices).unwrap();
    // The signal is for the process, and only the main thread, which waits for this one, answers.
    block_in_thread();
    let request = area.ask();
    processes::hit(process::id(), Signal::URG);
    let arrived = match host.receive(Some(now().saturating_add(BOUND)), None).unwrap() {
        Received::Packet { bytes, .. } => bytes,
        other => panic!("{other:?}"),
    };
    assert_eq!((arrived, area.has_answered(request)), (vec![2], true));
    let stack = Stack::new(area.answer(request).unwrap(), Files::OfThisProcess);
    assert!(
        stack.is_main_thread()
            && !stack.is_partial()
            && stack.place().is_some_and(|place| place.contains(" + 0x"))
    );
    let names: Vec<_> = stack.frames().iter().filter_map(Frame::function).collect();
    if cfg!(feature = "backtrace") {
        let main = stack.frames().iter().rfind(|it| it.function() == Some("sample::main"));
        let main = main.unwrap_or_else(|| panic!("{stack}"));
        assert!(main.module().is_some_and(|it| it.starts_with("sample")), "{main:?}");
        assert_eq!((main.origin(), main.is_inlined()), (Origin::Program, false), "{main:?}");
        // The harness has written `main`, so its place is in the file that the compiler read first.
        assert!(main.file().is_some(), "{main:?}");
    } else {
        assert_eq!((names.len(), stack.frames().len()), (0, 1));
    }
    assert_eq!((area.crash(), area.announced()), (None, None));
}
