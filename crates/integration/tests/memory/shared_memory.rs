//! Shared buffers in the arenas: who holds which memory, and that it comes back.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use brigade::{AllocError, Exit, Pool, PoolBuilder, Protection, SharedBuf, Start};
use brigade_integration::{builder, worker_died};
use brigade_testkit::faults::aborts;
use brigade_testkit::{BOUND, Random, outcome, pause, processes, wait_until};
use brigade_testkit_sys::misdeeds::overwrite;

const LARGE: usize = 1 << 20;

/// These tests are about rings, whatever `BRIGADE_LINK` says.
fn ring(workers: usize) -> PoolBuilder {
    builder(workers).link(brigade::Link::Ring)
}

fn pool(workers: usize) -> Pool {
    ring(workers).build().expect("a pool")
}

fn filled(pool: &Pool, byte: u8) -> SharedBuf {
    let mut buffer = pool.alloc(LARGE).expect("memory");
    buffer.fill(byte);
    buffer.freeze()
}

fn make(byte: u8) -> SharedBuf {
    let mut buffer = brigade::worker::alloc(LARGE).expect("memory");
    buffer.fill(byte);
    buffer.freeze()
}

fn is_filled(buffer: &SharedBuf, byte: u8) -> bool {
    // Debug builds compare single bytes slowly.
    **buffer == *vec![byte; LARGE]
}

fn first((buffer, byte): (SharedBuf, u8)) -> Option<u32> {
    is_filled(&buffer, byte).then(|| brigade::worker::slot().expect("a worker"))
}

/// Returns the name of the mapping that holds a buffer.
fn mapping_of(buffer: &SharedBuf) -> String {
    let address = buffer.as_ptr().addr();
    let maps = fs::read_to_string("/proc/self/maps").expect("a list");
    let line = maps.lines().find(|line| {
        let (from, to) =
            line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
        let number = |text| usize::from_str_radix(text, 16).expect("an address");
        (number(from)..number(to)).contains(&address)
    });
    line.expect("a mapping").to_owned()
}

/// Returns the bytes of all arenas that this process has open, in use or warm.
fn arena_bytes() -> u64 {
    let all = fs::read_dir("/proc/self/fd").expect("a list").filter_map(|entry| {
        let path = entry.ok()?.path();
        let target = fs::read_link(&path).ok()?;
        let is_arena = target.to_str()?.contains("memfd:brigade-");
        is_arena.then(|| fs::metadata(&path).map_or(0, |metadata| metadata.blocks() * 512))
    });
    all.sum()
}

/// Returns the numbers of descriptors and of mappings of each name.
fn holdings() -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let links = fs::read_dir("/proc/self/fd").expect("a list").filter_map(|entry| {
        Some(fs::read_link(entry.ok()?.path()).ok()?.to_string_lossy().into_owned())
    });
    let maps = fs::read_to_string("/proc/self/maps").expect("a list");
    let maps = maps.lines().filter_map(|line| Some(format!("map {}", line.split('/').nth(1)?)));
    for name in links.chain(maps).filter(|name| name.contains("memfd:brigade")) {
        *counts.entry(name).or_insert(0) += 1;
    }
    counts
}

/// Lets a test count the holdings of this process while no other one makes and drops buffers.
static TURN: RwLock<()> = RwLock::new(());

fn alone() -> RwLockWriteGuard<'static, ()> {
    TURN.write().unwrap_or_else(PoisonError::into_inner)
}

fn beside_others() -> RwLockReadGuard<'static, ()> {
    TURN.read().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn buffers_lie_in_the_arenas_at_every_level_of_protection() {
    let _turn = beside_others();
    for protection in [Protection::Trusted, Protection::ReadOnly, Protection::Copied] {
        let pool = ring(1).buffer_protection(protection).build().expect("a pool");
        let argument = filled(&pool, 3);
        assert!(mapping_of(&argument).contains("brigade-arguments"));
        let handle = pool.submit(first, (argument.slice(..), 3)).expect("a task");
        assert_eq!(outcome(handle).expect("a value"), Some(0));
        for byte in 0..20 {
            let value = outcome(pool.submit(make, byte).expect("a task")).expect("a value");
            assert!(is_filled(&value, byte));
            let place = if protection == Protection::Copied { "arguments" } else { "results" };
            assert!(mapping_of(&value).contains(place), "{}", mapping_of(&value));
        }
    }
}

