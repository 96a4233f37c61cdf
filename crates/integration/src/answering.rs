//! Malformed answers in a worker's handshake.

use brigade_wire::handshake::{
    Answer, FromWorkerControl, Hello, ToWorkerControl, Token, WorkerProgram,
};
use brigade_wire::version::PROTOCOL_VERSION;

/// The defect of an answer to the host's hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answering {
    /// It is cut off in the middle.
    Half,
    /// It reports `Ready` before the host has sent anything else.
    Early,
    /// It has a wrong token.
    Token,
    /// It has another protocol version.
    Version,
    /// It names a server that does not exist.
    Nowhere,
    /// It is a refusal.
    Refusing,
}

impl Answering {
    /// Returns the variant with this name on the command line.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "half" => Self::Half,
            "early" => Self::Early,
            "token" => Self::Token,
            "version" => Self::Version,
            "nowhere" => Self::Nowhere,
            "refusing" => Self::Refusing,
            _ => return None,
        })
    }

    /// Returns the packet that answers the host's first packet, from a program that claims the
    /// build `identity`.
    ///
    /// # Panics
    /// Panics if the host's packet is not a hello.
    pub fn answer(self, packet: &[u8], identity: [u8; 32]) -> Vec<u8> {
        let Ok(ToWorkerControl::Hello(hello)) = ToWorkerControl::decode(packet) else {
            panic!("expected a hello as the first packet of the host")
        };
        let message = match self {
            Self::Early => FromWorkerControl::Ready,
            Self::Refusing => FromWorkerControl::Refused { reason: "not on a Sunday".to_owned() },
            _ => FromWorkerControl::Answer(self.corrupted_answer(&hello, identity)),
        };
        let mut packet = message.encode().expect("an answer can be encoded");
        if self == Self::Half {
            packet.truncate(packet.len() / 2);
        }
        packet
    }

    fn corrupted_answer(self, hello: &Hello, identity: [u8; 32]) -> Answer {
        Answer {
            version: if self == Self::Version { PROTOCOL_VERSION + 1 } else { PROTOCOL_VERSION },
            token: if self == Self::Token { Token::random() } else { hello.token },
            pid: std::process::id(),
            program: WorkerProgram { identity, has_names: false, version: None },
            server: hello.folder.join("nobody-listens-here").display().to_string(),
            arenas: false,
        }
    }
}
