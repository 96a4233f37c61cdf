//! Notices that another process writes to a file, or closes it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};

/// A descriptor for [`wait_readable`](crate::wait::wait_readable) that is readable after somebody
/// has written to a file or closed it after opening it for writing; this includes the death of the
/// process that had it open.
///
/// The kernel reports the close *before* it releases the locks of the closed file.
#[derive(Debug)]
pub struct FileWatch(OwnedFd);

/// The system drops events if too many have not been taken: a close may have been among them.
const CLOSED: ReadFlags = ReadFlags::CLOSE_WRITE.union(ReadFlags::QUEUE_OVERFLOW);

impl FileWatch {
    /// Watches the file that has this name now.
    pub fn new(path: &Path) -> io::Result<Self> {
        let watch = Self(init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?);
        watch.follow(path)?;
        Ok(watch)
    }

    /// Also watches the file that has this name now, if it is another one.
    pub fn follow(&self, path: &Path) -> io::Result<()> {
        add_watch(&self.0, path, WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE)?;
        Ok(())
    }

    /// Takes all events so far. Returns `true` if one of them was, or may have been, a close of the
    /// file.
    pub fn drain(&self) -> bool {
        let mut buffer = [const { MaybeUninit::<u8>::uninit() }; 1_024];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut closed = false;
        // Ends with EAGAIN.
        while let Ok(event) = reader.next() {
            closed |= event.events().intersects(CLOSED);
        }
        closed
    }
}

crate::as_fd!(FileWatch, 0);

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::*;
    use crate::clock::now;
    use crate::private_folder::PrivateFolder;
    use crate::wait::wait_readable;

    #[test]
    fn writing_and_closing_are_noticed() {
        let path = std::env::temp_dir().join(format!("brigade-watch-{}", std::process::id()));
        let mut file = PrivateFolder::open(&path).unwrap().file("a").unwrap();
        let watch = FileWatch::new(&path.join("a")).unwrap();
        let heard = || {
            let soon = now().saturating_add(Duration::from_secs(10));
            wait_readable(&[watch.as_fd()], Some(soon)).unwrap()[0]
        };
        assert!(!wait_readable(&[watch.as_fd()], Some(now())).unwrap()[0]);
        file.write_all(b"x").unwrap();
        assert!(heard());
        assert!(!watch.drain(), "it is still open");
        assert!(!wait_readable(&[watch.as_fd()], Some(now())).unwrap()[0]);
        drop(file);
        assert!(heard());
        assert!(watch.drain());
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_close_event_that_the_system_has_dropped_is_still_noticed() {
        let path = std::env::temp_dir().join(format!("brigade-flood-{}", std::process::id()));
        let folder = PrivateFolder::open(&path).unwrap();
        let mut files = ["a", "b"].map(|name| folder.file(name).unwrap());
        let watch = FileWatch::new(&path.join("a")).unwrap();
        watch.follow(&path.join("b")).unwrap();
        let room = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        // In turns, because equal events that follow each other are merged into one.
        for _ in 0..=room.trim().parse::<usize>().unwrap() / 2 {
            for file in &mut files {
                file.write_all(b"x").unwrap();
            }
        }
        drop(files);
        std::fs::remove_dir_all(path).unwrap();
        assert!(watch.drain());
    }
}
