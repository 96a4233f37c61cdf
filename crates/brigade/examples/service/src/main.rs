//! "My web service makes thumbnails, and some pictures crash the decoder."
//!
//! An HTTP service that decodes in worker processes, so a crash costs one request.
//!
//! ```sh
//! cargo run --release -p brigade-example-service -- --address 127.0.0.1:8080
//! curl --data-binary @picture.jpg http://127.0.0.1:8080/thumbnail --output thumbnail.jpg
//! ```
//!
//! | request | answer |
//! |---|---|
//! | `POST /thumbnail` with a picture | 200 and a JPEG, or 415 if it is no picture |
//! | one that takes longer than `--deadline` | 504; the worker is killed and replaced |
//! | one that finds the queue full | 503 with `Retry-After` |
//! | `POST /thumbnail?crash` | 500; the decoder aborts on purpose |
//! | `POST /thumbnail?delay=100` | as above, after 100 ms |
//! | `GET /metrics` | the state of the pool for Prometheus |
//!
//! SIGTERM lets the requests finish that have begun. With `--in-process` the same work runs in
//! tokio's threads for blocking code: there `?crash` ends the service, and a decoder that takes too
//! long cannot be stopped.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it prints its address")]

mod backend;
mod in_process;
mod thumbnail;
mod workers;

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use clap::Parser;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use backend::{Backend, Failure};
use thumbnail::Manner;

#[derive(Debug, Parser)]
struct Arguments {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1:0")]
    address: SocketAddr,
    /// Number of worker processes, or of threads with --in-process
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Number of requests that may wait for a worker
    #[arg(long, default_value_t = 64)]
    queue: usize,
    /// Milliseconds that a request may wait, and then take
    #[arg(long, default_value_t = 1_000)]
    deadline: u64,
    /// Work in threads of this process
    #[arg(long)]
    in_process: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    brigade::init();
    let arguments = Arguments::parse();
    let deadline = Duration::from_millis(arguments.deadline);
    let backend = if arguments.in_process {
        Backend::in_process(arguments.workers, arguments.queue, deadline)
    } else {
        Backend::workers(arguments.workers, arguments.queue, deadline)?
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let backend = Arc::new(backend);
    runtime.block_on(serve(arguments.address, Arc::clone(&backend)))?;
    // No request is left, so this ends the workers at once.
    backend.shutdown()?;
    Ok(())
}

async fn serve(address: SocketAddr, backend: Arc<Backend>) -> Result<(), Box<dyn Error>> {
    let app = Router::new()
        .route("/thumbnail", post(thumbnail))
        .route("/metrics", get(metrics))
        .with_state(backend);
    let mut terminate = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app)
        .with_graceful_shutdown(async move {
            terminate.recv().await;
        })
        .await?;
    Ok(())
}

async fn thumbnail(
    State(backend): State<Arc<Backend>>,
    Query(manner): Query<Manner>,
    picture: Bytes,
) -> Response {
    match backend.thumbnail(&picture, manner).await {
        Ok(jpeg) => ([(CONTENT_TYPE, "image/jpeg")], jpeg).into_response(),
        Err(Failure::Busy) => {
            (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], "too many requests\n")
                .into_response()
        }
        Err(Failure::Late) => (StatusCode::GATEWAY_TIMEOUT, "took too long\n").into_response(),
        Err(Failure::Picture(reason)) => {
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, reason + "\n").into_response()
        }
        Err(Failure::Decoder(reason)) => {
            (StatusCode::INTERNAL_SERVER_ERROR, reason + "\n").into_response()
        }
    }
}

async fn metrics(State(backend): State<Arc<Backend>>) -> Response {
    match backend.metrics() {
        Some((media_type, text)) => ([(CONTENT_TYPE, media_type)], text).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
