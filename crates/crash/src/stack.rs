//! The stack of a thread, which is unwound when it is looked at.

use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

#[cfg(feature = "backtrace")]
use brigade_sys::catch_panic::catch_panic;
use brigade_sys::crash::Snapshot;
use brigade_sys::sync::Mutex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::files::{Files, Modules};
use crate::frame::{self, Frame, place};
use crate::mapping::Mapping;
use crate::registers::instruction;
#[cfg(feature = "backtrace")]
use crate::unwind::{self, UnwoundCall};

/// Bytes of records that are kept until somebody looks at their stacks. Beyond that a stack has
/// only its innermost frame: a program that collects errors and never prints them would otherwise
/// keep 64 KiB for each.
const MAX_KEPT: usize = 16 << 20;

/// Bytes of a stack that a record has at most. A stack that reaches beyond is cut.
const MAX_COPIED: usize = 64 << 10;

static KEPT: AtomicUsize = AtomicUsize::new(0);

/// The place of a thread: its calls, the innermost first.
///
/// The frames are found when they are asked for first, which takes from a tenth of a millisecond
/// to a tenth of a second, because the debug information of the program is read.
#[derive(Clone)]
pub struct Stack {
    inner: Arc<StackInner>,
}

struct StackInner {
    known: Known,
    frames: OnceLock<Vec<Frame>>,
    /// The record from which frames are made; `None` afterwards.
    record: Mutex<Option<Kept>>,
}

/// The facts about a stack that are known before its frames are found.
#[derive(Serialize, Deserialize)]
struct Known {
    thread: u32,
    thread_name: String,
    is_main: bool,
    is_partial: bool,
}

/// A record, which counts while it is kept.
pub(crate) struct Kept {
    pub(crate) record: Snapshot,
    pub(crate) mappings: Vec<Mapping>,
    files: Files,
    counted: usize,
}

impl Stack {
    /// Returns the stack of a record. Its calls are named from these files.
    pub fn new(record: Snapshot, files: Files) -> Self {
        let mappings = Mapping::parse_all(&record.maps);
        Self::of(record, mappings, files)
    }

    pub(crate) fn of(mut record: Snapshot, mappings: Vec<Mapping>, files: Files) -> Self {
        let counted = record.stack.len() + record.maps.len();
        let is_cut = record.stack.len() >= MAX_COPIED;
        let mut is_partial = !record.is_complete || record.stack.is_empty() || is_cut;
        if KEPT.fetch_add(counted, Ordering::Relaxed) > MAX_KEPT {
            record.stack = Vec::new();
            is_partial = true;
        }
        record.maps = Vec::new();
        let known = Known {
            thread: record.thread,
            thread_name: mem::take(&mut record.thread_name),
            is_main: record.thread == record.process,
            is_partial,
        };
        let record = Mutex::new(Some(Kept { record, mappings, files, counted }));
        Self { inner: Arc::new(StackInner { known, frames: OnceLock::new(), record }) }
    }

    /// Returns the id of the thread.
    pub fn thread(&self) -> u32 {
        self.inner.known.thread
    }

    /// Returns the name of the thread; that of the main thread is the name of the process.
    pub fn thread_name(&self) -> &str {
        &self.inner.known.thread_name
    }

    /// Returns `true` if it is the stack of the main thread, which runs the tasks.
    pub fn is_main_thread(&self) -> bool {
        self.inner.known.is_main
    }

    /// Returns `true` if calls may be missing: the stack has more than 64 KiB, the process ended
    /// too early or has no `/proc`, or too many stacks were kept that nobody looked at.
    pub fn is_partial(&self) -> bool {
        self.inner.known.is_partial
    }

    /// Returns the calls, the innermost first. Without the feature `backtrace`, only the innermost
    /// one, which has no name.
    pub fn frames(&self) -> &[Frame] {
        self.inner.frames.get_or_init(|| {
            let kept = self.inner.record.lock().take();
            kept.as_ref().map(resolve).unwrap_or_default()
        })
    }

    /// Returns the place of the innermost call, as `module + offset`, without any name.
    pub fn place(&self) -> Option<String> {
        let kept = self.inner.record.lock();
        if let Some(kept) = &*kept {
            let modules = Modules::new(kept.files);
            return Some(place(&modules, &kept.mappings, instruction(&kept.record)).place());
        }
        drop(kept);
        self.inner.frames.get()?.first().map(Frame::place)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

#[cfg(feature = "backtrace")]
fn resolve(kept: &Kept) -> Vec<Frame> {
    let modules = Modules::new(kept.files);
    let calls = catch_panic(|| unwind::calls(&modules, &kept.record, &kept.mappings));
    let calls = calls.unwrap_or_else(|_| vec![UnwoundCall { address: instruction(&kept.record) }]);
    crate::names::frames(&modules, &kept.mappings, &calls)
}

#[cfg(not(feature = "backtrace"))]
fn resolve(kept: &Kept) -> Vec<Frame> {
    vec![place(&Modules::new(kept.files), &kept.mappings, instruction(&kept.record))]
}

/// Its thread, and its calls in lines of their own.
impl fmt::Display for Stack {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "thread {}", self.inner.known.thread)?;
        if !self.inner.known.thread_name.is_empty() {
            write!(out, " ({})", self.inner.known.thread_name.escape_debug())?;
        }
        if self.frames().iter().all(|frame| frame.module.is_none()) {
            out.write_str(", no names: had the task closed descriptors, or no /proc?")?;
        } else if self.inner.known.is_partial {
            out.write_str(", calls may be missing")?;
        }
        frame::write_all(self.frames(), out)
    }
}

brigade_sys::debug_fields! {
    impl Stack { |it| thread: it.inner.known.thread, thread_name: it.inner.known.thread_name }
}

/// A stack on its way to another program.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Stack")]
struct PortableStack<K, F> {
    known: K,
    frames: F,
}

/// Finds the frames, because the bytes of the stack stay here.
impl Serialize for Stack {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PortableStack { known: &self.inner.known, frames: self.frames() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Stack {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PortableStack { known, frames } =
            PortableStack::<Known, Vec<Frame>>::deserialize(deserializer)?;
        let (frames, record) = (OnceLock::from(frames), Mutex::new(None));
        Ok(Self { inner: Arc::new(StackInner { known, frames, record }) })
    }
}
