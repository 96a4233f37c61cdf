//! Runs on a machine that is simulated.

use std::collections::VecDeque;

use crate::event::Event;
use crate::job::Job;
use crate::outcome::Ending;
use crate::remote::{News, Remote, RemoteAttempt, RemoteReport};
use crate::runner::Runner;
use crate::stopper::Stopper;
use crate::{Builder, Client, Halt, Supply};

/// Another machine with one place, which runs `exit CODE` and lets all else run without end.
struct Elsewhere {
    stopper: Stopper,
    waiting: VecDeque<(u64, String)>,
    running: Option<u64>,
    news: VecDeque<News>,
    begun: usize,
}

impl Elsewhere {
    fn new(runner: &Runner) -> Self {
        let (stopper, waiting, news) = (runner.stopper(), VecDeque::new(), VecDeque::new());
        Self { stopper, waiting, running: None, news, begun: 0 }
    }

    fn advance(&mut self) {
        while self.running.is_none()
            && let Some((ticket, line)) = self.waiting.pop_front()
        {
            self.begun += 1;
            self.news.push_back(News::Began { ticket, host: "there".into() });
            match line.strip_prefix("exit ").and_then(|code| code.parse().ok()) {
                Some(code) => {
                    let report = RemoteReport::new(Ending::Exited(code));
                    self.news.push_back(News::Ended { ticket, report: Box::new(report) });
                }
                None => self.running = Some(ticket),
            }
        }
        self.stopper.wake();
    }
}

impl Remote for Elsewhere {
    fn submit(&mut self, attempt: RemoteAttempt<'_>) -> Result<(), String> {
        let line = attempt.job.to_string();
        if line == "refused" {
            return Err("it is refused".to_owned());
        }
        self.waiting.push_back((attempt.ticket, line));
        self.stopper.wake();
        Ok(())
    }

    fn end(&mut self, ticket: u64) {
        let is_it = |(other, _): &(u64, String)| *other == ticket;
        let was_waiting = self.waiting.iter().position(is_it);
        let was_running = self.running.take_if(|running| *running == ticket);
        if let Some(at) = was_waiting {
            self.waiting.remove(at);
        }
        if was_waiting.is_some() || was_running.is_some() {
            self.news.push_back(News::Withdrawn { ticket });
        }
        self.stopper.wake();
    }

    fn news(&mut self) -> Option<News> {
        if self.news.is_empty() {
            self.advance();
        }
        self.news.pop_front()
    }
}

/// Records the number, the ending and the attempts of each job that is over.
struct Recorder {
    jobs: VecDeque<Job>,
    over: Vec<(u64, String, u32)>,
    /// Stops the run when this job has begun.
    stops_at: Option<(u64, Stopper)>,
}

impl Client for Recorder {
    fn next(&mut self) -> Supply {
        self.jobs.pop_front().map_or(Supply::End, |job| Supply::Job(Box::new(job)))
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Started { number, host, .. } => {
                assert_eq!(host.as_deref(), Some("there"));
                if let Some((_, stopper)) = self.stops_at.take_if(|(at, _)| *at == number) {
                    stopper.kill();
                }
            }
            Event::Finished(outcome) => {
                let ending = outcome.ending.to_string();
                self.over.push((outcome.number, ending, outcome.attempts));
            }
            _ => {}
        }
    }
}

/// Runs lines elsewhere. Returns what is over, by number, and the number of attempts that began.
fn run(
    lines: &[&str],
    stops_at: Option<u64>,
    set: impl FnOnce(Builder) -> Builder,
) -> (Vec<(u64, String, u32)>, usize) {
    let runner = set(Runner::builder().unpinned().jobs(9)).build().expect("a runner");
    let mut elsewhere = Elsewhere::new(&runner);
    let jobs = lines.iter().map(|line| Job::shell(*line)).collect();
    let stops_at = stops_at.map(|at| (at, runner.stopper()));
    let mut recorder = Recorder { jobs, over: Vec::new(), stops_at };
    runner.run_remote(&mut recorder, &mut elsewhere).expect("a summary");
    recorder.over.sort_unstable();
    (recorder.over, elsewhere.begun)
}

fn over(number: u64, ending: &str, attempts: u32) -> (u64, String, u32) {
    (number, ending.to_owned(), attempts)
}

#[test]
fn attempts_are_made_elsewhere() {
    let (ended, begun) = run(&["exit 0", "exit 3", "refused"], None, |run| run.retries(1));
    let expected =
        [over(1, "exit code 0", 1), over(2, "exit code 3", 2), over(3, "it is refused", 1)];
    assert_eq!((ended, begun), (expected.to_vec(), 3));
}

#[test]
fn a_halted_run_withdraws_what_has_not_begun() {
    let halt: Halt = "now,fail=1".parse().expect("a policy");
    let lines = ["exit 1", "run", "exit 0", "exit 0"];
    let (ended, begun) = run(&lines, None, |run| run.halt(halt));
    assert_eq!(ended[0], over(1, "exit code 1", 1));
    assert_eq!(ended[1], over(2, "stopped with the run", 1));
    assert_eq!(ended[2..], [3, 4].map(|number| over(number, "stopped with the run", 0)));
    assert_eq!(begun, 2);
}

#[test]
fn a_killed_run_has_an_outcome_for_each_job() {
    let (ended, begun) = run(&["exit 0", "run", "exit 0"], Some(2), |run| run);
    assert_eq!(ended[0], over(1, "exit code 0", 1));
    assert_eq!(ended[1], over(2, "stopped with the run", 1));
    assert_eq!(ended[2], over(3, "stopped with the run", 0));
    assert_eq!(begun, 2);
}
