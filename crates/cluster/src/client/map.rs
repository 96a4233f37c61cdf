//! Implements `map` and `map_unordered`, which apply a task to the items of an iterator.
//!
//! Inputs travel in *chunks*, one message each, of as many items as make a few milliseconds of
//! work. Each item fails, is retried and has an outcome for itself. The chunks of a batch have a
//! fixed size, because an outcome is found by the number of its chunk.

mod chunks;
mod results;
mod sizing;

pub(super) use self::chunks::Chunks;
pub(super) use self::sizing::ItemTimes;

use brigade_task::map::{Map, MapUnordered};

/// An iterator over the results in the order of the inputs; returned by
/// [`Cluster::map`](crate::Cluster::map) and [`Batch::map`](crate::Batch::map). See
/// [`brigade_task::Map`].
pub type ClusterMap<'cluster, I, R> = Map<Chunks<'cluster, I>, R>;

/// An iterator over the results in the order of completion; returned by
/// [`Cluster::map_unordered`](crate::Cluster::map_unordered) and
/// [`Batch::map_unordered`](crate::Batch::map_unordered). See [`brigade_task::MapUnordered`].
pub type ClusterMapUnordered<'cluster, I, R> = MapUnordered<Chunks<'cluster, I>, R>;