/// The last value of [`make_and_keep`].
static KEPT: Mutex<Option<SharedBuf>> = Mutex::new(None);

fn make_and_keep(byte: u8) -> SharedBuf {
    let buffer = make(byte);
    *KEPT.lock().expect("no panic") = Some(buffer.clone());
    buffer
}

fn overwrite_kept(byte: u8) {
    overwrite(KEPT.lock().expect("no panic").as_deref().expect("a value"), byte);
}

#[test]
fn a_stray_write_after_freeze_is_a_fault_at_the_level_for_it() {
    let _turn = beside_others();
    let pool = ring(1).buffer_protection(Protection::ReadOnly).build().expect("a pool");
    let value = outcome(pool.submit(make_and_keep, 5).expect("a task")).expect("a value");
    let (_, exit) = worker_died(outcome(pool.submit(overwrite_kept, 6).expect("a task")));
    assert_eq!(exit, Exit::Signal(11));
    assert!(is_filled(&value, 5));
}

#[test]
fn a_copied_buffer_does_not_change_when_its_worker_writes() {
    let _turn = beside_others();
    let pool = ring(1).buffer_protection(Protection::Copied).build().expect("a pool");
    let value = outcome(pool.submit(make_and_keep, 5).expect("a task")).expect("a value");
    assert!(is_filled(&value, 5));
    outcome(pool.submit(overwrite_kept, 6).expect("a task")).expect("the worker may write");
    assert!(is_filled(&value, 5));
}

#[test]
fn one_buffer_for_eight_tasks_of_many_workers_exists_once() {
    let _turn = beside_others();
    let pool = pool(4);
    pool.warm_up().expect("workers");
    let before = arena_bytes();
    let buffer = filled(&pool, 7);
    let handles: Vec<_> =
        (0..8).map(|_| pool.submit(first, (buffer.clone(), 7)).expect("a task")).collect();
    let everywhere = pool.broadcast(first, (buffer.clone(), 7)).expect("tasks");
    assert!(
        pool.map(first, vec![(buffer.clone(), 7); 8]).all(|slot| slot.expect("a value").is_some())
    );
    for handle in handles.into_iter().chain(everywhere) {
        assert!(outcome(handle).expect("a value").is_some());
    }
    let taken = arena_bytes() - before;
    assert!(taken < 2 * LARGE as u64, "{taken} bytes");
}

#[test]
fn a_worker_reads_the_buffers_of_all_others() {
    let _turn = beside_others();
    let pool = pool(3);
    for handle in pool.broadcast(make, 9).expect("tasks") {
        let value = outcome(handle).expect("a value");
        let readers = pool.broadcast(first, (value.slice(..), 9)).expect("tasks");
        let slots: Vec<_> = readers.into_iter().map(|it| outcome(it).expect("a value")).collect();
        assert_eq!(slots, [Some(0), Some(1), Some(2)]);
        // And it may come back from any of them.
        for echoed in
            pool.broadcast(|buffer: SharedBuf| buffer.slice(1..), value.clone()).expect("tasks")
        {
            let echoed = outcome(echoed).expect("a value");
            assert_eq!(echoed.as_ptr(), value[1..].as_ptr(), "it is the same memory");
        }
    }
}

