//! A socket at which the host waits until a number of tasks have begun.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::Outcome;

#[derive(Debug)]
pub(crate) struct Meeting {
    _folder: TempDir,
    pub(crate) address: String,
    pids: Receiver<Vec<u32>>,
}

impl Meeting {
    /// Returns a meeting that ends when `count` tasks have begun.
    pub(crate) fn of(count: usize) -> Outcome<Self> {
        let folder = TempDir::with_prefix("brigade-bench-")?;
        let address = folder.path().join("meeting");
        let listener = UnixListener::bind(&address)?;
        let (sender, pids) = channel();
        thread::spawn(move || {
            let serve = || -> std::io::Result<Vec<u32>> {
                let mut guests = Vec::new();
                let mut pids = Vec::new();
                for _ in 0..count {
                    let (mut guest, _) = listener.accept()?;
                    let mut pid = [0; 4];
                    guest.read_exact(&mut pid)?;
                    pids.push(u32::from_le_bytes(pid));
                    guests.push(guest);
                }
                for mut guest in guests {
                    guest.write_all(b"x")?;
                }
                Ok(pids)
            };
            if let Ok(pids) = serve() {
                // The host may have stopped waiting.
                let _ = sender.send(pids);
            }
        });
        Ok(Self { _folder: folder, address: address.display().to_string(), pids })
    }

    /// Waits for the tasks, and returns the pids of their workers.
    pub(crate) fn wait(&self) -> Outcome<Vec<u32>> {
        Ok(self.pids.recv_timeout(Duration::from_secs(20))?)
    }
}
