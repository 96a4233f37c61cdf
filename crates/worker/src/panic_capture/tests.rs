//! Tests of the contents of reports, and of the panics that are not captured.

use std::panic::{panic_any, resume_unwind};

use super::*;

/// Runs a task that must panic and returns the report.
fn panic_of(task: impl FnOnce()) -> PanicReport {
    install();
    *run(task, || ()).expect_err("the task did not panic")
}

#[test]
fn a_report_has_message_location_and_backtrace() {
    let number = 7;
    let line = line!() + 1;
    let report = panic_of(|| panic!("bad number {number}"));
    assert_eq!(report.message, "bad number 7");
    let location = report.location.expect("a location");
    assert!(location.contains(&format!("tests.rs:{line}:")), "{location}");
    // The environment of the tests may disable backtraces, as that of a pool may.
    let wanted = env::var_os("RUST_BACKTRACE").is_none_or(|value| value != "0");
    let has_backtrace = report.backtrace.contains("a_report_has_message_location_and_backtrace");
    assert_eq!(has_backtrace, wanted, "{}", report.backtrace);
}

#[test]
fn literal_messages_and_other_payloads_are_reported() {
    assert_eq!(panic_of(|| panic!("literal")).message, "literal");
    let report = panic_of(|| panic_any(17_u8));
    assert_eq!(report.message, "non-string payload");
    assert!(report.location.is_some());
}

#[test]
fn a_value_passes_through_and_the_next_panic_is_captured() {
    install();
    assert_eq!(run(|| 5, || ()).map_err(|report| report.message), Ok(5));
    assert_eq!(panic_of(|| panic!("after a value")).message, "after a value");
}

#[test]
fn a_panic_payload_may_panic_when_it_is_dropped() {
    struct Bomb(u8);
    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                panic_any(Bomb(self.0 - 1));
            }
        }
    }
    let report = panic_of(|| panic_any(Bomb(2)));
    assert_eq!(report.message, "non-string payload");
    assert!(
        report.location.is_some_and(|location| location.contains("tests.rs")),
        "the location is that of the first panic"
    );
}

#[test]
fn a_caught_panic_is_not_mistaken_for_a_later_one() {
    let report = panic_of(|| {
        let _ = panic::catch_unwind(|| panic!("caught"));
        resume_unwind(Box::new("raised without the hook"));
    });
    assert_eq!(report.message, "raised without the hook");
    assert_eq!((report.location, report.backtrace.as_str()), (None, ""));
}

#[test]
fn a_panic_that_the_task_resumes_keeps_its_location() {
    let report = panic_of(|| {
        let caught = panic::catch_unwind(|| panic!("passed on")).expect_err("it panics");
        resume_unwind(caught);
    });
    assert_eq!(report.message, "passed on");
    assert!(report.location.is_some());
}

#[test]
fn panics_are_captured_only_on_the_task_thread_during_the_task() {
    let elsewhere = || std::thread::spawn(is_running).join().expect("no panic");
    assert!(!is_running());
    let inside = run(|| (is_running(), elsewhere()), || ());
    assert!(matches!(inside, Ok((true, false))));
    assert!(!is_running());
    let _ = panic_of(|| panic!("ended by a panic"));
    assert!(!is_running());
}

#[test]
fn a_long_message_is_cut_at_a_character_boundary() {
    let report = panic_of(|| panic!("x{}", "ö".repeat(MESSAGE_LIMIT)));
    assert_eq!(report.message.len(), MESSAGE_LIMIT - 1);
    assert!(report.message.ends_with('ö'));
    assert!(report.location.is_some(), "a truncated message still matches its note");
}
