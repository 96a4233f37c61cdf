//! The key of a task whose message cannot be read, for example one of another version.

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;

use crate::names::{ItemId, Origin, TaskKey};

/// The header with the key of a task outside of batches that a node has published again, with
/// another message id.
pub(crate) const KEY_HEADER: &str = "Brigade-Task";

/// The header with the hash of the types that the client gives the function, in hexadecimal digits.
pub(crate) const TYPES_HEADER: &str = "Brigade-Types";

/// Returns that hash; 0 if the message does not have it.
pub(crate) fn types_in(headers: Option<&HeaderMap>) -> u64 {
    let header = headers.and_then(|headers| headers.get(TYPES_HEADER));
    header.and_then(|text| u64::from_str_radix(text.as_str(), 16).ok()).unwrap_or(0)
}

/// Returns the key of a task from the headers and the subject of its message.
pub(crate) fn key_of(headers: Option<&HeaderMap>, subject: &str) -> Option<TaskKey> {
    // `brigade.QUEUE.task.CLASS.PRIORITY.BATCH.ITEM`; see `Names::task`.
    if let [origin, item] = subject.split('.').skip(5).collect::<Vec<_>>()[..] {
        return Some(TaskKey { origin: origin.parse().ok()?, item: item.parse().ok()? });
    }
    let header = |name| headers?.get(name)?.as_str().parse().ok();
    header(KEY_HEADER).or_else(|| header(NATS_MESSAGE_ID.as_ref()))
}

/// Returns the key of a task that has no other name, by the sequence of its message.
pub(crate) fn unreadable(sequence: u64) -> TaskKey {
    TaskKey { origin: Origin::unreadable(), item: ItemId::number(sequence) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{Lane, Names, Priority, Queue};
    use crate::requirements::Class;

    #[test]
    fn a_task_is_named_by_its_subject_or_by_its_headers() {
        let names = Names::new(Queue::default());
        let lane = Lane { priority: Priority::default(), class: Class::default() };
        let item = "b/item".parse().unwrap();
        assert_eq!(key_of(None, &names.task(&lane, &item)), Some(item));
        let task: TaskKey = "~client/7".parse().unwrap();
        let subject = names.task(&lane, &task);
        assert_eq!(key_of(None, &subject), None);
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, "~client/7");
        assert_eq!(key_of(Some(&headers), &subject), Some(task.clone()));
        headers.insert(NATS_MESSAGE_ID, "sweep-3-subject");
        assert_eq!(key_of(Some(&headers), &subject), None);
        headers.insert(KEY_HEADER, "~client/7");
        assert_eq!(key_of(Some(&headers), &subject), Some(task));
    }
}
