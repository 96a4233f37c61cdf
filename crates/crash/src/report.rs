//! The report of a crash.

use std::fmt;

use brigade_sys::crash::Snapshot;
use brigade_sys::process::Exit;
use serde::{Deserialize, Serialize};

use crate::cause::{Cause, is_crash};
use crate::files::Files;
use crate::mapping::Mapping;
use crate::registers::stack_pointer;
use crate::stack::Stack;

/// The report of a crash: the signal, its cause, and where the thread was.
///
/// `{}` shows it in one line, `{:#}` with the stack.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CrashReport {
    signal: i32,
    cause: Cause,
    address: u64,
    message: String,
    registers: Vec<u64>,
    /// `None` for a process that the kernel has killed.
    stack: Option<Stack>,
}

impl CrashReport {
    /// Returns the report of a record, or `None` if its signal is not that of a crash. The calls
    /// are named from these files.
    pub fn new(record: Snapshot, files: Files) -> Option<Self> {
        if !is_crash(record.signal) || !is_crash(record.last_signal) {
            return None;
        }
        let mappings = Mapping::parse_all(&record.maps);
        Some(Self {
            signal: record.last_signal,
            cause: Cause::of(&record, stack_pointer(&record), &mappings),
            address: record.address,
            message: record.message.clone(),
            registers: record.registers.clone(),
            stack: Some(Stack::of(record, mappings, files)),
        })
    }

    /// Returns `true` for the signals of crashes.
    pub fn has_signal(signal: i32) -> bool {
        is_crash(signal)
    }

    /// Returns the report of a process that was killed because memory ran out.
    pub fn out_of_memory() -> Self {
        Self {
            signal: 9,
            cause: Cause::OutOfMemory,
            address: 0,
            message: String::new(),
            registers: Vec::new(),
            stack: None,
        }
    }

    /// Returns the number of the signal that ended the process.
    pub fn signal(&self) -> i32 {
        self.signal
    }

    /// Returns the cause of the signal.
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// Returns the address that could not be used, if there is one.
    pub fn address(&self) -> Option<u64> {
        self.cause.has_address().then_some(self.address)
    }

    /// Returns the message with which the process aborted itself: that of a panic with its place,
    /// or of the C library. Empty if there is none.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the general registers, in the order of the kernel's `ucontext`. Empty if there are
    /// none.
    pub fn registers(&self) -> &[u64] {
        &self.registers
    }

    /// Returns the stack of the thread that crashed; `None` if the kernel killed the process.
    pub fn stack(&self) -> Option<&Stack> {
        self.stack.as_ref()
    }

    /// Writes the cause and the message, without the signal.
    #[doc(hidden)]
    pub fn write_cause(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.write(self.address, out)?;
        if !self.message.is_empty() {
            write!(out, ": {}", Line(&self.message))?;
        }
        let Some(stack) = self.stack.as_ref().filter(|stack| !stack.is_main_thread()) else {
            return Ok(());
        };
        write!(out, ", in thread {}", stack.thread())?;
        match stack.thread_name() {
            "" => Ok(()),
            name => write!(out, " ({})", Line(name)),
        }
    }
}

impl fmt::Display for CrashReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, ", Exit::Signal(self.signal))?;
        self.write_cause(out)?;
        match self.stack.as_ref().filter(|_| out.alternate()) {
            Some(stack) => write!(out, "\n{stack}"),
            None => Ok(()),
        }
    }
}

/// A text of the worker, in one line and without control characters.
struct Line<'a>(&'a str);

impl fmt::Display for Line<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.trim_end().chars().try_for_each(|character| match character {
            '\n' => out.write_str(": "),
            other if other.is_control() => write!(out, "{}", other.escape_debug()),
            other => write!(out, "{other}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use brigade_codec as codec;
    use proptest::prelude::*;

    use super::*;

    fn record() -> Snapshot {
        Snapshot {
            signal: 6,
            last_signal: 6,
            thread: 8,
            process: 7,
            thread_name: "decoder".to_owned(),
            message: "free(): invalid\npointer\x1b[0m\n".to_owned(),
            is_complete: true,
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_report_names_signal_cause_message_and_thread() {
        let report = CrashReport::new(record(), Files::OfThisProcess).expect("a crash");
        let line = "SIGABRT (signal 6), aborted: free(): invalid: pointer\\u{1b}[0m, \
                    in thread 8 (decoder)";
        assert_eq!(report.to_string(), line);
        let full = format!("{report:#}");
        assert!(
            full.starts_with(line) && full.contains("\nthread 8 (decoder), no names: had"),
            "{full}"
        );
    }

    #[test]
    fn other_signals_are_no_crashes() {
        for (signal, last_signal) in [(9, 9), (11, 9), (0, 0), (-1, 11)] {
            assert!(
                CrashReport::new(Snapshot { signal, last_signal, ..record() }, Files::OfWorker)
                    .is_none()
            );
        }
    }

    #[test]
    fn a_report_arrives_as_it_was() {
        let report = CrashReport::new(record(), Files::OfThisProcess).expect("a crash");
        let mut bytes = Vec::new();
        codec::encode(&report, &mut bytes, 1 << 20).expect("it can be sent");
        let arrived: CrashReport = codec::decode(&bytes).expect("and received");
        assert_eq!(format!("{arrived:#}"), format!("{report:#}"));
        assert_eq!(arrived.stack().map(Stack::frames), report.stack().map(Stack::frames));
        let killed = CrashReport::out_of_memory();
        let text = "SIGKILL (signal 9), killed because the memory of its control group ran out";
        assert_eq!((format!("{killed:#}").as_str(), killed.address()), (text, None));
    }

    proptest! {
        #[test]
        fn any_record_has_a_report(
            (signal, code) in (prop_oneof![Just(11), Just(6), Just(7), any::<i32>()], any::<i32>()),
            (address, registers) in (any::<u64>(), proptest::collection::vec(any::<u64>(), 0..40)),
            stack in proptest::collection::vec(any::<u8>(), 0..400),
            stack_start in any::<u64>(),
            maps in proptest::collection::vec(any::<u8>(), 0..400),
            line in "[0-9a-f]{1,16}-[0-9a-f]{1,16} [r-]w[x-]p [0-9a-f]{1,8} 0:0 [0-9]{1,3} (/proc/self/exe)?\n",
        ) {
            let maps = [line.as_bytes(), &maps].concat();
            let record = Snapshot {
                signal, last_signal: signal, code, address, registers, stack, stack_start, maps,
                ..record()
            };
            for report in [Files::OfWorker, Files::OfThisProcess].into_iter().filter_map(|files| CrashReport::new(record.clone(), files)) {
                let text = format!("{report:#}");
                prop_assert!(!text.is_empty());
            }
        }
    }
}
