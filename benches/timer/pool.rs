//! Measures deadlines of a pool's tasks: lateness, tasks that finish close to their deadline, and
//! kills of tasks with a lot of memory.

use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};

use brigade::{Pool, TaskErrorKind};
use brigade_sys::process::{Process, command};
use brigade_testkit::{Random, pause};

use super::print_times;

/// Number of workers; far more than cores, because the tasks only sleep.
const WORKERS: usize = 64;

/// Runs tasks that hang, each with a deadline between 1 and 500 ms.
pub(crate) fn lateness(tasks: usize, busy: usize) -> Result<(), Box<dyn Error>> {
    let pool = Pool::builder().workers(WORKERS).build()?;
    pool.warm_up()?;
    let spin = "while :; do :; done";
    let busy: Vec<Process> = (0..busy)
        .map(|_| Process::spawn(command("sh").args(["-c", spin])))
        .collect::<Result<_, _>>()?;
    let mut random = Random::new(1);
    let handles = (0..tasks)
        .map(|_| {
            let deadline = Duration::from_nanos(random.within(1_000_000..500_000_000));
            pool.task(|(): ()| pause(Duration::from_secs(3_600))).deadline(deadline).submit(())
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut late = Vec::with_capacity(tasks);
    for handle in handles {
        let error = handle.wait().expect_err("a task that hangs");
        let TaskErrorKind::DeadlineExceeded { limit, .. } = error.kind() else {
            return Err(error.into());
        };
        let ran = error.elapsed().ok_or("the running time is missing")?;
        late.push(ran.checked_sub(*limit).ok_or("a task was killed early")?);
    }
    drop(busy);
    println!("killed early: 0 of {tasks}");
    print_times("deadline to the outcome known", &mut late);
    Ok(())
}

/// Runs tasks that finish close to their deadline in a busy pool, and checks that each task has its
/// own outcome.
pub(crate) fn edge(tasks: u64) -> Result<(), Box<dyn Error>> {
    const DEADLINE: Duration = Duration::from_millis(20);
    let pool = Pool::builder().workers(WORKERS).deadline(DEADLINE).build()?;
    let begin = Instant::now();
    let mut random = Random::new(2);
    let handles = (0..tasks)
        .map(|number| {
            let nanos = random.within(18_000_000..22_000_000);
            let task = |(number, nanos): (u64, u64)| {
                pause(Duration::from_nanos(nanos));
                number
            };
            pool.submit(task, (number, nanos))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let (mut in_time, mut late) = (0_u64, 0_u64);
    for (number, handle) in (0..).zip(handles) {
        match handle.wait() {
            Ok(value) if value == number => in_time += 1,
            Ok(value) => return Err(format!("task {number} has the value of task {value}").into()),
            Err(error) if error.is_deadline() => late += 1,
            Err(error) => return Err(error.into()),
        }
    }
    if pool.submit(|number: u64| number + 1, 41)?.wait()? != 42 {
        return Err("the pool returned a wrong value after the deadlines".into());
    }
    println!(
        "{tasks} tasks of 18 to 22 ms with a deadline of 20 ms: {in_time} in time, {late} late, \
         each with its own outcome, in {:.0?}; {} workers were replaced",
        begin.elapsed(),
        pool.worker_restarts()
    );
    pool.shutdown()?;
    Ok(())
}

/// Kills a task that holds a gigabyte, and measures the time until the next task has run.
pub(crate) fn heavy(rounds: usize) -> Result<(), Box<dyn Error>> {
    let pool = Pool::builder().workers(1).build()?;
    let mut times = Vec::new();
    for size in [0_usize, 1 << 30] {
        times.clear();
        for _ in 0..rounds {
            let hog = pool.submit(
                |bytes: usize| {
                    let memory = std::hint::black_box(vec![1_u8; bytes]);
                    let _ = Command::new("true").status();
                    pause(Duration::from_secs(3_600));
                    drop(memory);
                },
                size,
            )?;
            while hog.running_for().is_none_or(|time| time < Duration::from_secs(1)) {
                pause(Duration::from_millis(10));
            }
            let next = pool.submit(|(): ()| (), ())?;
            let begin = Instant::now();
            hog.kill();
            next.wait()?;
            times.push(begin.elapsed());
        }
        print_times(&format!("kill with {} MiB to end of next task", size >> 20), &mut times);
    }
    Ok(())
}
