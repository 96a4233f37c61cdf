//! Machines and their cores: what is found, and who gets what.

mod discovery;
mod drawing;
mod exclusive;
mod leases;
mod recorded;
mod synthetic;
