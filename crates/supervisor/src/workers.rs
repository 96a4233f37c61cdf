//! The processes of workers, as their [`Supervisor`] sees them.

mod alarm;
mod asked;
mod cleaner;
mod connection;
mod death;
mod folders;
mod handshake;
mod limited;
mod notes;
pub mod output;
mod process_env;
mod reaper;
mod reserve;
mod samples;
mod sent_arenas;
mod settings;
mod setup;
mod supervised;
mod supervisor;
pub mod threads;
mod verdict;
mod worker_process;

pub use cleaner::{Cleaner, Job, Jobs};
pub use connection::{Connected, Connection, HostLink};
pub use death::Death;
pub use limited::Limited;
pub use notes::{Note, Notes};
pub use process_env::{ProcessEnv, Stdio, check_variable};
pub use reaper::Reaper;
pub use reserve::require_reserve;
pub use settings::Settings;
pub use setup::{Initializer, Setup};
pub use supervised::{SharedMemory, Supervised};
pub use supervisor::{Orders, Supervisor};
pub use verdict::Verdict;
pub use worker_process::{Killed, ProcessState, WorkerProcess};
