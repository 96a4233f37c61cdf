//! Writes the memory of a child.

use std::io;
use std::sync::PoisonError;

use rustix::io::Errno;

use super::Process;
use crate::clock::Monotonic;
use crate::foreign_memory;
use crate::wait::wait_readable;

impl Process {
    /// Copies bytes to an address of the process. It is not reaped meanwhile, for a third of a
    /// millisecond at a time. Several threads may copy.
    ///
    /// # Errors
    /// `ESRCH` if the process has ended; `EFAULT` if it has not all of that memory; `EPERM` if this
    /// process may not write there.
    pub fn write_memory(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        const PART: usize = 4 << 20;
        for (part, bytes) in bytes.chunks(PART).enumerate() {
            let _not_reaped = self.memory.read().unwrap_or_else(PoisonError::into_inner);
            if !self.is_unreaped() {
                return Err(Errno::SRCH.into());
            }
            let address = address.saturating_add((part * PART) as u64);
            // SAFETY: a child of this process, which nobody reaps as long as this lock is held.
            unsafe { foreign_memory::copy_to(self.number(), address, bytes)? };
        }
        Ok(())
    }

    /// Returns `true` if the process has ended, reaped or not.
    pub fn has_ended(&self) -> bool {
        let at_once = Some(Monotonic::from_nanos(0));
        wait_readable(&[self.pidfd()], at_once).is_ok_and(|ended| ended[0])
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::process::Signal;

    #[test]
    fn memory_that_a_child_does_not_have_is_not_written() -> io::Result<()> {
        let child = Process::spawn(Command::new("sleep").arg("60"))?;
        assert!(!child.has_ended());
        let error = child.write_memory(8, &[1; 100]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
        child.signal(Signal::Kill)?;
        child.reap()?;
        assert!(child.has_ended());
        let error = child.write_memory(8, &[1; 100]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
        Ok(())
    }
}
