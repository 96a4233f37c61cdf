//! Supplies jobs to the runner, and queues its events. Skips jobs that are already done, and sets
//! up results directories.

use std::task::Poll;

use brigade::runner::{Client, Event, Resume, Supply};

use super::event_queue::EventQueue;
use super::job_data::JobData;
use super::storage::FileNames;
use crate::arguments::Run;
use crate::input::{Ahead, Entry, Input, Problem};
use crate::screen::SupplyCounts;

/// Supplies the jobs of a run, and queues its events for the output thread.
pub(super) struct RunClient<'a> {
    options: &'a Run,
    input: Box<dyn Input>,
    resume: Resume,
    /// Names the files of each job's results, if they are stored in files.
    file_names: Option<FileNames>,
    /// `true` if a table of results needs the arguments.
    keeps_arguments: bool,
    supply: SupplyCounts,
    queue: EventQueue,
}

impl<'a> RunClient<'a> {
    pub(super) fn new(
        input: Box<dyn Input>,
        resume: Resume,
        file_names: Option<FileNames>,
        keeps_arguments: bool,
        queue: EventQueue,
        options: &'a Run,
    ) -> Self {
        let supply = SupplyCounts::default();
        let mut client =
            Self { options, input, resume, file_names, keeps_arguments, supply, queue };
        client.note_supply();
        client
    }

    fn note_supply(&mut self) {
        let ahead = self.input.ahead();
        // Finished jobs lie before or between the rest; the number already skipped is known.
        let done = self.resume.count().saturating_sub(self.supply.skipped);
        self.supply.ahead = Ahead { count: ahead.count.saturating_sub(done), ..ahead };
        self.queue.note_supply(self.supply);
    }

    fn supply(&mut self) -> Result<Supply, Problem> {
        loop {
            let Poll::Ready(next) = self.input.next(false) else { return Ok(Supply::Later) };
            let Some(entry) = next.transpose()? else {
                self.supply.ahead = Ahead::all(0);
                self.queue.note_supply(self.supply);
                // Streams could not be compared before.
                self.resume.check()?;
                return Ok(Supply::End);
            };
            let Entry { number, mut job, arguments, tag } = *entry;
            // Also those of a job that is done: no other one writes to them.
            let files = self.file_names.as_mut().map(|names| names.next(number, &arguments));
            let files = files.transpose()?;
            if self.resume.has(number, &job) {
                self.supply.skipped += 1;
                continue;
            }
            // With `--line-buffer` and on a cluster the output passes through here, and is written
            // to the files at the end.
            let stores_directly = !self.options.line_buffer && !self.options.is_remote();
            if let Some(files) = files.as_ref().filter(|_| stores_directly) {
                let output = files.prepare(number).map_err(|error| {
                    let file = files.stdout().display();
                    format!("cannot store the results of job {number} in {file}: {error}")
                })?;
                job = job.output(output);
            }
            let creates_folders = self.options.job.wd.is_some() && !self.options.is_remote();
            if let Some(folder) = job.folder.as_ref().filter(|_| creates_folders) {
                std::fs::create_dir_all(folder).map_err(|error| {
                    format!("cannot create the directory {}: {error}", folder.display())
                })?;
            }
            let arguments = if self.keeps_arguments { arguments } else { Vec::new() };
            self.supply.supplied += 1;
            self.note_supply();
            self.queue.supplied(number);
            let job = JobData { arguments, tag, files }.attach(job);
            return Ok(Supply::Job(Box::new(job)));
        }
    }
}

impl Client for RunClient<'_> {
    fn next(&mut self) -> Supply {
        if self.queue.is_behind() {
            return Supply::Later;
        }
        self.supply().unwrap_or_else(Supply::Failed)
    }

    fn remaining(&self) -> Option<u64> {
        self.supply.ahead.total()
    }

    fn event(&mut self, event: Event) {
        if matches!(event, Event::Tick) {
            // The reader may have seen the end of the list.
            self.note_supply();
        }
        if matches!(event, Event::Halting(_)) {
            self.input.close();
        }
        let is_suspended = matches!(event, Event::Suspended);
        self.queue.push(event);
        if is_suspended {
            // The area is removed first: the shell prints to the same terminal.
            self.queue.settle();
            // The jobs were stopped; SIGSTOP stops all threads of this process as well. It goes on
            // when the shell continues it.
            let _ = signal_hook::low_level::raise(signal_hook::consts::SIGSTOP);
        }
    }
}
