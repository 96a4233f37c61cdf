//! How a worker may lie in the handshake.

use brigade_wire::handshake::{Answer, FromWorkerControl, Hello, ToWorkerControl, Token};
use brigade_wire::version::PROTOCOL_VERSION;

/// What is wrong with an answer to the host's hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answering {
    /// It ends in the middle.
    Half,
    /// It says that it is ready before it was told anything.
    Early,
    /// It does not know the token.
    Token,
    /// It speaks another version.
    Version,
    /// It names a server that does not exist.
    Nowhere,
    /// It refuses.
    Refusing,
}

impl Answering {
    /// By its name on the command line.
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

    /// The packet that answers the host's first packet, by a program that claims to be of the build `identity`.
    ///
    /// # Panics
    /// When the host's packet is no hello.
    pub fn answer(self, packet: &[u8], identity: [u8; 32]) -> Vec<u8> {
        let Ok(ToWorkerControl::Hello(hello)) = ToWorkerControl::decode(packet) else {
            panic!("the host's first packet should be a hello")
        };
        let message = match self {
            Self::Early => FromWorkerControl::Ready,
            Self::Refusing => FromWorkerControl::Refused { reason: "not on a Sunday".to_owned() },
            _ => FromWorkerControl::Answer(self.told(&hello, identity)),
        };
        let mut packet = message.encode().expect("an answer can be encoded");
        if self == Self::Half {
            packet.truncate(packet.len() / 2);
        }
        packet
    }

    fn told(self, hello: &Hello, identity: [u8; 32]) -> Answer {
        Answer {
            version: if self == Self::Version { PROTOCOL_VERSION + 1 } else { PROTOCOL_VERSION },
            token: if self == Self::Token { Token::random() } else { hello.token },
            pid: std::process::id(),
            identity,
            server: hello.folder.join("nobody-listens-here").display().to_string(),
            arenas: false,
            program: None,
        }
    }
}
