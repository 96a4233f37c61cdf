//! Policies for ending a run early.

use std::str::FromStr;

use crate::error::HaltError;

/// A policy that ends the run when enough jobs have failed, succeeded or finished, such as
/// `now,fail=1` or `soon,success=10%`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Halt {
    /// The treatment of running jobs.
    pub when: HaltWhen,
    /// The jobs that count.
    pub on: HaltOn,
    /// Number of jobs that is enough.
    pub threshold: Threshold,
}

/// The treatment of running jobs when the run halts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HaltWhen {
    /// They are ended.
    Now,
    /// They may finish; no more are started.
    Soon,
}

/// The jobs that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HaltOn {
    /// Those that failed.
    Fail,
    /// Those that succeeded.
    Success,
    /// Both.
    Done,
}

/// Number of jobs that is enough to halt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// This many.
    Count(u64),
    /// This fraction of all jobs of the list, from 0 to 1. Applies once the length of the list is
    /// known.
    Part(f64),
}

/// Number of jobs that have finished so far, and the total if it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) failed: u64,
    pub(crate) succeeded: u64,
    pub(crate) total: Option<u64>,
}

impl Halt {
    /// Returns `true` if the run should halt now.
    pub(crate) fn is_reached(&self, finished: Finished) -> bool {
        let count = match self.on {
            HaltOn::Fail => finished.failed,
            HaltOn::Success => finished.succeeded,
            HaltOn::Done => finished.failed + finished.succeeded,
        };
        match (self.threshold, finished.total) {
            (Threshold::Count(enough), _) => count >= enough,
            #[expect(
                clippy::cast_precision_loss,
                reason = "a fraction of 2^53 jobs is precise enough"
            )]
            (Threshold::Part(part), Some(total)) => {
                count > 0 && count as f64 >= part * total as f64
            }
            (Threshold::Part(_), None) => false,
        }
    }
}

impl FromStr for Halt {
    type Err = HaltError;

    fn from_str(text: &str) -> Result<Self, HaltError> {
        let wrong = || HaltError { text: text.to_owned() };
        let (when, rest) = text.split_once(',').ok_or_else(wrong)?;
        let (on, threshold) = rest.split_once('=').ok_or_else(wrong)?;
        let when = match when {
            "now" => HaltWhen::Now,
            "soon" => HaltWhen::Soon,
            _ => return Err(wrong()),
        };
        let on = match on {
            "fail" => HaltOn::Fail,
            "success" => HaltOn::Success,
            "done" => HaltOn::Done,
            _ => return Err(wrong()),
        };
        let threshold = match threshold.strip_suffix('%') {
            Some(percent) => {
                let percent: f64 = percent.parse().map_err(|_| wrong())?;
                if !(percent > 0.0 && percent <= 100.0) {
                    return Err(wrong());
                }
                Threshold::Part(percent / 100.0)
            }
            None => match threshold.parse() {
                Ok(count) if count > 0 => Threshold::Count(count),
                _ => return Err(wrong()),
            },
        };
        Ok(Self { when, on, threshold })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Halt> {
        text.parse().ok()
    }

    #[test]
    fn policies_are_written_as_in_gnu_parallel() {
        let halt = parse("now,fail=1").expect("valid");
        assert_eq!((halt.when, halt.on), (HaltWhen::Now, HaltOn::Fail));
        assert_eq!(halt.threshold, Threshold::Count(1));
        assert_eq!(parse("soon,done=50%").expect("valid").threshold, Threshold::Part(0.5));
        for wrong in ["", "now", "now,fail", "now,fail=0", "later,fail=1", "now,fail=101%", "2"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_percentage_refers_to_all_jobs_of_the_list() {
        let halt = parse("soon,fail=50%").expect("valid");
        let after = |failed, total| halt.is_reached(Finished { failed, succeeded: 0, total });
        assert!(!after(2, Some(6)));
        assert!(after(3, Some(6)));
        assert!(!after(3, None), "the end of the list has not been seen yet");
    }
}
