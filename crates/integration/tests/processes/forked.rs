//! Workers that are forked from a server of their pool.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::process::id;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brigade::{Handle, Link, Pool, PoolBuilder, Start, TaskState, worker};
use brigade_integration::{Log, builder, square};
use brigade_testkit::faults;
use brigade_testkit::processes::{self, Signal};
use brigade_testkit::{
    BOUND, LeakCheck, Random, outcome, pause, repetitions, wait_for, wait_until,
};
use brigade_testkit_sys::misdeeds;
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Waits until no other test of this program runs: most look at this process or its children.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn links() -> [Link; 2] {
    [Link::Ring, Link::Ipc]
}

fn forked() -> PoolBuilder {
    builder(1).start(Start::Fork)
}

fn own_pid((): ()) -> u32 {
    id()
}

fn aborts((): ()) {
    std::process::abort()
}

fn exits((): ()) {
    std::process::exit(7)
}

/// Returns the fork servers of this process.
fn servers() -> Vec<u32> {
    let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    processes::children().into_iter().filter(|pid| name(*pid).trim() == "brigade-fork").collect()
}

fn server() -> u32 {
    wait_for("a fork server", BOUND, || servers().first().copied())
}

fn works(pool: &Pool) {
    assert_eq!(outcome(pool.submit(square, 7).unwrap()).unwrap(), 49);
}

/// Ends the worker, so that the next task needs another one.
fn crash(pool: &Pool) {
    assert!(outcome(pool.submit(aborts, ()).unwrap()).is_err());
}

/// Returns everything about this process that another one may have in common with it.
fn surroundings((): ()) -> BTreeMap<String, String> {
    /// Fields of `status` that are of this process alone.
    const OWN: [&str; 8] = ["Tgid", "Ngid", "Pid", "NStgid", "NSpid", "NSpgid", "NSsid", "SigQ"];
    let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap();
    let link = |path: String| fs::read_link(path).unwrap().display().to_string();
    let mut all = BTreeMap::new();
    for line in read("status").lines() {
        let (name, value) = line.split_once(':').unwrap();
        let is_usage = value.ends_with("kB") || name.ends_with("ctxt_switches") || name == "FDSize";
        if !is_usage && !OWN.contains(&name) {
            all.insert(name.to_owned(), value.trim().to_owned());
        }
    }
    for name in ["limits", "cgroup", "oom_score_adj", "autogroup", "loginuid", "sessionid"] {
        all.insert(
            name.to_owned(),
            fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default(),
        );
    }
    for name in ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"] {
        all.insert(format!("ns {name}"), link(format!("/proc/self/ns/{name}")));
    }
    let variables: BTreeMap<_, _> = std::env::vars_os().collect();
    all.insert("environment".into(), format!("{variables:?}"));
    for name in ["cwd", "root", "exe"] {
        all.insert(name.into(), link(format!("/proc/self/{name}")));
    }
    let stat = read("stat");
    let words: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // The session, the terminal, and priority, niceness and policy; see proc(5).
    for (name, field) in
        [("session", 3), ("tty", 4), ("priority", 15), ("nice", 16), ("policy", 38)]
    {
        all.insert(name.into(), words[field].into());
    }
    all.insert("leads its group".into(), (words[2] == id().to_string()).to_string());
    let mut open: Vec<String> = fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let number = path.file_name()?.to_str()?.parse::<u32>().ok()?;
            let file = fs::read_link(&path).ok()?.display().to_string();
            let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
            let flags = info.lines().find(|line| line.starts_with("flags"))?.to_owned();
            // Inodes of sockets and pipes differ.
            let file = file.split('[').next()?.to_owned();
            // The order in which descriptors were opened differs.
            let number = if number < 3 { number.to_string() } else { String::new() };
            (!file.starts_with("/proc/")).then(|| format!("{number} {file} {flags}"))
        })
        .collect();
    open.sort();
    all.insert("open".into(), open.join("\n"));
    all
}

