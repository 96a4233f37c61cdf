//! Supplies jobs to the runner, and queues its events. Skips jobs that are already done, and sets
//! up results directories.

use brigade::runner::{Client, Event, Resume, Supply};

use super::event_queue::EventQueue;
use super::job_data::JobData;
use super::storage::FileNames;
use crate::arguments::Run;
use crate::input::{Entry, Fetch, Input, Problem};
use crate::screen::SupplyCounts;

/// Supplies the jobs of a run, and queues its events for the output thread.
pub(super) struct RunClient {
    input: Box<dyn Input>,
    resume: Resume,
    /// Names the files of each job's results, if they are stored in files.
    file_names: Option<FileNames>,
    /// `true` if jobs write to these files themselves.
    stores_directly: bool,
    /// `true` if the directories of jobs are created.
    creates_folders: bool,
    /// `true` if a table of results needs the arguments.
    keeps_arguments: bool,
    supply: SupplyCounts,
    queue: EventQueue,
}

impl RunClient {
    pub(super) fn new(
        input: Box<dyn Input>,
        resume: Resume,
        file_names: Option<FileNames>,
        keeps_arguments: bool,
        queue: EventQueue,
        options: &Run,
    ) -> Self {
        // With `--line-buffer` and on a cluster the output passes through here, and is written to
        // the files at the end.
        let is_remote = options.is_remote();
        let mut client = Self {
            input,
            resume,
            file_names,
            stores_directly: !options.line_buffer && !is_remote,
            creates_folders: options.job.wd.is_some() && !is_remote,
            keeps_arguments,
            supply: SupplyCounts::default(),
            queue,
        };
        client.note_supply();
        client
    }

    fn note_supply(&mut self) {
        let (remaining, read_ahead) = (self.remaining(), self.input.read_ahead());
        self.supply = SupplyCounts { remaining, read_ahead, ..self.supply };
        self.queue.note_supply(self.supply);
    }

    fn supply(&mut self) -> Result<Supply, Problem> {
        loop {
            let entry = match self.input.next(false)? {
                Fetch::Entry(entry) => entry,
                Fetch::Later => return Ok(Supply::Later),
                Fetch::End => {
                    self.note_supply();
                    self.supply.remaining = Some(0);
                    self.queue.note_supply(self.supply);
                    // Streams could not be compared before.
                    self.resume.check()?;
                    return Ok(Supply::End);
                }
            };
            let Entry { number, mut job, arguments, tag } = *entry;
            // Also those of a job that is done: no other one writes to them.
            let files = self.file_names.as_mut().map(|names| names.next(number, &arguments));
            let files = files.transpose()?;
            if self.resume.has(number, &job) {
                self.supply.skipped += 1;
                continue;
            }
            if let Some(files) = files.as_ref().filter(|_| self.stores_directly) {
                let output = files.prepare(number).map_err(|error| {
                    let file = files.stdout().display();
                    format!("cannot store the results of job {number} in {file}: {error}")
                })?;
                job = job.output(output);
            }
            if let Some(folder) = job.folder_path().filter(|_| self.creates_folders) {
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

impl Client for RunClient {
    fn next(&mut self) -> Supply {
        if self.queue.is_behind() {
            return Supply::Later;
        }
        self.supply().unwrap_or_else(Supply::Failed)
    }

    fn remaining(&self) -> Option<u64> {
        let remaining = self.input.remaining()?;
        let skipped = self.supply.skipped;
        // Finished jobs lie before or between the rest; the number already skipped is known.
        Some(remaining.saturating_sub(self.resume.count().saturating_sub(skipped)))
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
