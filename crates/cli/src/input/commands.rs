//! Jobs from a stream with one job per line.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::task::{Poll, ready};

use super::{Ahead, Entry, Fetched, Input, Lines, jobs_of_json_line};
use crate::confine::Confining;
use crate::line;

/// The jobs described by the lines of a stream.
#[derive(Debug)]
pub(crate) struct Commands {
    lines: Lines,
    /// The options that confine jobs, if the lines are jobs in JSON.
    json: Option<Confining>,
    next_number: u64,
}

impl Commands {
    /// Reads commands for the shell, or jobs in JSON.
    pub(crate) fn new(lines: Lines, json: Option<Confining>) -> Self {
        Self { lines, json, next_number: 1 }
    }
}

impl Input for Commands {
    fn next(&mut self, waits: bool) -> Fetched {
        let Some(line) = ready!(self.lines.next(waits)?) else { return Poll::Ready(None) };
        let number = self.next_number;
        self.next_number += 1;
        let argument = OsString::from_vec(line.clone());
        let job = match &self.json {
            Some(command) => jobs_of_json_line(self.lines.number, &line, command)?,
            None => line::job(line),
        };
        let entry = Entry::new(number, job.number(number), vec![argument]);
        Poll::Ready(Some(Ok(Box::new(entry))))
    }

    fn ahead(&self) -> Ahead {
        self.lines.ahead()
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        let lines = self.lines.again()?;
        Ok(lines.map(|lines| Box::new(Self::new(lines, self.json.clone())) as Box<dyn Input>))
    }
}