#[test]
fn a_forked_worker_is_like_an_executed_one() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    for link in links() {
        let build = |start| {
            let pool = builder(1).link(link).start(start).env("BRIGADE_TEST", "x").build().unwrap();
            works(&pool);
            pool
        };
        let pools = [build(Start::Exec), build(Start::Fork)];
        let compare = |when: &str| {
            let [executed, forked] = pools.each_ref().map(|pool| {
                crash(pool);
                outcome(pool.submit(surroundings, ()).unwrap()).unwrap()
            });
            for (name, value) in &executed {
                assert_eq!(forked.get(name), Some(value), "{name} over {link:?}, {when}");
            }
            assert_eq!(executed.len(), forked.len());
        };
        compare("at first");
        let before = getrlimit(Resource::Core);
        let umask = rustix::process::umask(Mode::from_raw_mode(0o027));
        let home = std::env::current_dir().unwrap();
        setrlimit(Resource::Core, Rlimit { current: Some(4096), ..before }).unwrap();
        std::env::set_current_dir(folder.path()).unwrap();
        fs::write("/proc/self/oom_score_adj", "7").unwrap();
        compare("after the host has changed");
        setrlimit(Resource::Core, before).unwrap();
        std::env::set_current_dir(home).unwrap();
        rustix::process::umask(umask);
    }
}

#[test]
fn workers_are_children_of_the_host() {
    let _alone = alone();
    for link in links() {
        let pool = forked().link(link).build().unwrap();
        let pid = outcome(pool.submit(own_pid, ()).unwrap()).unwrap();
        assert_eq!(processes::parent_of(pid), Some(id()));
        let error = outcome(pool.submit(aborts, ()).unwrap()).unwrap_err();
        assert!(error.to_string().contains("SIGABRT"), "{error}");
        let exit = outcome(pool.submit(exits, ()).unwrap()).unwrap_err();
        assert!(exit.to_string().contains("exit code 7"), "{exit}");
    }
}

#[test]
fn forked_workers_draw_their_own_random_numbers() {
    fn draws((): ()) -> (u64, u64) {
        (RandomState::new().hash_one(1), worker::seed().unwrap_or_default())
    }
    let _alone = alone();
    let pool = builder(4).start(Start::Fork).build().unwrap();
    let all = pool.broadcast(draws, ()).unwrap();
    let all: Vec<_> = all.into_iter().map(|it| outcome(it).unwrap()).collect();
    let keys: HashSet<u64> = all.iter().map(|it| it.0).collect();
    let seeds: HashSet<u64> = all.iter().map(|it| it.1).collect();
    assert_eq!((keys.len(), seeds.len()), (4, 4), "{all:?}");
}

#[test]
fn a_server_that_is_killed_is_replaced_and_reaped() {
    let _alone = alone();
    for link in links() {
        let check = LeakCheck::new().without_threads();
        let pool = forked().link(link).build().unwrap();
        works(&pool);
        let first = server();
        assert_eq!(pool.snapshot().fork_server, Some(first));
        processes::hit(first, Signal::KILL);
        wait_until("the reap of the server", BOUND, || !processes::children().contains(&first));
        wait_until("its absence in snapshots", BOUND, || pool.snapshot().fork_server.is_none());
        works(&pool);
        crash(&pool);
        works(&pool);
        assert_ne!(server(), first);
        drop(pool);
        check.assert_none(BOUND);
    }
}

#[test]
fn a_server_that_is_stopped_is_given_up() {
    let _alone = alone();
    let pool = forked().start_timeout(Duration::from_secs(3)).build().unwrap();
    works(&pool);
    let first = server();
    processes::hit(first, Signal::STOP);
    crash(&pool);
    works(&pool);
    assert_ne!(server(), first);
}

