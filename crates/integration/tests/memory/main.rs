//! The memory of tasks: arguments and values of every size, buffers that processes share, and what
//! all of it takes.

use brigade_testkit_sys::allocations::CountingAllocator;

mod allocations;
mod buffers;
mod flood;
mod large;
mod payloads;
mod scribble;
mod shared_memory;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

brigade_sys::before_main!(buffers::serve);
