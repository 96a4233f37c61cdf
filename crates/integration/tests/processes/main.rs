//! Workers as processes: what they inherit and print, how they start and crash, and what confines
//! them.

mod boundary;
mod confined;
mod copies;
mod crashes;
mod environment;
mod forked;
mod forked_host;
mod fresh;
mod isolation;
mod limits;
mod looks;
mod named;
mod old_kernels;
mod sandbox;
mod stdio;

brigade_sys::before_main!(begin);

fn begin() {
    fresh::before_init();
    named::serve();
}
