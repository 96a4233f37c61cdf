//! Measures the object store of NATS JetStream: large payloads, stored and read by one client.

use std::time::Instant;

use async_nats::jetstream::{self, object_store};
use tokio::io::AsyncReadExt;
use tokio::runtime::Builder;

use super::queue::addresses;
use crate::cluster::{OBJECT_SIZE, Servers};
use crate::report::Outcome;
use crate::sample;

/// Number of times that an object is looked for.
const LOOKS: usize = 1_000;

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
            let mut read = Vec::with_capacity(OBJECT_SIZE);
            // One of three servers may not have heard of it yet.
            let mut object = bucket.get(&name).await;
            for _ in 0..LOOKS {
                if object.is_ok() {
                    break;
                }
                object = bucket.get(&name).await;
            }
            object?.read_to_end(&mut read).await?;
            bucket.delete(&name).await?;
            if read.len() == OBJECT_SIZE { Ok(()) } else { Err("an object is cut off".into()) }
        };
        transfer(0).await?;
        let begin = Instant::now();
        for number in 1..=objects {
            transfer(number).await?;
        }
        Ok(sample::number(objects) / begin.elapsed().as_secs_f64())
    })
}
