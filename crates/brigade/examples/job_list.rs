//! "My list of commands takes days, and I must be able to resume it."
//!
//! ```sh
//! cargo run -p brigade --example job_list -- /tmp/primes.log 40
//! ```
//!
//! Each command looks for the prime factors of a number. Stop the program with Ctrl-C or by
//! SIGKILL, and start it again with the same list: it runs what is left, and skips the jobs that
//! the log records as successful.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it prints what it has found")]

use std::error::Error;

use brigade::runner::{Event, Job, Joblog, Output, Runner};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(log), Some(count)) = (arguments.next(), arguments.next()) else {
        return Err("usage: job_list LOG COUNT".into());
    };
    let count: u64 = count.parse()?;
    let numbers = (0..count).map(|n| (1_u64 << 62) + n);
    let jobs = numbers.map(|number| Job::new("factor").arg(number.to_string()));

    let (mut joblog, done) = Joblog::resume(log)?;
    let jobs = done.remaining(jobs)?;
    println!("{} of {count} jobs are left", jobs.len());

    let runner = Runner::builder().output(Output::Whole).retries(1).build()?;
    let stopper = runner.stopper();
    let mut failure = None;
    let summary = runner.run(jobs, |event| {
        let Event::Finished(outcome) = event else { return };
        let found = outcome.stdout().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        // First the result, then the log: a job that is logged as successful does not run again.
        let logged = found.and_then(|found| {
            print!("{found}");
            joblog.write(&outcome)
        });
        if let Err(error) = logged {
            failure = Some(error);
            stopper.stop();
        }
    })?;
    println!("{} succeeded, {} failed", summary.succeeded, summary.failed);
    failure.map_or(Ok(()), |error| Err(error.into()))
}
