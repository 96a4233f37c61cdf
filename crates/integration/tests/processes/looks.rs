//! Looks at tasks that sleep, poll and receive, as often as it can, and checks that none of them
//! notices: each has the result that it has when nobody looks.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use brigade::status::Source;
use brigade::{Link, Pool, Start};
use brigade_integration::builder;
use brigade_testkit::{BOUND, Random};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{Timespec, poll};
use rustix::thread::nanosleep;

/// The number of ways in which a task waits.
const WAYS: u64 = 6;

/// Tasks of one pool, before the next kind of pool follows.
const TASKS: usize = 50;

/// The variable with the seconds for which tasks are looked at. Default: one round of pools.
const SECONDS: &str = "BRIGADE_LOOKS_SECONDS";

/// Waits in a call that a signal ends early, perhaps after some work, and says how it has ended.
fn waits((way, micros): (u64, u64)) -> String {
    let time = Duration::from_micros(micros);
    let limit = Timespec::try_from(time).unwrap();
    if way % 2 == 1 {
        // A task that has computed is about to wait.
        let begin = Instant::now();
        while begin.elapsed() < time {}
    }
    match way / 2 {
        0 => format!("{:?}", poll(&mut [], Some(&limit))),
        1 => {
            let group = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
            let mut events = [epoll::Event { flags: EventFlags::IN, data: EventData::new_u64(0) }];
            let slept = format!("{:?}", nanosleep(&limit));
            format!("{slept} {:?}", epoll::wait(&group, &mut events, Some(&limit)))
        }
        _ => {
            let (mut one, _other) = UnixStream::pair().unwrap();
            one.set_read_timeout(Some(time)).unwrap();
            format!("{:?}", one.read(&mut [0; 8]).map_err(|error| error.kind()))
        }
    }
}

#[test]
fn a_task_that_waits_does_not_notice_that_it_is_looked_at() {
    let seconds = std::env::var(SECONDS).map_or(0, |text| text.parse().expect("a number"));
    let (begin, seed) = (Instant::now(), Random::fresh_seed());
    let mut random = Random::new(seed);
    let [mut tasks, mut looks, mut stacks] = [0_u64; 3];
    loop {
        for pool in pools() {
            let source = pool.status_source();
            for _ in 0..TASKS {
                let (way, micros) = (random.within(0..WAYS), random.within(1..2_000));
                let mut handle = pool.submit(waits, (way, micros)).unwrap();
                while !handle.is_done() {
                    let is_seen = match looks % 2 {
                        0 => handle.stack().is_some(),
                        _ => source.stack(0).is_some(),
                    };
                    (looks, stacks) = (looks + 1, stacks + u64::from(is_seen));
                }
                tasks += 1;
                let result = handle.wait_timeout(BOUND).expect("an outcome").unwrap();
                assert_eq!(result, waits((way, 1)), "seed {seed}, way {way}, task {tasks}");
            }
        }
        // A busy machine needs more rounds: looks in vain would show nothing.
        if begin.elapsed().as_secs() >= seconds && stacks >= 100 {
            break;
        }
        let what = format!("{tasks} tasks, {looks} looks, {stacks} stacks");
        assert!(begin.elapsed() < Duration::from_secs(seconds) + BOUND, "{what}");
    }
}

/// One pool of each kind whose workers are looked at in a different way.
fn pools() -> impl Iterator<Item = Pool> {
    (0..4).map(|kind| {
        let builder = builder(1);
        let builder = match kind {
            0 => builder.start(Start::Exec),
            1 => builder.start(Start::Fork),
            2 => builder.link(Link::Ipc),
            _ => builder.fresh_process_per_task(),
        };
        builder.build().unwrap()
    })
}
