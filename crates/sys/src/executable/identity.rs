//! Proves that two processes run the same program.

use super::origin::program_path;
use super::program::{Program, program};
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// Identifies one build of a program. Equal identities mean equal
/// [`FunctionOffset`](super::FunctionOffset)s.
///
/// It protects from mistakes (an executable that was replaced, a worker program that was not
/// rebuilt), not from forgery: a forging process already runs under our user and could do anything.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BuildIdentity([u8; 32]);

impl BuildIdentity {
    /// Wraps an identity that another process has sent.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Compares the identity with that of this process; returns a proof if they are equal.
    pub fn same_build(self) -> Option<SameBuild> {
        (self == build_identity()).then_some(SameBuild(()))
    }

    /// Returns the identity as bytes to send.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Proof that another process has shown the identity of this one's program. Only
/// [`BuildIdentity::same_build`] creates it.
///
/// ```compile_fail
/// use brigade_sys::executable::SameBuild;
///
/// let forged = SameBuild(());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SameBuild(());

/// Shows the first eight bytes in hexadecimal, enough to distinguish builds in a message.
impl fmt::Display for BuildIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "BuildIdentity({self})")
    }
}

/// Returns the identity of the program that this process runs.
///
/// It consists of the GNU build id that the linker has put in, or else of the file's device, inode,
/// size and time of change; and of the size of the code.
pub fn build_identity() -> BuildIdentity {
    static IDENTITY: OnceLock<BuildIdentity> = OnceLock::new();
    *IDENTITY.get_or_init(|| identity_of(program()))
}

fn identity_of(program: &Program) -> BuildIdentity {
    let mut description = (program.code_size() as u64).to_le_bytes().to_vec();
    match &program.build_id {
        Some(build_id) => description.extend(build_id),
        None => description.extend(file_description()),
    }
    BuildIdentity(spread(&description))
}

/// Describes the file of this program. The link leads to that file even if another one has taken
/// its name. If `/proc` is missing, the size of the code must suffice.
fn file_description() -> Vec<u8> {
    let Ok(file) = fs::metadata(program_path()) else {
        return Vec::new();
    };
    let numbers = [file.dev(), file.ino(), file.size()].map(u64::to_le_bytes);
    let changed = [file.mtime(), file.mtime_nsec()].map(i64::to_le_bytes);
    numbers.into_iter().chain(changed).flatten().collect()
}

/// Folds a description of any length into 32 bytes: four FNV-1a sums that start differently. The
/// input is already a hash or a few numbers, so nothing stronger is needed.
fn spread(description: &[u8]) -> [u8; 32] {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut bytes = [0; 32];
    for (lane, chunk) in (0_u64..).zip(bytes.chunks_exact_mut(8)) {
        let start = (OFFSET ^ lane).wrapping_mul(PRIME);
        let sum = description
            .iter()
            .fold(start, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(PRIME));
        chunk.copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_is_stable_and_survives_conversion() {
        let identity = build_identity();
        assert_eq!(identity, build_identity());
        assert_eq!(identity, BuildIdentity::from_bytes(*identity.as_bytes()));
        assert_eq!(identity.to_string().len(), 16);
    }

    #[test]
    fn another_build_id_or_code_size_is_another_identity() {
        let of = |build_id: &[u8]| {
            identity_of(&Program { build_id: Some(build_id.to_vec()), ..Program::default() })
        };
        assert_eq!(of(&[1; 20]), of(&[1; 20]));
        assert_ne!(of(&[1; 20]), of(&[1; 16]));
        assert_ne!(of(&[1; 20]), of(&[2; 20]));
        assert_ne!(of(&[1; 20]), identity_of(program()));
    }

    #[test]
    fn a_program_without_build_id_is_identified_by_its_file() {
        let without = Program::default();
        assert_eq!(identity_of(&without), identity_of(&without));
        assert_eq!(file_description().len(), 40);
    }
}
