//! Resource leaks of a pool. Alone in its process, because it counts all threads and descriptors of
//! the process.

use brigade_cores::{CorePool, CoreRequest, Topology};
use brigade_testkit::{BOUND, LeakCheck};

#[test]
fn a_pool_leaves_no_thread_and_no_descriptor_behind() {
    let folder = tempfile::tempdir().unwrap();
    let check = LeakCheck::new();
    for _ in 0..20 {
        let topology = Topology::flat((0..64).collect());
        let builder = CorePool::builder().topology(topology);
        let pool = builder.exclusive_in(folder.path().join("locks")).build().unwrap();
        let lease = pool.reserve(CoreRequest::new(3)).unwrap();
        drop(pool);
        drop(lease);
    }
    check.assert_none(BOUND);
}
