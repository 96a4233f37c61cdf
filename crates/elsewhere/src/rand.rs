//! `rustix::rand`, over the crate `getrandom`.

use crate::io::{Errno, Result};

flags! {
    GetRandomFlags: NONBLOCK;
}

pub fn getrandom(bytes: &mut [u8], _: GetRandomFlags) -> Result<usize> {
    ::getrandom::fill(bytes).map_err(|_| Errno::IO)?;
    Ok(bytes.len())
}
