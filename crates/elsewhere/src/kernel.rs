//! Descriptors that work between the threads of one process: counters of events, sets of them to
//! wait for, and memory.
//!
//! A descriptor is an empty file, which gives it a number of its own; this module has what is
//! behind the number. One lock guards all, and one condition tells of all changes: workers are
//! threads here, of which there are few, and none waits for long.
//!
//! An object is forgotten when its number is given to another one, because nobody tells when a
//! descriptor is closed.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::errno::{Errno, Result};

/// The file behind a descriptor.
const EMPTY: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// Memory that is larger than this is refused: it is asked for in advance, and used bit by bit.
const MAX: usize = 64 << 20;

static KERNEL: Mutex<Kernel> =
    Mutex::new(Kernel { objects: BTreeMap::new(), mappings: BTreeMap::new() });
static CHANGED: Condvar = Condvar::new();

struct Kernel {
    objects: BTreeMap<RawFd, Object>,
    mappings: BTreeMap<usize, Vec<Pages>>,
}

type Pages = Arc<[AtomicU64]>;

enum Object {
    /// Wake-ups that nobody has taken.
    Counter(u64),
    Set(Vec<Watched>),
    Memory(Memory),
}

/// A descriptor in a set.
#[derive(Clone, Copy)]
pub(crate) struct Watched {
    pub(crate) number: RawFd,
    pub(crate) token: u64,
}

struct Memory {
    bytes: Vec<u8>,
    /// The bytes, once they are mapped.
    pages: Option<Pages>,
    seals: u32,
}

fn kernel() -> MutexGuard<'static, Kernel> {
    KERNEL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(descriptor: impl AsFd) -> RawFd {
    descriptor.as_fd().as_raw_fd()
}

fn create(object: Object) -> Result<OwnedFd> {
    let file = OpenOptions::new().read(true).write(true).open(EMPTY);
    let descriptor = OwnedFd::from(file.map_err(|_| Errno::NOMEM)?);
    kernel().objects.insert(number(&descriptor), object);
    Ok(descriptor)
}

pub(crate) fn create_counter(count: u32) -> Result<OwnedFd> {
    create(Object::Counter(count.into()))
}

pub(crate) fn create_set() -> Result<OwnedFd> {
    create(Object::Set(Vec::new()))
}

pub(crate) fn create_memory() -> Result<OwnedFd> {
    create(Object::Memory(Memory { bytes: Vec::new(), pages: None, seals: 0 }))
}

/// Adds to a counter, or appends to memory.
pub(crate) fn write(descriptor: impl AsFd, bytes: &[u8]) -> Result<usize> {
    match kernel().objects.get_mut(&number(descriptor)) {
        Some(Object::Counter(count)) => {
            let added = bytes.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
            *count = count.saturating_add(added.ok_or(Errno::INVAL)?);
            CHANGED.notify_all();
            Ok(8)
        }
        Some(Object::Memory(memory)) if memory.pages.is_none() => {
            memory.bytes.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        _ => Err(Errno::NOSYS),
    }
}

/// Takes what a counter has.
pub(crate) fn read(descriptor: impl AsFd) -> Result<u64> {
    match kernel().objects.get_mut(&number(descriptor)) {
        Some(Object::Counter(0)) => Err(Errno::AGAIN),
        Some(Object::Counter(count)) => Ok(std::mem::take(count)),
        _ => Err(Errno::NOSYS),
    }
}

pub(crate) fn watch(set: impl AsFd, watched: impl AsFd, token: u64) -> Result<()> {
    let mut kernel = kernel();
    let number_of_watched = number(watched);
    let is_counter = matches!(kernel.objects.get(&number_of_watched), Some(Object::Counter(_)));
    match kernel.objects.get_mut(&number(set)) {
        Some(Object::Set(set)) if is_counter => {
            set.push(Watched { number: number_of_watched, token });
            CHANGED.notify_all();
            Ok(())
        }
        _ => Err(Errno::NOSYS),
    }
}

pub(crate) fn forget(set: impl AsFd, watched: impl AsFd) -> Result<()> {
    let watched = number(watched);
    match kernel().objects.get_mut(&number(set)) {
        Some(Object::Set(set)) => {
            let before = set.len();
            set.retain(|it| it.number != watched);
            if set.len() < before { Ok(()) } else { Err(Errno::NOENT) }
        }
        _ => Err(Errno::NOSYS),
    }
}

/// Waits until counters of a set are not zero, and returns them.
pub(crate) fn wait_for_set(set: impl AsFd, timeout: Option<Duration>) -> Result<Vec<Watched>> {
    let set = number(set);
    wait(timeout, |kernel| match kernel.objects.get(&set) {
        Some(Object::Set(watched)) => Ok(watched.clone()),
        _ => Err(Errno::NOSYS),
    })
}

/// Waits until some of these counters are not zero, and returns them.
pub(crate) fn wait_for_counters(
    counters: &[Watched],
    timeout: Option<Duration>,
) -> Result<Vec<Watched>> {
    wait(timeout, |_| Ok(counters.to_vec()))
}

fn wait(
    timeout: Option<Duration>,
    watched: impl Fn(&Kernel) -> Result<Vec<Watched>>,
) -> Result<Vec<Watched>> {
    let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut kernel = kernel();
    loop {
        let mut ready = watched(&kernel)?;
        ready.retain(|it| {
            matches!(kernel.objects.get(&it.number), Some(Object::Counter(count)) if *count > 0)
        });
        if !ready.is_empty() {
            return Ok(ready);
        }
        kernel = match end {
            None => CHANGED.wait(kernel).unwrap_or_else(PoisonError::into_inner),
            Some(end) => {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(ready);
                }
                CHANGED.wait_timeout(kernel, left).unwrap_or_else(PoisonError::into_inner).0
            }
        };
    }
}

