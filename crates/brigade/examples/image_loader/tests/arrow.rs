//! Batches that leave a pool become arrays of Arrow without a copy.

use arrow_buffer::{Buffer, ScalarBuffer};
use brigade::SharedBuf;
use bytes::Bytes;

#[test]
fn arrow_takes_a_shared_buffer_without_a_copy() {
    let pool = brigade::Pool::builder().workers(0).build().expect("a pool");
    let mut batch = pool.alloc(64).expect("memory");
    batch.fill(0);
    let batch: SharedBuf = batch.freeze();
    let numbers = ScalarBuffer::<f32>::from(Buffer::from(Bytes::from(batch.clone())));
    assert_eq!(numbers.len(), 16);
    assert_eq!(numbers.as_ptr().cast(), batch.as_ptr());
}
