//! Ports that no other test and no connection gets meanwhile.
//!
//! A port that the system chose is free again between the choice and the start of its server, and
//! while a server is restarted. Another server or an outgoing connection can get it then. So tests
//! take ports below those that the system chooses from, and each holds a socket with the number of
//! its port at an address where no server listens: whoever has that has the port, in any process.

use std::net::TcpListener;
use std::ops::Range;
use std::process;

/// Ports that Linux gives to nobody unasked: `net.ipv4.ip_local_port_range` begins at 32768.
const NUMBERS: Range<u16> = 10_000..32_000;

/// The address on which a port is reserved.
const RESERVATIONS: &str = "127.77.77.77";

/// A port that this test alone uses until it is dropped.
#[derive(Debug)]
pub(super) struct Port {
    number: u16,
    _reservation: TcpListener,
}

impl Port {
    /// Reserves a port on which nobody listens at `address`.
    ///
    /// # Panics
    /// Panics if none is free.
    pub(super) fn reserve(address: &str) -> Self {
        // Tests that follow each other use different ones, in case a client outlives its test.
        let first = usize::try_from(process::id()).expect("64 bits") * 16 % NUMBERS.len();
        let reserve = |number| {
            let reservation = TcpListener::bind((RESERVATIONS, number)).ok()?;
            TcpListener::bind((address, number)).ok()?;
            Some(Self { number, _reservation: reservation })
        };
        NUMBERS.cycle().skip(first).take(NUMBERS.len()).find_map(reserve).expect("a free port")
    }

    pub(super) fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BOUND, wait_until};

    #[test]
    fn a_port_is_reserved_until_it_is_dropped() {
        let ports = [Port::reserve("127.0.0.1"), Port::reserve("127.0.0.1")];
        let [first, second] = ports.each_ref().map(Port::number);
        assert_ne!(first, second);
        assert!(TcpListener::bind((RESERVATIONS, first)).is_err());
        TcpListener::bind(("127.0.0.1", first)).expect("it is free for a server");
        drop(ports);
        // Another test may have got it meanwhile.
        let is_free = || TcpListener::bind((RESERVATIONS, first)).is_ok();
        wait_until("the port is given back", BOUND, is_free);
    }

    #[test]
    fn a_port_where_somebody_listens_is_not_reserved() {
        let reserved = Port::reserve("127.0.0.1");
        let number = reserved.number();
        let _somebody = TcpListener::bind(("127.0.0.1", number)).expect("it is free");
        drop(reserved);
        assert_ne!(Port::reserve("127.0.0.1").number(), number);
    }
}
