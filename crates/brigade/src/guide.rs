//! The guide: from the first task to a service in production.
//!
//! Read the first three chapters in order. Read the others when you need them. Each has examples
//! that run, as tests of this crate.
//!
//! 1. [Your first pool](first_pool): which of `submit`, `map`, `map_unordered`, `as_completed` and
//!    `stream`?
//! 2. [Errors and retries](errors)
//! 3. [Deadlines and cancellation](deadlines)
//! 4. [Large data](large_data)
//! 5. [Initializers and shared tables](shared_state)
//! 6. [Async and web services](web_services)
//! 7. [Testing](testing)
//! 8. [Logs, metrics, the status page and traces](watching)
//! 9. [Cores and NUMA](cores_and_numa)
//! 10. [Sandboxes and limits](sandboxes)
//! 11. [Many machines](many_machines)
//! 12. [A checklist for production](production)
//! 13. [How it works, in five pictures](pictures)
//!
//! Beside the chapters:
//!
//! - [Recipes](recipes): whole programs, each for one problem.
//! - [Coming from …](coming_from): what you write today, and what you write with Brigade.
//! - [Questions](https://github.com/brigade-rs/brigade/blob/main/docs/faq.md): why `init` comes
//!   first, why closures capture nothing, and others.
//! - [Kernels](https://github.com/brigade-rs/brigade/blob/main/docs/kernel.md): which Linux is
//!   needed for what.
//!
//! # The command
//!
//! Some chapters name the command `brigade`. It runs lists of commands in parallel, shows pools and
//! clusters, and needs no program of yours: `cargo install brigade-cli`. Its [manual] has more.
//!
//! [manual]: https://github.com/brigade-rs/brigade/blob/main/crates/cli/docs/manual.md
//!
//! # About these pages
//!
//! These modules exist only in the documentation. They contain no code, and a program that uses
//! this crate compiles nothing of them.

pub mod coming_from;
pub mod cores_and_numa;
pub mod deadlines;
pub mod errors;
pub mod first_pool;
pub mod large_data;
pub mod many_machines;
pub mod pictures;
pub mod production;
pub mod recipes;
pub mod sandboxes;
pub mod shared_state;
pub mod testing;
pub mod watching;
pub mod web_services;
