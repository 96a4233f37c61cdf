//! Keeps a stream full and takes its items, in one thread.

use brigade::stream::{Item, Stream};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::report::Outcome;

/// Puts all inputs, and calls `take` with each item as it comes.
pub(super) fn pump<A, R>(
    stream: &Stream<A, R>,
    inputs: impl IntoIterator<Item = A>,
    mut take: impl FnMut(Item<R>) -> Outcome<()>,
) -> Outcome<()>
where
    A: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + Send + 'static,
{
    let mut inputs = inputs.into_iter();
    let mut next = inputs.next();
    let mut under_way = 0_usize;
    loop {
        while let Some(input) = next.take() {
            match stream.try_put(input) {
                Ok(_) => {
                    under_way += 1;
                    next = inputs.next();
                }
                Err(full) if full.is_full() => {
                    next = Some(full.into_inner());
                    break;
                }
                Err(error) => return Err(error.to_string().into()),
            }
        }
        if under_way == 0 {
            return Ok(());
        }
        take(stream.recv().ok_or("the stream has ended early")?)?;
        under_way -= 1;
    }
}
