//! When to stop early.

use std::str::FromStr;

use crate::error::HaltError;

/// Stops the run when enough jobs have failed, succeeded or finished: `now,fail=1`, `soon,success=10%`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Halt {
    /// What happens to the jobs that run at that moment.
    pub when: HaltWhen,
    /// Which jobs count.
    pub on: HaltOn,
    /// How many of them are enough.
    pub threshold: Threshold,
}

/// What happens to the jobs that run when the run halts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HaltWhen {
    /// They are ended.
    Now,
    /// They may finish; no more are started.
    Soon,
}

/// Which jobs count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HaltOn {
    /// Those that failed.
    Fail,
    /// Those that succeeded.
    Success,
    /// Both.
    Done,
}

/// How many jobs are enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// This many.
    Count(u64),
    /// This part of all jobs of the list, from 0 to 1, as soon as it is known how many those are.
    Part(f64),
}

/// Jobs that have finished so far, and how many there will be, if that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) failed: u64,
    pub(crate) succeeded: u64,
    pub(crate) total: Option<u64>,
}

impl Halt {
    /// Whether the run should halt by now.
    pub(crate) fn is_reached(&self, finished: Finished) -> bool {
        let count = match self.on {
            HaltOn::Fail => finished.failed,
            HaltOn::Success => finished.succeeded,
            HaltOn::Done => finished.failed + finished.succeeded,
        };
        match (self.threshold, finished.total) {
            (Threshold::Count(enough), _) => count >= enough,
            #[expect(clippy::cast_precision_loss, reason = "a part of 2^53 jobs needs no more")]
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
    fn policies_are_written_as_for_gnu_parallel() {
        let halt = parse("now,fail=1").expect("valid");
        assert_eq!((halt.when, halt.on), (HaltWhen::Now, HaltOn::Fail));
        assert_eq!(halt.threshold, Threshold::Count(1));
        assert_eq!(parse("soon,done=50%").expect("valid").threshold, Threshold::Part(0.5));
        for wrong in ["", "now", "now,fail", "now,fail=0", "later,fail=1", "now,fail=101%", "2"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_part_is_one_of_all_jobs_of_the_list() {
        let halt = parse("soon,fail=50%").expect("valid");
        let after = |failed, total| halt.is_reached(Finished { failed, succeeded: 0, total });
        assert!(!after(2, Some(6)));
        assert!(after(3, Some(6)));
        assert!(!after(3, None), "the end of the list was not seen yet");
    }
}