#[test]
fn a_worker_may_keep_its_argument_and_its_value() {
    static KEPT: Mutex<Vec<SharedBuf>> = Mutex::new(Vec::new());
    fn keeps((buffer, own): (SharedBuf, u8)) -> (bool, SharedBuf) {
        let own = make(own);
        let mut kept = KEPT.lock().expect("no panic under the lock");
        kept.extend([buffer, own.clone()]);
        let is_intact = kept.iter().all(|it| is_filled(it, it[0]));
        if kept.len() > 8 {
            kept.drain(..4);
        }
        (is_intact, own)
    }
    let _turn = beside_others();
    let pool = ring(1).buffer_budget(32 << 20).build().expect("a pool");
    for round in 0..100 {
        let argument = filled(&pool, round);
        let handle = pool.submit(keeps, (argument, round + 100)).expect("a task");
        let (is_intact, own) = outcome(handle).expect("a value");
        assert!(is_intact && is_filled(&own, round + 100));
    }
    // Of all that it has kept, nothing is left after its death.
    worker_died(outcome(pool.submit(aborts, ()).expect("a task")));
    let all = 14 * LARGE;
    wait_until("memory to come back", BOUND, || {
        let free: Result<Vec<_>, _> = (0..all / LARGE).map(|_| pool.try_alloc(LARGE)).collect();
        free.is_ok()
    });
}

#[test]
fn the_budget_holds_on_both_sides() {
    let _turn = beside_others();
    let pool = ring(1).buffer_budget(8 * LARGE).build().expect("a pool");
    let mut held: Vec<_> = (0..3).map(|byte| filled(&pool, byte)).collect();
    let error = loop {
        match pool.try_alloc(LARGE) {
            Ok(buffer) => held.push(buffer.freeze()),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, AllocError::BudgetUsedUp { .. }), "{error:?}");
    assert!(held.len() <= 4, "{}", held.len());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| filled(&pool, 9));
        pause(Duration::from_millis(20));
        assert!(!waiting.is_finished(), "it waits for a release");
        drop(held.pop());
        assert!(is_filled(&waiting.join().expect("no panic"), 9));
    });
    // The worker's share is the other half. It waits until the host drops some values.
    let handles: Vec<_> = (0..12).map(|byte| pool.submit(make, byte).expect("a task")).collect();
    for (byte, handle) in (0..).zip(handles) {
        assert!(is_filled(&outcome(handle).expect("a value"), byte));
    }
    let fails = |count: usize| {
        let all: Vec<_> = (0..count).map(|_| brigade::worker::try_alloc(LARGE)).collect();
        all.into_iter().filter(Result::is_err).count()
    };
    let failed = outcome(pool.submit(fails, 8).expect("a task")).expect("a value");
    assert!(failed >= 4, "{failed}");
}

/// Returns buffers that all exist at once.
fn make_many((byte, count): (u8, usize)) -> Vec<SharedBuf> {
    (0..count).map(|_| make(byte)).collect()
}

#[test]
fn a_long_stream_uses_the_same_buffers_again() {
    const WORKERS: usize = 2;
    const OUTPUT: usize = 3;
    let _turn = beside_others();
    let pool = pool(WORKERS);
    // A worker may have all tasks of the stream, and the consumer reads one more buffer.
    let most = WORKERS + OUTPUT + 1;
    let place = |buffer: &SharedBuf| buffer.as_ptr().addr();
    let made = pool.broadcast(make_many, (1, most)).expect("tasks").into_iter();
    let used: BTreeSet<usize> =
        made.flat_map(|handle| outcome(handle).expect("buffers")).map(|it| place(&it)).collect();
    let stream = pool.stream(make).output(OUTPUT).start().expect("a stream");
    for _ in 0..200 {
        while stream.try_put(2).is_ok() {}
        let item = stream.recv().expect("an item").result.expect("a buffer");
        assert!(used.contains(&place(&item)), "a buffer lies in memory that was not used before");
    }
}

