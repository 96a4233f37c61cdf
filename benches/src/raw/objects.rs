//! Measures the object store of NATS JetStream: large payloads, stored and read by one client.

use std::future::ready;
use std::time::{Duration, Instant};

use async_nats::jetstream::{self, object_store};
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::io::AsyncReadExt;
use tokio::runtime::Builder;

use super::queue::addresses;
use crate::cluster::{OBJECT_SIZE, Servers};
use crate::report::Outcome;
use crate::sample;

/// Time for which an object is looked for. Of three servers, one that has not heard of it, or only
/// of its beginning, delivers nothing, or a part with a wrong digest.
const LOOKS: Duration = Duration::from_secs(10);

/// Number of objects that are transferred at a time.
const AT_A_TIME: usize = 4;

/// Returns the payloads per second; each is stored, then read, then removed.
pub(super) fn measure(servers: Servers, objects: usize) -> Outcome<f64> {
    let running = servers.start()?;
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let payload = vec![1_u8; OBJECT_SIZE];
    runtime.block_on(async {
        let context = jetstream::new(async_nats::connect(addresses(&running)).await?);
        let config = object_store::Config {
            bucket: "objects".into(),
            num_replicas: servers.replicas(),
            ..object_store::Config::default()
        };
        let bucket = context.create_object_store(config).await?;
        let transfer = async |number: usize| -> Outcome<()> {
            let name = number.to_string();
            bucket.put(name.as_str(), &mut payload.as_slice()).await?;
            let read = async || -> Outcome<usize> {
                let mut read = Vec::with_capacity(OBJECT_SIZE);
                bucket.get(&name).await?.read_to_end(&mut read).await?;
                Ok(read.len())
            };
            let length = repeated(read).await?;
            // It looks for the object first.
            repeated(async || Ok(bucket.delete(&name).await?)).await?;
            if length == OBJECT_SIZE { Ok(()) } else { Err("an object is cut off".into()) }
        };
        transfer(0).await?;
        let begin = Instant::now();
        let transfers = stream::iter(1..=objects).map(transfer).buffer_unordered(AT_A_TIME);
        transfers.try_for_each(|()| ready(Ok(()))).await?;
        Ok(sample::number(objects) / begin.elapsed().as_secs_f64())
    })
}

/// Does something with an object until it succeeds, or for [`LOOKS`].
async fn repeated<T>(act: impl AsyncFn() -> Outcome<T>) -> Outcome<T> {
    let begin = Instant::now();
    loop {
        let result = act().await;
        if result.is_ok() || begin.elapsed() > LOOKS {
            return result;
        }
    }
}
