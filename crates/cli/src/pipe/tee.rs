//! `--tee`: each job of a list gets the whole input.

use std::io::{self, Read};
use std::thread;

use brigade::runner::{BlockStreams, FilePart, Stdin, Stopper};
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};

use super::gate::Gate;
use crate::input::{Fetch, Fetched, Input, Jobs};

/// Jobs that all have the same standard input.
pub(crate) struct Teed {
    jobs: Jobs,
    source: Source,
}

/// The standard input of all jobs.
enum Source {
    /// A file, which each job reads at its own pace.
    File(FilePart),
    /// A stream, which is read once.
    Stream(Stream),
}

/// A stream that a thread copies to all jobs, block by block. It is as fast as the slowest job, so
/// all jobs must run at once.
struct Stream {
    streams: BlockStreams,
    /// The number of jobs that have their stream.
    given: usize,
    gate: Gate,
    failures: Receiver<io::Error>,
}

/// The state of the thread that reads.
struct TeeReader {
    streams: BlockStreams,
    gate: Gate,
    failures: Sender<io::Error>,
    stopper: Stopper,
}

/// The most that is read at once. A pipe holds less by default.
const BLOCK: usize = 1 << 20;
/// A slow job has a block that it reads and one that waits; a third one is read meanwhile.
const BLOCKS: usize = 3;

impl Teed {
    /// Returns the jobs with this file as their input.
    pub(crate) fn with_file(jobs: Jobs, file: FilePart) -> Self {
        Self { jobs, source: Source::File(file) }
    }

    /// Starts reading. All jobs must have been read.
    pub(crate) fn with_stream(
        jobs: Jobs,
        reader: impl Read + Send + 'static,
        stopper: Stopper,
    ) -> Self {
        let count = jobs.remaining().unwrap_or_default();
        let streams = BlockStreams::in_step(usize::try_from(count).unwrap_or(usize::MAX));
        let (sender, failures) = bounded(1);
        let gate = Gate::new(BLOCKS);
        let copier =
            TeeReader { streams: streams.clone(), gate: gate.clone(), failures: sender, stopper };
        thread::spawn(move || copier.run(reader));
        Self { jobs, source: Source::Stream(Stream { streams, given: 0, gate, failures }) }
    }

    fn with_stdin(&mut self, fetch: Fetch) -> Fetched {
        match (fetch, &mut self.source) {
            (Fetch::Entry(mut entry), source) => {
                let stdin = match source {
                    Source::File(file) => Stdin::Part(file.clone()),
                    Source::Stream(stream) => stream.next(),
                };
                entry.job = entry.job.clone().stdin(stdin);
                Ok(Fetch::Entry(entry))
            }
            (Fetch::End, Source::Stream(stream)) => stream.end(),
            (other, _) => Ok(other),
        }
    }
}

impl Stream {
    fn next(&mut self) -> Stdin {
        let index = self.given;
        self.given += 1;
        Stdin::Stream(self.streams.stream(index, [].into()))
    }

    /// Returns the end only when it is known that all of the input was read, or is not needed.
    fn end(&self) -> Fetched {
        match self.failures.try_recv() {
            Ok(error) => Err(error.into()),
            Err(TryRecvError::Empty) if !self.streams.are_over() => Ok(Fetch::Later),
            Err(_) => Ok(Fetch::End),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.gate.close();
        self.streams.abandon_from(0);
    }
}

impl Input for Teed {
    /// Only jobs of a run are not waited for, and only they get the stream.
    fn next(&mut self, waits: bool) -> Fetched {
        let fetch = self.jobs.next(waits)?;
        if waits { Ok(fetch) } else { self.with_stdin(fetch) }
    }

    fn remaining(&self) -> Option<u64> {
        self.jobs.remaining()
    }

    fn close(&mut self) {
        if let Source::Stream(stream) = &self.source {
            // The running jobs do not wait for them.
            stream.streams.abandon_from(stream.given);
        }
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        match (&self.source, self.jobs.read_again()?) {
            (Source::File(file), Some(jobs)) => {
                Ok(Some(Box::new(Self::with_file(jobs, file.clone()))))
            }
            _ => Ok(None),
        }
    }
}

impl TeeReader {
    fn run(self, reader: impl Read) {
        if let Err(error) = self.copy(reader) {
            // Nobody to tell if the run is over.
            let _ = self.failures.send(error);
        }
        self.streams.end();
        let Self { failures, stopper, .. } = self;
        drop(failures);
        stopper.wake();
    }

    /// Reads to the end, or until no job needs more.
    fn copy(&self, mut reader: impl Read) -> io::Result<()> {
        let mut buffer = vec![0; BLOCK];
        loop {
            let count = match reader.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let Some(block) = self.gate.block(&[&buffer[..count]], 0) else { return Ok(()) };
            if !self.streams.give_to_all(&block?) {
                return Ok(());
            }
        }
    }
}
