//! Counted resources: declared once, taken by what begins, given back by what ends.
//!
//! [`Resource`] says how much there is, [`Inventory`] has the names, and [`Needs`] what a task
//! takes. [`Ledger`] does the counting, and [`Lanes`] decides who is next.
//!
//! ```
//! use brigade_base::{Inventory, Ledger, Resource};
//!
//! let mut inventory = Inventory::default();
//! inventory.declare("gpu", Resource::Indexed(2))?;
//! let one = inventory.resolve([("gpu", 1)])?;
//!
//! let mut ledger = Ledger::new(inventory.resources());
//! let first = ledger.take(&one).unwrap();
//! assert_eq!(inventory.describe(&first), "gpu=0");
//! let second = ledger.take(&one).unwrap();
//! assert!(ledger.take(&one).is_none());
//! ledger.give_back(first);
//! # drop(second);
//! # Ok::<(), brigade_base::ResourceError>(())
//! ```
//!
//! Invariants:
//! - What is taken and what is left make up what was declared.
//! - Whoever waits first gets what is given back first; those behind it get only what it leaves.

mod error;
mod inventory;
mod lanes;
mod ledger;
mod needs;
mod resource;

pub use error::ResourceError;
pub use inventory::{Inventory, amount_in, indices_in, variables_in};
pub use lanes::Lanes;
pub use ledger::{Grant, Ledger};
pub use needs::{Need, Needs};
pub use resource::Resource;