/// Returns a pool with a task in a forked worker that was stopped before it has run.
fn stuck_before_its_first_task() -> (Pool, Handle<u64>) {
    const LIMIT: Duration = Duration::from_millis(500);
    // Their replacement takes a worker several milliseconds.
    let variables = (0..3_000).map(|n| (format!("BRIGADE_TEST_{n}"), "x".repeat(200)));
    let variables: Vec<_> = variables.collect();
    for _ in 0..50 {
        let variables = variables.clone();
        // Over ipc, a worker answers first.
        let pool = forked().link(Link::Ring).env_per_slot(move |_| variables.clone());
        let pool = pool.start_timeout(LIMIT).build().unwrap();
        works(&pool);
        let known: HashSet<u32> = processes::children().into_iter().collect();
        let stopper = std::thread::spawn(move || {
            let new = wait_for("a new worker", BOUND, || {
                processes::children().into_iter().find(|pid| !known.contains(pid))
            });
            processes::hit(new, Signal::STOP);
            new
        });
        crash(&pool);
        let handle = pool.task(square).deadline(LIMIT).submit(7).unwrap();
        let worker = stopper.join().unwrap();
        // It has its own name when it is about to begin.
        let name = fs::read_to_string(format!("/proc/{worker}/comm")).unwrap_or_default();
        if name.trim() == "brigade-fork" {
            return (pool, handle);
        }
        processes::hit(worker, Signal::CONT);
    }
    panic!("no worker could be stopped in time");
}

#[test]
fn a_forked_worker_that_does_not_run_is_not_waited_for() {
    let _alone = alone();
    let (pool, handle) = stuck_before_its_first_task();
    // Another server would end the same way, as far as the pool knows.
    let error = outcome(handle).unwrap_err();
    assert!(error.to_string().contains("it has not run within 500ms (start_timeout)"), "{error}");
    assert!(pool.submit(square, 7).is_err());
}

#[test]
fn a_host_without_streams_shares_no_descriptor_as_one() {
    fn prints((): ()) -> Vec<String> {
        std::io::Write::write_all(&mut std::io::stdout(), b"lost\n").unwrap();
        let link = |number| fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
        (0..2).map(|number| link(number).display().to_string()).collect()
    }
    let _alone = alone();
    for start in [Start::Fork, Start::Exec, Start::Fork] {
        // The last pool is built before, and its worker after. It uses no descriptor meanwhile,
        // which could be one of those that are closed.
        let pool = builder(1).start(start).build().unwrap();
        works(&pool);
        (0..3).for_each(misdeeds::close);
        assert!(outcome(pool.submit(aborts, ()).unwrap()).is_err());
        assert_eq!(outcome(pool.submit(prints, ()).unwrap()).unwrap(), ["/dev/null"; 2]);
        let pool = builder(1).start(start).build().unwrap();
        assert_eq!(outcome(pool.submit(prints, ()).unwrap()).unwrap(), ["/dev/null"; 2]);
    }
}

#[test]
fn a_folder_that_is_gone_is_named() {
    let _alone = alone();
    for start in [Start::Fork, Start::Exec] {
        let folder = tempfile::tempdir().unwrap();
        let pool = builder(1).start(start).current_dir(folder.path()).build().unwrap();
        let path = folder.path().display().to_string();
        drop(folder);
        let error = outcome(pool.submit(square, 7).unwrap()).unwrap_err().to_string();
        let text = format!("cannot enter the folder {path}: No such file or directory");
        assert!(error.contains(&text) && error.contains("correct `current_dir`"), "{error}");
    }
}

#[test]
fn a_host_that_becomes_a_subreaper_gets_no_zombies() {
    let _alone = alone();
    let pool = forked().fresh_process_per_task().build().unwrap();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    for _ in 0..5 {
        let handle = pool.submit(faults::hangs, ()).unwrap();
        wait_until("the task", BOUND, || handle.state() == TaskState::Running);
        handle.kill();
        assert!(outcome(handle).is_err());
        works(&pool);
    }
    drop(pool);
    assert!(processes::children().is_empty());
}

