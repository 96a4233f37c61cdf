//! The progress area on a terminal: a bar and the running jobs.

use brigade::cores::CpuSet;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::terminal::Terminal;
use super::text::fit;
use super::{Statistics, short};

/// The progress area on a terminal.
#[derive(Debug)]
pub(super) struct Area {
    all: MultiProgress,
    /// `None` until it is drawn for the first time.
    bar: Option<ProgressBar>,
    jobs: Vec<ProgressBar>,
}

/// Maximum number of running jobs that are listed; the others are only counted.
const MAX_JOBS: usize = 8;
/// Number of lines of the terminal left for the output of jobs.
const OTHER_LINES: usize = 4;
/// Maximum number of redraws per second.
const DRAWS: u8 = 10;
/// Below this width only the most important parts are shown.
const NARROW: usize = 60;

impl Area {
    pub(super) fn new() -> Self {
        let terminal = Box::new(Terminal::stderr());
        let target = ProgressDrawTarget::term_like_with_hz(terminal, DRAWS);
        let all = MultiProgress::with_draw_target(target);
        Self { all, bar: None, jobs: Vec::new() }
    }

    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.all.suspend(print)
    }

    pub(super) fn draw(&mut self, statistics: &Statistics) {
        let (height, width) = console::Term::stderr().size();
        let (height, width) = (usize::from(height), usize::from(width));
        if let Some(bar) = &self.bar {
            draw_bar(bar, statistics, width);
        } else {
            // Complete before it is shown.
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
            draw_bar(&bar, statistics, width);
            self.bar = Some(self.all.add(bar));
        }
        let room = height.saturating_sub(OTHER_LINES).clamp(1, MAX_JOBS);
        let running = statistics.running_count();
        let mut lines: Vec<String> =
            statistics.running().take(room).map(|job| job_line(job, width)).collect();
        if running > lines.len() {
            let more = running - lines.len();
            lines.push(format!("  and {more} more"));
        }
        while self.jobs.len() < lines.len() {
            let line = self.all.add(ProgressBar::new(0));
            line.set_style(style("{msg}"));
            self.jobs.push(line);
        }
        while self.jobs.len() > lines.len() {
            if let Some(line) = self.jobs.pop() {
                line.finish_and_clear();
                self.all.remove(&line);
            }
        }
        for (line, text) in self.jobs.iter().zip(lines) {
            line.set_message(text);
        }
    }

    /// Removes the area until it is drawn again.
    pub(super) fn clear(&mut self) {
        // Fails only if the terminal is gone.
        let _ = self.all.clear();
    }

    /// Removes the area for good.
    pub(super) fn close(&mut self) {
        self.clear();
        self.all.set_draw_target(ProgressDrawTarget::hidden());
    }
}

fn draw_bar(bar: &ProgressBar, statistics: &Statistics, width: usize) {
    let done = statistics.finished_count();
    let failed = statistics.failed();
    let mut parts = Vec::new();
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    if width >= NARROW {
        parts.push(format!("{}/{} running", statistics.running_count(), statistics.slots()));
        parts.push(format!("{} elapsed", short(statistics.elapsed())));
    }
    match (statistics.rest(), statistics.total()) {
        (Some(rest), _) => parts.push(format!("{} left", short(rest))),
        (None, Some(_)) if width >= NARROW => parts.push("? left".to_owned()),
        _ => {}
    }
    let text = parts.join(", ");
    if let Some(total) = statistics.total() {
        bar.set_style(style("{prefix} {wide_bar} {msg}").progress_chars("█▉▊▋▌▍▎▏ "));
        bar.set_prefix(format!("{done}/{total}"));
        bar.set_message(text);
        bar.set_length(total.max(1));
        bar.set_position(done);
    } else {
        // The number of jobs is not known before the end of the input.
        bar.set_style(style("{msg}"));
        bar.set_message(fit(&format!("{done} done, {text}"), width));
    }
}

fn job_line(job: &super::statistics::Running, width: usize) -> String {
    let cores: CpuSet = job.cores.iter().copied().collect();
    let cores = if cores.is_empty() { "-".to_owned() } else { cores.to_string() };
    let age = short(job.since.elapsed());
    let text = if width < NARROW {
        format!(" {age:>6} {}", job.name)
    } else {
        format!(" {age:>6}  cores {cores:<5} {:>5}  {}", format!("#{}", job.number), job.name)
    };
    fit(&text, width.saturating_sub(1))
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants in this file; if one is wrong, the default style is used.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
