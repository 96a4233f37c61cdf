//! Tests the surroundings of a launched program, and that a failed start leaves nothing behind.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;

use rustix::fs::{MemfdFlags, memfd_create};

use super::*;
use crate::clock::now;
use crate::fork::tests::in_a_copy;
use crate::guardian::Guardian;
use crate::process::{Ended, Exit};
use crate::wait::wait_readable;

struct Run {
    outcome: Result<Ended, LaunchError>,
    output: String,
}

fn run(line: &[&str], change: impl FnOnce(&mut Launch<'_>)) -> Run {
    run_in(None, line, change)
}

fn run_in(slot: Option<&GroupSlot>, line: &[&str], change: impl FnOnce(&mut Launch<'_>)) -> Run {
    let null = File::open("/dev/null").expect("/dev/null");
    let mut output = File::from(memfd_create("output", MemfdFlags::CLOEXEC).expect("memory"));
    let program = Program::find(OsStr::new(line[0]), None).expect("no zero byte");
    let arguments: Vec<CString> =
        line.iter().map(|word| CString::new(*word).expect("no zero byte")).collect();
    let mut launch = Launch {
        program: &program,
        arguments: &arguments,
        environment: &[c"GREETING=hello"],
        folder: None,
        slot,
        settings: LaunchSettings::new([null.as_fd(), output.as_fd(), output.as_fd()]),
    };
    change(&mut launch);
    let outcome = Launcher::new().launch(&launch).map(|leader| {
        wait_readable(&[leader.pidfd()], None).expect("poll");
        leader.try_end(None).expect("ours").expect("ended")
    });
    let mut text = String::new();
    output.rewind().expect("memory");
    output.read_to_string(&mut text).expect("UTF-8");
    Run { outcome, output: text }
}

#[test]
fn a_program_gets_its_arguments_environment_and_folder() {
    let run = run(&["sh", "-c", "echo $GREETING $1 $PWD; exit 3", "sh", "a b"], |launch| {
        launch.folder = Some(c"/usr");
    });
    assert_eq!(run.outcome.expect("started").exit, Exit::Code(3));
    assert_eq!(run.output, "hello a b /usr\n");
}

#[test]
fn a_program_leads_its_group_and_blocks_no_signal() {
    let run = run(
        &["sh", "-c", "ps -o pid=,pgid= -p $$; grep -E 'Sig(Blk|Ign)' /proc/self/status"],
        |_| {},
    );
    let mut words = run.output.split_whitespace();
    assert_eq!(words.next(), words.next(), "{}", run.output);
    let masks: Vec<u64> = words.filter_map(|word| u64::from_str_radix(word, 16).ok()).collect();
    // Even if the program that runs the tests ignores nothing else, Rust's standard library ignores
    // SIGPIPE.
    let pipe = 1 << (libc::SIGPIPE - 1);
    assert!(masks.len() == 2 && masks[0] == 0 && masks[1] & pipe == 0, "{}", run.output);
}

#[test]
fn a_program_runs_on_the_given_processor() {
    let run = run(&["grep", "Cpus_allowed_list", "/proc/self/status"], |launch| {
        launch.settings.affinity = Some(&[1]);
    });
    assert_eq!(run.output, "Cpus_allowed_list:\t0\n");
}

#[test]
fn a_program_has_its_own_limit_of_descriptors() {
    let run = run(&["sh", "-c", "ulimit -Sn"], |launch| launch.settings.open_files = Some(57));
    assert_eq!(run.output, "57\n");
}

#[test]
fn streams_are_not_overwritten_before_they_are_moved() {
    let link = |at| std::fs::read_link(format!("/proc/self/fd/{at}")).expect("a standard stream");
    let script = "is() { test \"$(readlink /proc/$$/fd/$1)\" = \"$2\"; }
        is 0 '/memfd:input (deleted)' && is 1 \"$1\" && is 2 \"$2\"";
    let arguments = ["sh", "-c", script, "sh"].map(OsString::from);
    let arguments: Vec<CString> = arguments
        .into_iter()
        .chain([link(1).into(), link(0).into()])
        .map(|word| CString::new(word.into_vec()).expect("no zero byte"))
        .collect();
    let input = memfd_create("input", MemfdFlags::CLOEXEC).expect("memory");
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let launch = Launch {
        program: &Program::find(OsStr::new("sh"), None).expect("no zero byte"),
        arguments: &arguments,
        environment: &[],
        folder: None,
        slot: None,
        settings: LaunchSettings {
            is_worker: true,
            ..LaunchSettings::new([input.as_fd(), stdout.as_fd(), stdin.as_fd()])
        },
    };
    let process = Launcher::new().launch(&launch).expect("started");
    assert_eq!(process.reap().expect("ours"), Exit::Code(0));
}

#[test]
fn used_resources_are_counted() {
    let run = run(&["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"], |_| {});
    let usage = run.outcome.expect("started").usage;
    assert!(usage.user.as_micros() > 1000, "{usage:?}");
    assert!(usage.peak_memory > 500_000, "{usage:?}");
}

#[test]
fn an_error_has_the_stage_and_the_cause() {
    for (line, stage, errno) in [
        ("no-such-program", LaunchStage::Program, libc::ENOENT),
        ("/etc/passwd", LaunchStage::Program, libc::EACCES),
        ("/usr", LaunchStage::Program, libc::EACCES),
    ] {
        let error = run(&[line], |_| {}).outcome.expect_err(line);
        assert_eq!((error.stage(), error.cause().raw_os_error()), (stage, Some(errno)), "{line}");
    }
    let error =
        run(&["true"], |launch| launch.folder = Some(c"/nowhere")).outcome.expect_err("no folder");
    assert_eq!(error.to_string(), "cannot enter the folder");
}

#[test]
fn processes_left_in_the_group_end_with_the_leader() {
    let run = run(&["sh", "-c", "sleep 60 & echo $!"], |_| {});
    let pid = run.output.trim();
    let gone = || {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .map_or(true, |stat| stat.contains(") Z "))
    };
    // It was killed before the leader was reaped; only its own end is awaited.
    let start = now();
    while !gone() {
        assert!(now().saturating_since(start).as_secs() < 10, "{pid} lives");
        std::thread::yield_now();
    }
}

#[test]
fn a_slot_knows_the_group_until_it_is_cleared() {
    let guardian = Guardian::start(1, "NOBODY=has this").expect("a process");
    let slot = guardian.slot(0).expect("one slot");
    let run = run_in(Some(slot), &["sh", "-c", "echo $$"], |_| {});
    assert_eq!(format!("GroupSlot({})", run.output.trim()), format!("{slot:?}"));
    slot.clear();
    assert_eq!(format!("{slot:?}"), "GroupSlot(0)");
}

#[test]
fn a_drop_in_a_copy_ends_neither_programs_nor_guardian() {
    let null = File::open("/dev/null").expect("/dev/null");
    let launch = Launch {
        program: &Program::find(OsStr::new("sleep"), None).expect("no zero byte"),
        arguments: &[c"sleep".to_owned(), c"60".to_owned()],
        environment: &[],
        folder: None,
        slot: None,
        settings: LaunchSettings::new([null.as_fd(); 3]),
    };
    let mut leader = Some(Launcher::new().launch(&launch).expect("started"));
    let mut guardian = Some(Guardian::start(1, "COPY_TEST=1").expect("a process"));
    assert!(in_a_copy(|| {
        drop((leader.take(), guardian.take()));
        true
    }));
    let (leader, guardian) = (leader.expect("ours"), guardian.expect("ours"));
    let ended = wait_readable(&[leader.pidfd(), guardian.pidfd()], Some(now())).expect("poll");
    assert_eq!(ended, [false, false], "leader and guardian");
}

#[test]
fn more_slots_than_memory_can_hold_are_refused() {
    for capacity in [usize::MAX, usize::MAX / 4 + 2] {
        let error = Guardian::start(capacity, "SLOT_TEST=1").expect_err("no memory is so large");
        assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
    }
}
