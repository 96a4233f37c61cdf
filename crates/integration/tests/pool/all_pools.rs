//! The sum of all pools of a process.

use brigade_integration::{Log, assert_consistent, pool, square};
use brigade_testkit::outcome;

#[test]
fn ended_pools_stay_in_the_sum_and_the_last_one_logs_it() {
    let log = Log::get();
    for round in 1..=3 {
        let pool = pool(1);
        assert_eq!(pool.snapshot().pool, round);
        for number in 0..10 {
            outcome(pool.submit(square, number).unwrap()).unwrap();
        }
        let global = brigade::metrics::global();
        assert_eq!((global.pools, global.live.len()), (round, 1));
        assert_eq!(global.total.finished, 10 * round);
        assert_consistent(&global.total);
        drop(pool);
        let global = brigade::metrics::global();
        assert_eq!((global.live.len(), global.total.succeeded), (0, 10 * round));
        assert_eq!(global.total.queue_time.count, 10 * round);
        assert_consistent(&global.total);
        log.wait_for_line(&[&format!("Items {0} enqueued / {0} dequeued", 10 * round)]);
    }
}
