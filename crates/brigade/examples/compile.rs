//! "I compile 10,000 files, and some of them hang the compiler."
//!
//! ```sh
//! cargo run -p brigade --example compile -- 200
//! ```
//!
//! The commands run as jobs: one for each core, each with a deadline. A job that fails or is late
//! does not stop the others. The program writes the files itself, and one of them is wrong.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it prints its results")]

use std::error::Error;
use std::fs;
use std::time::Duration;

use brigade::runner::{Event, Job, Output, Runner};

fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(20), |count| count.parse())?;
    let folder = std::env::temp_dir().join(format!("brigade-compile-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let mut jobs = Vec::new();
    for number in 0..count {
        let source = format!("file{number}.c");
        let text = if number == 7 { "int f( {" } else { "int f(int x) { return x + 1; }" };
        fs::write(folder.join(&source), text)?;
        let job = Job::new("cc").args(["-c", &source]).folder(&folder).label(&source);
        jobs.push(job.deadline(Duration::from_secs(30)));
    }
    let runner = Runner::builder().output(Output::Whole).build()?;
    let summary = runner.run(jobs, |event| {
        let Event::Finished(outcome) = event else { return };
        if !outcome.ending.is_success() {
            println!("{}: {}", outcome.job.label.as_deref().unwrap_or_default(), outcome.ending);
            outcome.last_lines(3).iter().for_each(|line| println!("  {line}"));
        }
    });
    fs::remove_dir_all(&folder)?;
    let summary = summary?;
    println!("{} compiled, {} failed", summary.succeeded, summary.failed);
    Ok(())
}
