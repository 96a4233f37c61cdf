//! The patience of a listener: coalescing of wake-ups, as network cards do it with interrupts. For
//! the protocol, see the parent module.

/// Decides whether workers may announce outcomes to a listener later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Patience {
    #[default]
    Kept,
    /// Nothing was found after a patient sleep, so a worker may be busy with a task that is longer
    /// than usual.
    Lost,
}

impl Patience {
    /// Returns the patience after a look that found `collected` outcomes. `in_vain` is `true` if
    /// nobody rang during the patient sleep before it.
    pub(super) fn after(self, collected: usize, in_vain: bool) -> Self {
        match collected {
            0 if in_vain => Self::Lost,
            0 => self,
            _ => Self::Kept,
        }
    }
}
