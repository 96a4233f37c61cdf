//! Jobs from a stream with one job per line.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;

use super::{Entry, Fetch, Fetched, Input, Lines, jobs_of_json_line};
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
        let line = match self.lines.next(waits)? {
            Fetch::Entry(line) => line,
            Fetch::Later => return Ok(Fetch::Later),
            Fetch::End => return Ok(Fetch::End),
        };
        let number = self.next_number;
        self.next_number += 1;
        let argument = OsString::from_vec(line.clone());
        let job = match &self.json {
            Some(command) => jobs_of_json_line(self.lines.number(), &line, command)?,
            None => line::job(line),
        };
        let entry = Entry::new(number, job.number(number), vec![argument]);
        Ok(Fetch::Entry(Box::new(entry)))
    }

    fn remaining(&self) -> Option<u64> {
        self.lines.remaining()
    }

    fn read_ahead(&self) -> u64 {
        self.lines.read_ahead()
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        let lines = self.lines.again()?;
        Ok(lines.map(|lines| Box::new(Self::new(lines, self.json.clone())) as Box<dyn Input>))
    }
}
