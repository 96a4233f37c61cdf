//! Waits on words of memory, for the threads of one process.
//!
//! A thread compares the word under a lock and sleeps; whoever wakes takes the lock after having
//! changed the word. So either the thread sees the change, or it is woken. Words share locks, and
//! all that sleep at a lock are woken: a wait may return early for no reason, as that of Linux may.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::io::{Errno, Result};
use crate::time::Timespec;

flags! {
    Flags: PRIVATE;
}

/// More than threads usually sleep at a time.
const PLACES: usize = 64;

static SLEEPERS: [(Mutex<()>, Condvar); PLACES] =
    [const { (Mutex::new(()), Condvar::new()) }; PLACES];

fn place(word: &AtomicU32) -> &'static (Mutex<()>, Condvar) {
    &SLEEPERS[ptr::from_ref(word).addr() / 8 % PLACES]
}

pub fn wait(word: &AtomicU32, _: Flags, expected: u32, timeout: Option<&Timespec>) -> Result<()> {
    let (lock, woken) = place(word);
    let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
    if word.load(Ordering::SeqCst) != expected {
        return Err(Errno::AGAIN);
    }
    match timeout.copied().map(Duration::from) {
        None => drop(woken.wait(guard)),
        Some(timeout) => drop(woken.wait_timeout(guard, timeout)),
    }
    Ok(())
}

pub fn wake(word: &AtomicU32, _: Flags, _: u32) -> Result<usize> {
    let (lock, woken) = place(word);
    drop(lock.lock());
    woken.notify_all();
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_is_woken_and_no_wake_up_is_missed() {
        let word = &AtomicU32::new(0);
        std::thread::scope(|scope| {
            for number in 0..1_000_u32 {
                let sleeper = scope.spawn(move || {
                    while word.load(Ordering::SeqCst) == number {
                        let _ = wait(word, Flags::empty(), number, None);
                    }
                });
                word.store(number + 1, Ordering::SeqCst);
                wake(word, Flags::empty(), 1).unwrap();
                sleeper.join().unwrap();
            }
        });
    }

    #[test]
    fn a_wait_ends_with_its_time_or_at_once_if_the_word_differs() {
        let (word, soon) = (AtomicU32::new(1), Timespec { tv_sec: 0, tv_nsec: 1 });
        assert_eq!(wait(&word, Flags::empty(), 1, Some(&soon)), Ok(()));
        assert_eq!(wait(&word, Flags::empty(), 2, None), Err(Errno::AGAIN));
    }
}
