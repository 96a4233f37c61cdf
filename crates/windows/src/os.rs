//! `std::os`, of Unix.

pub mod fd;
pub mod unix;