#[test]
fn a_pool_ends_while_its_server_does_not_answer() {
    let _alone = alone();
    let pool = forked().min_workers(1).start_timeout(Duration::MAX).build().unwrap();
    works(&pool);
    processes::hit(server(), Signal::STOP);
    crash(&pool);
    let ending = std::thread::spawn(move || drop(pool));
    wait_until("the end of the pool", BOUND, || ending.is_finished());
    assert!(servers().is_empty());
}

#[test]
fn a_worker_executed_in_place_of_a_fork_reports_its_crash() {
    let _alone = alone();
    let pool = builder(1).start_timeout(Duration::from_secs(3)).build().unwrap();
    // From the third start on there is a server.
    (0..3).for_each(|_| crash(&pool));
    wait_until("a forked worker", BOUND, || {
        crash(&pool);
        works(&pool);
        pool.snapshot().forked > 0
    });
    let (stopped, forked) = (server(), pool.snapshot().forked);
    processes::hit(stopped, Signal::STOP);
    crash(&pool);
    works(&pool);
    assert_eq!(pool.snapshot().forked, forked);
    let error = outcome(pool.submit(aborts, ()).unwrap()).unwrap_err();
    assert!(error.crash().is_some(), "{error}");
}

#[test]
fn preloaded_state_is_shared_by_all_workers() {
    fn table(length: usize) -> Vec<u64> {
        (0..length as u64).collect()
    }
    fn look(position: usize) -> Option<(u64, usize, u32)> {
        let table = worker::preloaded::<Vec<u64>>()?;
        Some((table[position], table.as_ptr().addr(), id()))
    }
    let _alone = alone();
    for link in links() {
        for start in [Start::Fork, Start::Auto, Start::Exec] {
            let pool =
                builder(3).link(link).start(start).preload(table, 1_000_000).build().unwrap();
            let all = pool.broadcast(look, 77_777).unwrap();
            let all: Vec<_> = all.into_iter().map(|it| outcome(it).unwrap().unwrap()).collect();
            assert!(all.iter().all(|it| it.0 == 77_777), "{start:?}: {all:?}");
            let places: HashSet<usize> = all.iter().map(|it| it.1).collect();
            assert!(start == Start::Exec || places.len() == 1, "{start:?}: {all:?}");
            assert_eq!(outcome(pool.submit(look, 5).unwrap()).unwrap().unwrap().0, 5);
        }
    }
}

#[test]
fn an_initializer_runs_after_each_fork_and_preload_before() {
    struct Preloaded(u32);
    struct Initialized(u32);
    /// Returns the processes in which `preload`, the initializer and a task have run.
    fn places((): ()) -> (Option<u32>, Option<u32>, u32) {
        let preloaded = worker::preloaded::<Preloaded>().map(|it| it.0);
        (preloaded, worker::state::<Initialized>().map(|it| it.0), id())
    }
    let _alone = alone();
    let of_tasks = |builder: PoolBuilder, is_forked: bool, is_initialized: bool| {
        let pool = builder.preload(|()| Preloaded(id()), ()).build().unwrap();
        let tasks: Vec<_> = (0..4).map(|_| pool.submit(places, ()).unwrap()).collect();
        let places: Vec<_> = tasks.into_iter().map(|it| outcome(it).unwrap()).collect();
        let servers = servers();
        for (preloaded, initialized, own) in &places {
            let is_server = preloaded.is_some_and(|it| servers.contains(&it));
            assert!(
                is_server == is_forked && (is_forked || *preloaded == Some(*own)),
                "{places:?}"
            );
            assert_eq!(*initialized, is_initialized.then_some(*own), "{places:?}");
        }
        places.into_iter().map(|it| it.2).collect::<HashSet<_>>().len()
    };
    let initialized = |builder: PoolBuilder| builder.initializer(|()| Initialized(id()), ());
    assert_eq!(of_tasks(initialized(forked()), true, true), 1);
    assert_eq!(of_tasks(initialized(builder(1).start(Start::Exec)), false, true), 1);
    assert_eq!(of_tasks(initialized(forked().fresh_process_per_task()), true, true), 4);
    assert_eq!(of_tasks(forked().fresh_process_per_task(), true, false), 4, "copies");
}

