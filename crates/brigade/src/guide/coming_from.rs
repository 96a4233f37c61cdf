//! Coming from another library: what you write today, and what you write here.
//!
//! Below each table, the lines of its right side are compiled. In all of them, `f` is a function,
//! `x` an input, `xs` a list of inputs, and `second` a `Duration`.
//!
//! - Python: [`concurrent.futures`](#concurrentfutures),
//!   [`multiprocessing.Pool`](#multiprocessingpool), [loky and joblib](#loky-and-joblib),
//!   [pebble](#pebble), [mpire](#mpire), [PyTorch](#pytorchs-dataloader)
//! - Rust: [procspawn](#procspawn), [rayon](#rayon), [tokio](#tokios-spawn_blocking)
//! - Commands: [GNU parallel and xargs](#gnu-parallel-and-xargs)
//! - Many machines: [Celery and Ray](#celery-and-ray)
//!
//! # `concurrent.futures`
//!
//! | Python | Rust |
//! |---|---|
//! | `if __name__ == "__main__":` | `brigade::init();` |
//! | `ProcessPoolExecutor(2, initializer=g)` | `Pool::builder().workers(2).initializer(g, a)` |
//! | `max_tasks_per_child=100` | `.max_tasks_per_worker(100)` |
//! | `future = pool.submit(f, x)` | `let handle = pool.submit(f, x)?;` |
//! | `future.result()` | `handle.wait()?` |
//! | `future.add_done_callback(h)` | `handle.on_done(h)` |
//! | `pool.map(f, xs, chunksize=10)` | `pool.map(f, xs).chunk(10)` |
//! | `as_completed(futures)` | `as_completed(handles)` |
//! | `map(f, xs, timeout=5)` | `map(f, xs).timeout(Duration::from_secs(5))` |
//! | `wait(futures, return_when=FIRST_COMPLETED)` | `wait(&handles, Until::First, None)` |
//! | `wait([a, b])`, results of two types | `wait(&[a.untyped(), b.untyped()], Until::All, None)` |
//! | `except BrokenProcessPool:` | `error.is_worker_death()`, and the pool goes on |
//! | `shutdown(wait=False)` | `pool.close()` |
//! | `future.exception() is None` | `handle.state() == TaskState::Done` |
//! | `shutdown(cancel_futures=True)` | `pool.shutdown_with(Shutdown::CancelPending, second)?` |
//!
//! ```
//! # brigade::init_for_tests!();
//! # use brigade::{Pool, Shutdown, TaskState, Until, as_completed, wait};
//! # fn f(x: u32) -> u32 { x }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (x, xs, a, second) = (1, 0..9, 1, std::time::Duration::from_secs(1));
//! # fn g(a: u32) -> u32 { a }
//! let pool = Pool::builder().workers(2).initializer(g, a).max_tasks_per_worker(100).build()?;
//! let handle = pool.submit(f, x)?;
//! handle.on_done(|result| assert!(result.is_ok()));
//! handle.wait()?;
//! pool.map(f, xs.clone()).chunk(10).collect::<Result<Vec<_>, _>>()?;
//! let handles = xs.map(|x| pool.submit(f, x)).collect::<Result<Vec<_>, _>>()?;
//! wait(&handles, Until::First, None);
//! let text = pool.submit(|x: u32| x.to_string(), x)?;
//! wait(&[handles[0].untyped(), text.untyped()], Until::All, None);
//! assert_eq!(text.state(), TaskState::Done);
//! for handle in as_completed(handles) {
//!     handle.wait()?;
//! }
//! pool.close();
//! pool.shutdown_with(Shutdown::CancelPending, second)?;
//! # Ok(())
//! # }
//! ```
//!
//! # `multiprocessing.Pool`
//!
//! | Python | Rust |
//! |---|---|
//! | `pool.apply(f, (x,))` | `pool.submit(f, x)?.wait()?` |
//! | `pool.imap(f, xs)` | `pool.map(f, xs)` |
//! | `pool.imap_unordered(f, xs)` | `pool.map_unordered(f, xs)` |
//! | `pool.starmap(f2, pairs)` | `pool.map(f2, pairs)`, where `f2` takes a tuple |
//! | `SharedMemory(create=True, size=n)` | `pool.alloc(n)?` |
//! | `set_forkserver_preload(...)` | `.preload(load, path)` |
//! | `pool.close(); pool.join()` | `pool.shutdown()?` |
//! | `pool.terminate()` | `pool.shutdown_with(Shutdown::Kill, second)?` |
//!
//! ```
//! # brigade::init_for_tests!();
//! # use brigade::{Pool, Shutdown};
//! # fn f(x: u32) -> u32 { x }
//! # fn f2((a, b): (u32, u32)) -> u32 { a + b }
//! # fn load(path: String) -> usize { path.len() }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (x, xs, pairs, n, path) = (1, 0..9, [(1, 2)], 100, String::new());
//! # let second = std::time::Duration::from_secs(1);
//! let pool = Pool::builder().workers(2).preload(load, path).build()?;
//! pool.submit(f, x)?.wait()?;
//! let values: Result<Vec<u32>, _> = pool.map(f, xs.clone()).collect();
//! let values: Result<Vec<u32>, _> = pool.map_unordered(f, xs).collect();
//! let values: Result<Vec<u32>, _> = pool.map(f2, pairs).collect();
//! let buffer = pool.alloc(n)?;
//! pool.shutdown()?;
//! # let pool = Pool::builder().workers(1).build()?;
//! pool.shutdown_with(Shutdown::Kill, second)?;
//! # Ok(())
//! # }
//! ```
//!
//! # loky and joblib
//!
//! | Python | Rust |
//! |---|---|
//! | `get_reusable_executor()` | `static POOL: LazyLock<Pool>` |
//! | `Parallel(n_jobs=2)(delayed(f)(x) for x in xs)` | `POOL.map(f, xs).collect()` |
//! | `return_as="generator_unordered"` | `POOL.map_unordered(f, xs)` |
//! | `batch_size=10, pre_dispatch=100` | `.chunk(10).window(100)` |
//! | `inner_max_num_threads=1` | `.cores_per_worker(1)` |
//! | a large array, as a memory map | a `SharedBuf` |
//!
//! ```
//! # brigade::init_for_tests!();
//! # use brigade::{Pool, TaskError};
//! # use std::sync::LazyLock;
//! # fn f(x: u32) -> u32 { x }
//! static POOL: LazyLock<Pool> = LazyLock::new(|| {
//!     Pool::builder().workers(1).cores_per_worker(1).build().expect("a pool")
//! });
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let xs = 0..9;
//! let values: Result<Vec<u32>, TaskError> = POOL.map(f, xs.clone()).collect();
//! let values: Result<Vec<u32>, TaskError> =
//!     POOL.map_unordered(f, xs).chunk(10).window(100).collect();
//! # Ok(())
//! # }
//! ```
//!
//! # pebble
//!
//! | Python | Rust |
//! |---|---|
//! | `pool.schedule(f, args=[x], timeout=1)` | `pool.task(f).deadline(second).submit(x)?` |
//! | `pool.map(f, xs, timeout=1)` | `pool.map(f, xs).deadline(second)` |
//! | `future.cancel()` | `handle.kill()` |
//! | `except TimeoutError:` | `error.is_deadline()` |
//! | `except ProcessExpired as e: e.exitcode` | `TaskErrorKind::WorkerDied { exit, .. }` |
//!
//! ```
//! # brigade::init_for_tests!();
//! # use brigade::{Pool, TaskErrorKind};
//! # use std::time::Duration;
//! # fn f(x: u32) -> u32 { if x > 5 { std::process::exit(7) } else { x } }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (x, xs, second) = (9, 0..3, Duration::from_secs(1));
//! # let pool = Pool::builder().workers(1).build()?;
//! let handle = pool.task(f).deadline(second).submit(x)?;
//! if let Err(error) = handle.wait() {
//!     assert!(!error.is_deadline());
//!     if let TaskErrorKind::WorkerDied { exit, .. } = error.kind() {
//!         println!("{exit}");
//!     }
//! }
//! let values: Result<Vec<u32>, _> = pool.map(f, xs).deadline(second).collect();
//! pool.submit(f, 1)?.kill();
//! # Ok(())
//! # }
//! ```
//!
//! # mpire
//!
//! | Python | Rust |
//! |---|---|
//! | `shared_objects=table` | `.preload(load, path)` |
//! | `worker_init=g`, `worker_exit=h` | `.initializer(g, a).finalizer(h)` |
//! | `use_worker_state=True` | `worker::state::<T>()` |
//! | `pass_worker_id=True` | `worker::slot()` |
//! | `worker_lifespan=100` | `.max_tasks_per_worker(100)` |
//! | `task_timeout=1` | `.deadline(second)` |
//! | `enable_insights=True` | `pool.snapshot()` |
//! | `progress_bar=True` | the example `progress` |
//!
//! ```
//! # brigade::init_for_tests!();
//! # use brigade::{Pool, worker};
//! # use std::time::Duration;
//! # fn load(path: String) -> usize { path.len() }
//! # fn g(a: u32) -> u32 { a }
//! # fn h() {}
//! # fn f(x: u32) -> Option<u32> { Some(x + worker::slot()? + worker::state::<u32>()?) }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (path, a, second) = (String::new(), 1, Duration::from_secs(1));
//! let pool = Pool::builder()
//!     .workers(1)
//!     .preload(load, path)
//!     .initializer(g, a)
//!     .finalizer(h)
//!     .max_tasks_per_worker(100)
//!     .deadline(second)
//!     .build()?;
//! assert_eq!(pool.submit(f, 1)?.wait()?, Some(2));
//! println!("{}", pool.snapshot());
//! # Ok(())
//! # }
//! ```
//!
//! # PyTorch's `DataLoader`
//!
//! | Python | Rust |
//! |---|---|
//! | `DataLoader(data, num_workers=2)` | `pool.stream(f).ordered(true).start()?` |
//! | `prefetch_factor=2` | `.per_worker(2)` |
//! | `generator.manual_seed(7)` | `.seed(7)`; the same batches in each run |
//! | `torch.initial_seed()` | `worker::seed()` |
//! | `get_worker_info().id` | `worker::slot()` |
//! | `timeout=1` | `.deadline(second)` |
//! | `IterableDataset` | `pool.stream_flat(..)` |
//! | a tensor in shared memory | a `SharedBuf` |
//! | `for batch in loader:` | `for item in &loader { item.result?; }` |
//!
//! ```
//! # brigade::init_for_tests!();
//! # use brigade::Pool;
//! # use std::time::Duration;
//! # fn f(x: u64) -> Option<u64> { brigade::worker::seed().map(|seed| seed ^ x) }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let second = Duration::from_secs(1);
//! # let pool = Pool::builder().workers(2).build()?;
//! let loader = pool.stream(f).ordered(true).per_worker(2).seed(7).deadline(second).start()?;
//! for batch in 0..4 {
//!     loader.put(batch)?; // from a thread of its own, if there are many
//! }
//! loader.finish();
//! for item in &loader {
//!     item.result?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # procspawn
//!
//! | procspawn | here |
//! |---|---|
//! | `procspawn::init()` | `brigade::init()` |
//! | `procspawn::enable_test_support!()` | `brigade::init_for_tests!()` |
//! | `Pool::new(2)?` | `Pool::builder().workers(2).build()?` |
//! | `spawn(x, f)`, a process for each task | `.fresh_process_per_task()` |
//! | `pool.spawn(x, f)` | `pool.submit(f, x)?` |
//! | `handle.join()?` | `handle.wait()?` |
//! | `handle.join_timeout(second)` | `pool.task(f).deadline(second).submit(x)?` |
//! | `Builder::new().env("A", "B")` | `.env("A", "B")` |
//!
//! ```
//! # brigade::init_for_tests!();
//! # use brigade::Pool;
//! # use std::time::Duration;
//! # fn f(x: u32) -> u32 { x }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (x, second) = (1, Duration::from_secs(1));
//! let pool = Pool::builder().workers(2).env("A", "B").fresh_process_per_task().build()?;
//! let handle = pool.submit(f, x)?;
//! handle.wait()?;
//! pool.task(f).deadline(second).submit(x)?.wait()?;
//! # Ok(())
//! # }
//! ```
//!
//! # rayon
//!
//! A closure of rayon may capture a table. Here the table is an argument, or it is
//! [preloaded](super::shared_state).
//!
//! | rayon | here |
//! |---|---|
//! | `ThreadPoolBuilder::new().num_threads(2)` | `Pool::builder().workers(2)` |
//! | `xs.into_par_iter().map(f).collect()` | `pool.map(f, xs).collect()` |
//! | `.with_min_len(10)` | `.chunk(10)` |
//! | `xs.into_par_iter().for_each(f)` | `pool.map_unordered(f, xs).try_for_each(..)` |
//! | `rayon::join(a, b)` | submit both, then wait for both |
//! | `broadcast(f)` | `pool.broadcast(f, x)?` |
//!
//! ```
//! # brigade::init_for_tests!();
//! # use brigade::Pool;
//! # fn f(x: u32) -> u32 { x }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (x, xs) = (1, 0..9);
//! let pool = Pool::builder().workers(2).build()?;
//! let values: Vec<u32> = pool.map(f, xs.clone()).chunk(10).collect::<Result<_, _>>()?;
//! pool.map_unordered(f, xs).try_for_each(|result| result.map(drop))?;
//! let (a, b) = (pool.submit(f, 1)?, pool.submit(f, 2)?);
//! assert_eq!((a.wait()?, b.wait()?), (1, 2));
//! let handles = pool.broadcast(f, x)?;
//! # Ok(())
//! # }
//! ```
//!
//! # tokio's `spawn_blocking`
//!
//! | tokio | here |
//! |---|---|
//! | `spawn_blocking(move \|\| f(x)).await?` | `pool.submit_async(f, x).await?.await?` |
//! | `timeout(second, ..)`: the thread runs on | `pool.task(f).deadline(second)`: the task ends |
//! | `handle.abort()`: no effect once it runs | `handle.kill()`, `handle.abort_on_drop()` |
//! | `max_blocking_threads(2)` | `.workers(2)` |
//! | `error.is_panic()` | the same, and `is_worker_death()` |
//!
//! ```
//! # brigade::init_for_tests!();
//! # use brigade::Pool;
//! # use std::time::Duration;
//! # fn f(x: u32) -> u32 { x }
//! # type Call = Result<u32, Box<dyn std::error::Error>>;
//! async fn call(pool: &Pool, x: u32, second: Duration) -> Call {
//!     let value = pool.submit_async(f, x).await?.await?;
//!     let handle = pool.task(f).deadline(second).submit_async(value).await?;
//!     Ok(handle.abort_on_drop().await?)
//! }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = Pool::builder().workers(1).build()?;
//! # let runtime = tokio::runtime::Runtime::new()?;
//! # assert_eq!(runtime.block_on(call(&pool, 1, Duration::from_secs(9)))?, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # GNU parallel and xargs
//!
//! | today | here |
//! |---|---|
//! | `parallel gzip {} ::: *.log` | `brigade run -- gzip {} ::: *.log` |
//! | `parallel -k -j2 --timeout 60 wc -l` | `brigade run -k -j2 --timeout 60 -- wc -l` |
//! | `parallel --retries 3 …`: three attempts | `brigade run --retries 2 -- …`: two more attempts |
//! | a loop with `sleep` around a command that fails | `brigade run --retries 5 --retry-delay 2s` |
//! | `parallel --joblog log --resume …` | `brigade run --joblog log --resume -- …` |
//! | `xargs -0 -n 1 -P 2 gzip` | `brigade run -0 -j2 -- gzip {}` |
//!
//! `brigade parallel` takes the command lines of GNU parallel as they are. In a program of your
//! own, `brigade::runner`, a feature of its name, does the same:
//!
//! ```
//! use brigade::runner::{Job, Output, Runner};
//! # use std::time::Duration;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let job = |word| Job::new("echo").arg(word).deadline(Duration::from_secs(60));
//! let jobs = ["one", "two"].map(job);
//! let runner = Runner::builder().jobs(1).retries(2).output(Output::Whole).build()?;
//! let outcomes = runner.run_all(jobs)?;
//! assert_eq!(outcomes[0].stdout()?, b"one\n");
//! # Ok(())
//! # }
//! ```
//!
//! # Celery and Ray
//!
//! | Celery, Ray | here, with the feature `cluster` |
//! |---|---|
//! | `@app.task def f(x)`, `@ray.remote` | `static F: Key<u32, u32> = Key::new("f/1", f);` |
//! | `celery worker -c 2`, `ray start` | `Node::builder().register(&F).workers(2).run()?` |
//! | `f.delay(x)`, `f.remote(x)` | `cluster.submit(&F, x)?` |
//! | `result.get()`, `ray.get(ref)` | `handle.wait()?` |
//! | `group(f.s(x) for x in xs)()` | `cluster.map(&F, xs)` |
//! | `max_retries=3`, `time_limit=1` | `cluster.task(&F).retries(3).deadline(second)` |
//! | `autoretry_for`, `retry_backoff` | `.retry(Retry::new().delay(second)).retry_errors()` |
//! | `queue="gpu"` | `.requires(Requirements::new().label("gpu"))` |
//! | `num_gpus=1` | `.needs("gpu", 1)` |
//! | `chain(a, b)`, `chord` | `.await` of handles, or `on_done` of the first one |
//! | `revoke(id, terminate=True)`, `ray.cancel` | `handle.kill()` |
//!
//! ```no_run
//! # #[cfg(feature = "cluster")]
//! # mod example {
//! # use brigade::{Key, cluster::{Cluster, Requirements, Node}};
//! # use std::time::Duration;
//! # fn f(x: u32) -> u32 { x }
//! static F: Key<u32, u32> = Key::new("f/1", f);
//! # pub fn run(url: &str, x: u32, second: Duration) -> Result<(), Box<dyn std::error::Error>> {
//! Node::builder().url(url).register(&F).workers(2).run()?;
//! let cluster = Cluster::connect(url)?;
//! cluster.submit(&F, x)?.wait()?;
//! let values: Result<Vec<u32>, _> = cluster.map(&F, 0..9).collect();
//! let gpu = Requirements::new().label("gpu");
//! let task = cluster.task(&F).retries(3).deadline(second).requires(gpu);
//! task.submit(x)?.kill();
//! # Ok(())
//! # }
//! # }
//! # fn main() {}
//! ```
//!
//! A task that needs the value of another is awaited first. Without an executor, a callback submits
//! it, and passes its outcome on:
//!
//! ```
//! use std::sync::{Arc, mpsc};
//!
//! use brigade::{Pool, SubmitError};
//!
//! fn square(x: u64) -> u64 {
//!     x * x
//! }
//!
//! brigade::init();
//! let pool = Arc::new(Pool::builder().workers(1).build()?);
//! let (sender, outcome_of_both) = mpsc::channel();
//! let next = Arc::clone(&pool);
//! pool.submit(square, 7)?.on_done(move |outcome| {
//!     let submit = |x| next.submit(square, x).map_err(SubmitError::into_task_error);
//!     match outcome.and_then(submit) {
//!         Ok(handle) => handle.on_done(move |outcome| drop(sender.send(outcome))),
//!         Err(error) => drop(sender.send(Err(error))),
//!     }
//! });
//! assert_eq!(outcome_of_both.recv()??, 2401);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