fn with_memory<T>(descriptor: impl AsFd, act: impl FnOnce(&mut Memory) -> Result<T>) -> Result<T> {
    match kernel().objects.get_mut(&number(descriptor)) {
        Some(Object::Memory(memory)) => act(memory),
        _ => Err(Errno::NOSYS),
    }
}

pub(crate) fn resize(memory: impl AsFd, length: u64) -> Result<()> {
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX);
    let length = length.ok_or(Errno::NOMEM)?;
    with_memory(memory, |memory| {
        memory.bytes.resize(length, 0);
        Ok(())
    })
}

pub(crate) fn length(memory: impl AsFd) -> Result<usize> {
    with_memory(memory, |memory| Ok(memory.bytes.len()))
}

pub(crate) fn add_seals(memory: impl AsFd, seals: u32) -> Result<()> {
    with_memory(memory, |memory| {
        memory.seals |= seals;
        Ok(())
    })
}

pub(crate) fn seals(memory: impl AsFd) -> Result<u32> {
    with_memory(memory, |memory| Ok(memory.seals))
}

/// Returns the address of memory, which is that of all its mappings.
pub(crate) fn map(memory: impl AsFd) -> Result<usize> {
    let descriptor = number(memory);
    let mut kernel = kernel();
    let Some(Object::Memory(memory)) = kernel.objects.get_mut(&descriptor) else {
        return Err(Errno::NOSYS);
    };
    let pages = memory.pages.get_or_insert_with(|| pages(&memory.bytes));
    let pages = Arc::clone(pages);
    let address = pages.as_ptr().expose_provenance();
    kernel.mappings.entry(address).or_default().push(pages);
    Ok(address)
}

fn pages(bytes: &[u8]) -> Pages {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        AtomicU64::new(u64::from_ne_bytes(word))
    };
    bytes.chunks(8).map(word).collect()
}

/// Ends one mapping at this address.
pub(crate) fn unmap(address: usize) -> Result<()> {
    let mut kernel = kernel();
    let mappings = kernel.mappings.get_mut(&address).ok_or(Errno::INVAL)?;
    mappings.pop();
    if mappings.is_empty() {
        kernel.mappings.remove(&address);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_counter_wakes_a_thread_that_waits_for_its_set() {
        let (counter, set) = (create_counter(0).unwrap(), create_set().unwrap());
        watch(&set, &counter, 7).unwrap();
        assert!(wait_for_set(&set, Some(Duration::ZERO)).unwrap().is_empty());
        thread::scope(|scope| {
            let waiter = scope.spawn(|| wait_for_set(&set, None).unwrap()[0].token);
            write(&counter, &2_u64.to_ne_bytes()).unwrap();
            assert_eq!(waiter.join().unwrap(), 7);
        });
        assert_eq!((read(&counter), read(&counter)), (Ok(2), Err(Errno::AGAIN)));
        forget(&set, &counter).unwrap();
        assert_eq!(forget(&set, &counter), Err(Errno::NOENT));
    }

    #[test]
    fn memory_is_the_same_in_all_its_mappings() {
        let memory = create_memory().unwrap();
        write(&memory, b"nine byte").unwrap();
        add_seals(&memory, 2).unwrap();
        assert_eq!(seals(&memory), Ok(2));
        let (first, second) = (map(&memory).unwrap(), map(&memory).unwrap());
        assert_eq!((first, length(&memory)), (second, Ok(9)));
        assert_eq!((unmap(first), unmap(first), unmap(first)), (Ok(()), Ok(()), Err(Errno::INVAL)));
    }

    #[test]
    fn a_file_that_is_no_object_is_refused() {
        let file = OpenOptions::new().read(true).open(EMPTY).unwrap();
        // The number may have been that of an object of another test.
        kernel().objects.remove(&number(&file));
        assert_eq!(write(&file, &[0; 8]), Err(Errno::NOSYS));
        assert_eq!(watch(create_set().unwrap(), &file, 1), Err(Errno::NOSYS));
        assert_eq!(resize(create_memory().unwrap(), u64::MAX), Err(Errno::NOMEM));
    }
}
