//! The log of a test's process.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use brigade_testkit::{BOUND, wait_until};
use tracing_subscriber::fmt::MakeWriter;

/// Collects everything that is logged in this process, from its first use on.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Returns the log of this process. The first call installs it for all threads.
    ///
    /// # Panics
    /// Panics if there is another subscriber.
    pub fn get() -> &'static Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        LOG.get_or_init(|| {
            let log = Self::default();
            let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG);
            subscriber.with_writer(log.clone()).with_ansi(false).init();
            log
        })
    }

    /// Blocks until a line contains all these words.
    #[track_caller]
    pub fn wait_for_line(&self, words: &[&str]) {
        wait_until(&format!("a line in the log with {words:?}"), BOUND, || self.has_line(words));
    }

    /// Returns `true` if a line contains all these words.
    pub fn has_line(&self, words: &[&str]) -> bool {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&bytes);
        text.lines().any(|line| words.iter().all(|word| line.contains(word)))
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
