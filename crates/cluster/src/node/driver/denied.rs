//! Handles messages that the server refuses because of the login.

use super::NodeDriver;
use crate::connection::Denied;
use crate::node::machine::Event;

impl NodeDriver {
    /// Ends the node if it may not do something that it cannot do without.
    pub(super) fn denied(&mut self, denied: Denied) {
        tracing::warn!("{denied}");
        let tags = self.publisher.give_up(|_, publication| {
            denied.is_publish && publication.subject.as_str() == denied.subject
        });
        self.events.extend(tags.iter().map(|tag| Event::NotRecorded(tag.token())));
        // Without these it works, if somewhat slower, or without what others would like to know.
        let names = self.server.names();
        let elections = names.elections();
        let optional = [names.status(), names.lanes(), elections, "_INBOX.".to_owned()];
        let is_optional = optional.iter().any(|subject| denied.subject.starts_with(subject));
        let is_start = denied.subject.starts_with(&names.starts());
        if !(is_optional || is_start) || (!denied.is_publish && denied.subject == names.cancel()) {
            self.failure.get_or_insert(denied.into());
        }
    }
}
