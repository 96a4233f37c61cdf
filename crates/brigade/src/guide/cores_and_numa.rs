//! Cores and NUMA: workers that stay where they are.
//!
//! # How many workers?
//!
//! By default a pool has one worker for each core that your program may use. A container, or an
//! affinity mask, may allow fewer cores than the machine has. More workers than cores help only if
//! tasks wait for something, such as a disk or a network.
//!
//! # Pinning
//!
//! The kernel moves processes from core to core. A *pinned* worker stays on cores of its own, so
//! its data stay in their caches. [`cores_per_worker`](crate::PoolBuilder::cores_per_worker) pins
//! each worker:
//!
//! ```
//! # brigade::init_for_tests!();
//! use brigade::{Pool, worker};
//!
//! fn own_cores(_: ()) -> usize {
//!     worker::cores().map_or(0, <[u32]>::len)
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = Pool::builder().workers(1).cores_per_worker(1).build()?;
//! assert_eq!(pool.submit(own_cores, ())?.wait()?, 1);
//! # Ok(())
//! # }
//! ```
//!
//! A replacement gets the cores of the worker that died. `build` returns an error if there are not
//! enough cores.
//!
//! Libraries that start threads of their own often count all cores of the machine. A pinned worker
//! gets the variables that tell them better, such as `OMP_NUM_THREADS`.
//!
//! # Choosing cores
//!
//! A [`CorePool`](crate::cores::CorePool) leases cores. A *lease* holds cores until it is dropped,
//! and nobody else gets them meanwhile. Leave some cores to the rest of the program:
//!
//! ```
//! # brigade::init_for_tests!();
//! use brigade::Pool;
//! use brigade::cores::{CorePool, CoreRequest};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cores = CorePool::new()?;
//! # if cores.cpus().len() < 2 { return Ok(()) }
//! let lease = cores.reserve(CoreRequest::new(1))?; // for a thread of ours
//! let pool = Pool::builder().workers(1).cores(cores.clone()).build()?;
//! # drop((pool, lease));
//! # Ok(())
//! # }
//! ```
//!
//! [`CoreRequest`](crate::cores::CoreRequest) says how close together cores have to be: in one
//! cache, one package, one NUMA node.
//!
//! # GPUs, memory, licenses
//!
//! Some things are scarcer than cores. Declare how much of them there is, and say what a task
//! needs. The pool then starts a task when a worker is free and all that it needs is left:
//!
//! ```
//! # brigade::init_for_tests!();
//! use brigade::{Pool, Resource, worker};
//!
//! fn train(_: u32) -> Option<Vec<u32>> {
//!     worker::indices("gpu")
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = Pool::builder()
//!     .workers(4)
//!     .resource("gpu", Resource::Indexed(2))
//!     .resource("memory", Resource::Sum(16 << 30))
//!     .build()?;
//! let handle = pool.task(train).needs("gpu", 1).needs("memory", 2 << 30).submit(1)?;
//! assert_eq!(handle.wait()?, Some(vec![0]));
//! # Ok(())
//! # }
//! ```
//!
//! Here four workers run, and at most two of their tasks have a GPU, each another one. Tasks that
//! need none go on meanwhile. The pool counts, and does not enforce: a task that takes more memory
//! than it said is stopped only by a [limit](crate::Limits).
//!
//! Many libraries choose their device when they are loaded. Then bind each worker to one instead,
//! with [`env_per_slot`](crate::PoolBuilder::env_per_slot).
//!
//! # NUMA
//!
//! On a machine with several *NUMA nodes*, each node has memory that is near to its cores. Memory
//! lies on the node of the thread that first writes to it. A pinned worker therefore has its own
//! memory near to it, with nothing to configure. A table from [`preload`](super::shared_state) lies
//! on one node, and all others read it from there.
//!
//! # Several programs
//!
//! [`exclusive`](crate::cores::CorePoolBuilder::exclusive) keeps two programs of one user from
//! leasing the same cores.
//!
//! # What the machine looks like
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! println!("{}", brigade::cores::Topology::discover()?);
//! # Ok(())
//! # }
//! ```
//!
//! `brigade topology` prints the same.
//! [Cores](https://github.com/brigade-rs/brigade/blob/main/docs/cores.md) has the policies with
//! pictures.
//!
//! Next: [sandboxes and limits](super::sandboxes).