#[test]
fn memory_that_makes_forks_slow_is_reported() {
    /// Uses one page in four, which is too little for huge pages.
    fn sparse(bytes: usize) -> Vec<u8> {
        let mut all = vec![0; bytes];
        all.iter_mut().step_by(4 * 4096).for_each(|byte| *byte = 1);
        all
    }
    let _alone = alone();
    let huge_pages = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if huge_pages.is_ok_and(|it| it.contains("[always]")) {
        return;
    }
    let log = Log::get();
    let pool = forked().preload(sparse, 512 << 20).build().unwrap();
    works(&pool);
    log.wait_for_line(&["WARN", "`preload` has left memory in small pages", "mebibytes=1"]);
}

#[test]
fn a_preload_that_fails_breaks_the_pool_with_its_reason() {
    fn fails(how: String) -> Result<u32, String> {
        match how.as_str() {
            "error" => Err("no table today".into()),
            "panic" => panic!("a bad table"),
            "exit" => std::process::exit(9),
            "abort" => std::process::abort(),
            "hang" => loop {
                pause(BOUND);
            },
            "thread" => {
                std::thread::spawn(|| pause(10 * BOUND));
                Ok(7)
            }
            other => unreachable!("{other}"),
        }
    }
    let _alone = alone();
    for (how, reason) in [
        ("error", "`preload` failed: no table today"),
        ("panic", "a bad table"),
        ("exit", "exit code 9"),
        ("abort", "SIGABRT"),
        ("hang", "initializer_timeout"),
        ("thread", "it has 2 threads"),
        ("thread", "after `preload`"),
    ] {
        let pool = forked()
            .try_preload(fails, how.to_owned())
            .initializer_timeout(Duration::from_millis(if how == "hang" { 100 } else { 20_000 }))
            .restart_budget(2, Duration::from_secs(600))
            .build()
            .unwrap();
        let error = outcome(pool.submit(square, 1).unwrap()).unwrap_err();
        assert!(error.to_string().contains(reason), "{how}: {error}");
        drop(pool);
        assert!(servers().is_empty());
    }
}

#[test]
fn a_sandboxed_pool_executes_its_workers() {
    let _alone = alone();
    let pool = builder(1).sandbox(brigade::Sandbox::no_network()).build().unwrap();
    works(&pool);
    crash(&pool);
    works(&pool);
    assert!(servers().is_empty());
    let pool = forked().sandbox(brigade::Sandbox::strict()).build().unwrap();
    works(&pool);
    crash(&pool);
    works(&pool);
    assert_eq!(servers().len(), 1, "unless it is asked to fork them");
}

#[test]
fn fresh_processes_survive_the_deaths_of_servers_and_workers() {
    let _alone = alone();
    for link in links() {
        let check = LeakCheck::new().without_threads();
        let seed = Random::seed_from("BRIGADE_TEST_SEED");
        let mut random = Random::new(seed);
        let pool = builder(2)
            .link(link)
            .start(Start::Fork)
            .fresh_process_per_task()
            .restart_budget(u32::MAX, Duration::from_secs(1))
            .build()
            .unwrap();
        let mut died = 0;
        let rounds = repetitions(60);
        for _ in 0..rounds {
            let handles: Vec<_> = (0..20).map(|it| pool.submit(square, it).unwrap()).collect();
            pause(random.below(Duration::from_millis(4)));
            let victims = if random.chance(50) { servers() } else { pool.worker_pids() };
            for victim in victims.into_iter().take(1) {
                processes::hit(victim, Signal::KILL);
            }
            for (number, handle) in (0..).zip(handles) {
                match outcome(handle) {
                    Ok(value) => assert_eq!(value, number * number),
                    Err(error) => {
                        assert!(error.is_worker_death(), "seed {seed}: {error}");
                        died += 1;
                    }
                }
            }
        }
        assert!(died <= rounds, "more tasks than workers died");
        drop(pool);
        check.assert_none(BOUND);
    }
}
