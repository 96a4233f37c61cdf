//! Batches that leave a pool become arrays of Arrow without a copy.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use arrow_buffer::{Buffer, ScalarBuffer};
use brigade::SharedBuf;
use bytes::Bytes;

brigade::init_for_tests!();

fn batch(length: usize) -> SharedBuf {
    let mut batch = brigade::worker::alloc(length).expect("memory");
    batch.fill(0);
    batch.freeze()
}

#[test]
fn arrow_takes_a_batch_without_a_copy() {
    let pool = brigade::Pool::builder().workers(1).build().expect("a pool");
    let batch = pool.submit(batch, 64).expect("a task").wait().expect("a batch");
    let numbers = ScalarBuffer::<f32>::from(Buffer::from(Bytes::from(batch.clone())));
    assert_eq!(numbers.len(), 16);
    assert_eq!(numbers.as_ptr().cast(), batch.as_ptr());
}
