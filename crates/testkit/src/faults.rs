//! Task functions that misbehave in every way that users' functions do.

mod carriage;
mod endings;
mod offspring;
mod output;
mod panics;
mod work;

pub use carriage::{
    How, SpoilsDecoding, SpoilsEncoding, returns_what_spoils_decoding,
    returns_what_spoils_encoding, takes_what_spoils_decoding, takes_what_spoils_encoding,
};
pub use endings::{
    aborts, closes_all_descriptors, exits, hangs_at_exit, kills_itself, overflows_the_stack,
    stops_itself, terminates_itself,
};
pub use offspring::leaves_a_grandchild;
pub use output::{MEBIBYTE, prints_a_mebibyte};
pub use panics::{
    panics_in_a_thread, panics_with_a_bomb, panics_with_an_object, panics_with_str,
    panics_with_string,
};
pub use work::{allocates, echoes, hangs, returns_bytes, sleeps, spins};