#[test]
fn buffers_outlive_their_worker_their_handle_and_their_pool() {
    let _turn = alone();
    let before = holdings();
    let pool = pool(2);
    let argument = filled(&pool, 5);
    let value = outcome(pool.submit(make, 6).expect("a task")).expect("a value");
    let undecoded = pool.submit(make, 7).expect("a task");
    wait_until("the value", BOUND, || undecoded.is_done());
    for _ in 0..2 {
        worker_died(outcome(pool.submit(aborts, ()).expect("a task")));
    }
    let third = outcome(undecoded).expect("a value");
    let fourth = pool.submit(make, 8).expect("a task");
    wait_until("the value", BOUND, || fourth.is_done());
    drop(pool);
    let fourth = outcome(fourth).expect("a value");
    for (buffer, byte) in [(argument, 5), (value, 6), (third, 7), (fourth, 8)] {
        assert!(is_filled(&buffer.slice(..), byte));
        drop(buffer);
    }
    wait_until("everything to be closed", BOUND, || holdings() == before);
}

#[test]
fn a_worker_killed_at_any_moment_of_a_batch_leaves_nothing() {
    fn batch((buffer, byte): (SharedBuf, u8)) -> Vec<SharedBuf> {
        let mut made: Vec<_> = (0..3).map(|index| make(byte + index)).collect();
        made.push(buffer.slice(100..));
        made
    }
    let _turn = alone();
    let kills: u32 = std::env::var("BRIGADE_TEST_KILLS")
        .map_or(100, |text| text.parse().expect("BRIGADE_TEST_KILLS is a number"));
    // From the beginning, so that a server is among what is held.
    let pool = ring(2).start(Start::Fork).restart_budget(1_000_000, Duration::from_secs(1));
    let pool = pool.build().expect("a pool");
    let mut rng = Random::new(Random::seed_from("BRIGADE_TEST_SEED"));
    let mut lost = 0;
    let mut round = |rng: &mut Random, kills: bool| {
        pool.warm_up().expect("workers");
        let handles: Vec<_> = (0..6)
            .map(|byte| pool.submit(batch, (filled(&pool, byte), byte)).expect("a task"))
            .collect();
        if kills {
            pause(rng.below(Duration::from_millis(4)));
            if let Some(pid) = pool.worker_pids().first() {
                processes::hit_group(*pid, processes::Signal::KILL);
            }
        }
        for (byte, handle) in (0..).zip(handles) {
            match outcome(handle) {
                Ok(made) => {
                    assert!((0..3).zip(&made).all(|(index, it)| is_filled(it, byte + index)));
                    assert!(made[3][..] == vec![byte; LARGE - 100]);
                }
                Err(error) => {
                    assert!(error.is_worker_death(), "{error:?}");
                    lost += 1;
                }
            }
        }
    };
    for _ in 0..5 {
        round(&mut rng, false);
    }
    let before = holdings();
    for _ in 0..kills {
        round(&mut rng, true);
    }
    round(&mut rng, false);
    pool.warm_up().expect("workers");
    wait_until("descriptors and mappings to be as before", BOUND, || holdings() == before);
    // The host keeps the blocks of a round warm, and so does a worker, which may have run it all.
    let bound = (6 + 2 * 6 * 3 + 6) * LARGE as u64;
    wait_until("memory beyond that of a round to go back", BOUND, || arena_bytes() <= bound);
    assert!(lost > 0 || kills < 50, "no kill interrupted a task");
    // All of the host's share can be had.
    let all: Vec<_> = (0..64).map(|_| pool.try_alloc(LARGE).expect("room")).collect();
    assert_eq!(all.len(), 64);
}

/// Runs a worker that names memory which is not its own, in the given way.
#[track_caller]
fn assert_breach(how: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_liar"));
    command.arg(how);
    let pool = ring(1).worker_command(&command).build().expect("a pool");
    let echo = |buffer: SharedBuf| buffer;
    let sent = filled(&pool, 3);
    let error = outcome(pool.submit(echo, sent.clone()).expect("a task")).expect_err("a breach");
    assert!(error.is_worker_death() && error.to_string().contains("protocol"), "{how}: {error}");
    assert!(is_filled(&sent, 3));
    drop(pool);
}

#[test]
fn a_worker_that_names_memory_of_others_is_killed() {
    let _turn = beside_others();
    for how in ["argument", "foreign", "result", "keeps", "releases"] {
        assert_breach(how);
    }
}
