//! Five pictures of how it works.
//!
//! # 1. One program, several processes
//!
//! ```text
//!    your program (host)                     workers
//!  ┌──────────────────────┐        ┌──────────────────────────┐
//!  │ main                 │        │ main                     │
//!  │  └ init: returns     │        │  └ init: never returns   │
//!  │  └ Pool::build ──────┼─start─>│     └ runs tasks         │
//!  │  └ submit, wait      │        └──────────────────────────┘
//!  │                      │        ┌──────────────────────────┐
//!  │                      ├─start─>│ the same program again   │
//!  └──────────────────────┘        └──────────────────────────┘
//! ```
//!
//! A worker is the same executable as the host. So a function has the same place in both. A message
//! names the function by its place.
//!
//! # 2. The way of a task
//!
//! ```text
//!  caller                    shared memory                 worker
//!    │  encode the argument        │                          │
//!    ├───────── write ────────────>│ ring of tasks            │
//!    │                             │<──────── read ───────────┤
//!    │                             │                  decode, call, encode
//!    │                             │ ring of results <─ write ┤
//!    │<──────── read ──────────────┤                          │
//!    │  decode the value           │                          │
//! ```
//!
//! A *ring* is a queue in memory that both processes see. No thread stands between the caller and
//! the worker. No system call is needed while both are awake.
//!
//! # 3. A crash
//!
//! ```text
//!  slot 0   worker 0.1  ▓▓ task 1 ▓▓ task 2 ✗ SIGSEGV
//!           worker 0.2                          ▒start▒ ▓▓ task 4 ▓▓
//!  slot 1   worker 1.1  ▓▓▓▓▓▓▓ task 3 ▓▓▓▓▓▓▓▓▓▓▓▓ task 5 ▓▓▓▓
//!
//!  task 2   WorkerDied { SIGSEGV }      task 4 was sent, had not begun: it runs
//! ```
//!
//! A *slot* is a place for one worker at a time. Each task has a word in shared memory that says
//! whether it has begun. The word survives the worker. So the host knows which task was running,
//! and only that one fails.
//!
//! # 4. A deadline
//!
//! ```text
//!  task begins                     deadline      outcome
//!    │                                │             │
//!    ├────────── runs ────────────────┤ SIGKILL ────┤ DeadlineExceeded
//!    │                                │             │
//!    │   tasks behind it are taken back and run elsewhere
//! ```
//!
//! The host takes back what was sent behind the task, and then kills the worker. If the task ended
//! in the last moment, its value counts, and nobody is killed.
//!
//! # 5. A fork
//!
//! ```text
//!  server of the pool        preload: 500 MiB, read-only from now on
//!       │                       ▲      ▲      ▲
//!       ├─ fork ─> worker 0 ────┘      │      │
//!       ├─ fork ─> worker 1 ───────────┘      │
//!       └─ fork ─> worker 2 ──────────────────┘
//! ```
//!
//! The first workers are executed. Later ones are forked from a *server*, a process that has run
//! `main` up to `init`. A fork shares the memory of the server until it writes to it. So a table is
//! loaded once for all workers.
//!
//! # And if the host dies?
//!
//! The kernel kills a worker when its host ends: each worker has asked for that at its start. A
//! second mechanism works even if a task has changed its user. Processes that a task has started
//! end with its worker's process group.
//!
//! The whole map is in
//! [architecture](https://github.com/brigade-rs/brigade/blob/main/docs/architecture.md). The
//! failures are in the [failure
//! model](https://github.com/brigade-rs/brigade/blob/main/docs/failure-model.md).
//!
//! Next: [recipes](super::recipes).
