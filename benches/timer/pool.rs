//! Deadlines of a pool's tasks: how late the caller learns of them, and whether each task has its own outcome.

use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};

use brigade::{Pool, TaskErrorKind};
use brigade_sys::process::{Process, command};
use brigade_testkit::{Random, pause};

use super::print_times;

/// Enough that the tasks, which sleep, are many at a time.
const WORKERS: usize = 64;

/// Tasks that hang, each with a deadline between 1 and 500 ms.
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
        late.push(ran.checked_sub(limit).ok_or("a task was killed early")?);
    }
    drop(busy);
    println!("killed early: 0 of {tasks}");
    print_times("deadline to the outcome known", &mut late);
    Ok(())
}

/// Tasks that end just when their deadline comes, on a pool that has always something to do.
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
            Ok(answer) if answer == number => in_time += 1,
            Ok(answer) => return Err(format!("task {number} has the result of {answer}").into()),
            Err(error) if error.is_deadline() => late += 1,
            Err(error) => return Err(error.into()),
        }
    }
    if pool.submit(|number: u64| number + 1, 41)?.wait()? != 42 {
        return Err("the pool does not work any more".into());
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

/// A task that holds a gigabyte is killed; how long until the next one runs.
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
        print_times(&format!("kill with {} MiB to the next task done", size >> 20), &mut times);
    }
    Ok(())
}
