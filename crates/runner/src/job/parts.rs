//! The parts of a job, for those that run it.

use std::ffi::{OsStr, OsString};

use super::{Command, Job, SHELL, Stdin};

brigade_sys::setters! {
    impl Job;

    /// Sets the number of cores it needs, at least 1.
    pub fn cores(self, cores: usize) { self.cores = Some(cores) }

    /// Adds an amount of a [resource](crate::Builder::resource) that the job takes while it runs,
    /// instead of what the runner's setting says. Variables of its environment name what it has,
    /// such as `BRIGADE_RESOURCE_GPU=0,3`.
    pub fn needs(self, resource: impl Into<String>, amount: u64) {
        self.needs.push((resource.into(), amount));
    }
}

impl Job {
    /// Returns the resources that the job needs, if it sets any.
    pub fn needed(&self) -> impl Iterator<Item = (&str, u64)> {
        self.needs.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Returns the variables that are set for the job.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// Returns the standard input.
    pub fn standard_input(&self) -> &Stdin {
        &self.stdin
    }

    /// Returns the number of cores, if the job sets it.
    pub fn core_count(&self) -> Option<usize> {
        self.cores
    }

    /// Returns the marker that stands for the number of its slot.
    pub fn slot_marker_text(&self) -> Option<&OsStr> {
        self.slot_marker.as_deref()
    }

    /// Returns the words to execute, including the shell and the prelude.
    pub(crate) fn words_on(&self, slot: usize) -> Vec<OsString> {
        self.words_of(self.command_on(slot))
    }

    /// Returns a job that does the same with a single command, without a shell or prelude of its
    /// own. Another machine may run it.
    #[must_use]
    pub fn plain(&self) -> Self {
        let command = Command::Argv(self.words_of(self.command.clone()));
        Self { command, shell: None, prelude: None, ..self.clone() }
    }

    /// Returns a job that does the same on the slot with this number, wherever it runs.
    #[must_use]
    pub fn on_slot(&self, slot: &str) -> Self {
        Self { command: self.with_slot(slot), slot_marker: None, ..self.clone() }
    }

    fn words_of(&self, command: Command) -> Vec<OsString> {
        let mut words = match command {
            Command::Argv(words) => words,
            Command::Shell(line) => {
                vec![self.shell.clone().unwrap_or_else(|| SHELL.into()), "-c".into(), line]
            }
        };
        if let Some(line) = &self.prelude {
            let script = format!("{{\n{line}\n}} || exit\nexec \"$@\"");
            words.splice(0..0, ["/bin/sh", "-c", &script, "sh"].map(OsString::from));
        }
        words
    }
}
