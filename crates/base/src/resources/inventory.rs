//! The resources that were declared, by name.

use std::fmt::Write;

use crate::resources::ledger::Grant;
use crate::resources::resource::MAX_PIECES;
use crate::resources::{Need, Needs, Resource, ResourceError};

/// The resources that were declared, with their names.
#[derive(Debug, Clone, Default)]
pub struct Inventory {
    names: Vec<String>,
    resources: Vec<Resource>,
}

impl Inventory {
    /// Adds a resource.
    ///
    /// # Errors
    /// If the name was declared before, or does not consist of 1 to 16 lower-case letters, digits
    /// and `_`, with a letter first; if there is none of it, or more than 8,192 numbered pieces of
    /// all resources.
    pub fn declare(&mut self, name: &str, resource: Resource) -> Result<(), ResourceError> {
        let name = name.to_owned();
        if !is_name(&name) {
            return Err(ResourceError::Name { name });
        }
        if self.names.contains(&name) {
            return Err(ResourceError::Twice { name });
        }
        let allowed = match resource {
            Resource::Indexed(1..) if self.pieces() + resource.total() <= MAX_PIECES.into() => None,
            Resource::Sum(1..) => None,
            Resource::Indexed(_) => Some("1 to 8,192 pieces of all resources together"),
            Resource::Sum(_) => Some("at least 1"),
        };
        if let Some(allowed) = allowed {
            return Err(ResourceError::Amount { name, declared: resource, allowed });
        }
        self.names.push(name);
        self.resources.push(resource);
        Ok(())
    }

    /// Returns the number of numbered pieces.
    fn pieces(&self) -> u64 {
        let indexed = self.resources.iter().filter(|it| matches!(it, Resource::Indexed(_)));
        indexed.map(|it| it.total()).sum()
    }

    /// Returns the resources in the order of their declaration.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// Returns names and resources in the order of their declaration.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Resource)> {
        self.names.iter().map(String::as_str).zip(self.resources.iter().copied())
    }

    /// Returns the needs with these names and amounts. Amounts of the same resource add up.
    ///
    /// # Errors
    /// If a resource was not declared, or if there is not as much of it in all.
    pub fn resolve<'a>(
        &self,
        needs: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Result<Needs, ResourceError> {
        let found: Result<Vec<_>, _> = needs
            .into_iter()
            .map(|(name, amount)| {
                let position = self.names.iter().position(|it| it == name);
                let resource = position.and_then(|position| u16::try_from(position).ok());
                resource.map(|resource| Need { resource, amount }).ok_or_else(|| {
                    let (name, declared) = (name.to_owned(), self.names.clone());
                    ResourceError::Unknown { name, declared }
                })
            })
            .collect();
        let needs = Needs::from(found?);
        for Need { resource, amount: needed } in needs.iter() {
            let total = self.resources[usize::from(resource)].total();
            if needed > total {
                let name = self.names[usize::from(resource)].clone();
                return Err(ResourceError::TooMuch { name, needed, total });
            }
        }
        Ok(needs)
    }

    /// Returns what was taken as a text, such as `gpu=0,3 memory:2147483648`: the numbers of the
    /// pieces, or the amount. [`indices_in`] and [`amount_in`] read it.
    pub fn describe(&self, grant: &Grant) -> String {
        let mut text = String::new();
        for (need, indices) in grant.parts() {
            let name = &self.names[usize::from(need.resource)];
            let separator = if text.is_empty() { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = if indices.is_empty() {
                write!(text, "{separator}{name}:{}", need.amount)
            } else {
                write!(text, "{separator}{name}={}", values(indices))
            };
        }
        text
    }
}

fn values(indices: &[u32]) -> String {
    indices.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Returns the numbers of the pieces of a resource in a text of [`Inventory::describe`]; `None` for
/// one that the text does not name, or that has no pieces.
pub fn indices_in(text: &str, resource: &str) -> Option<Vec<u32>> {
    let values = text.split(' ').find_map(|part| part.strip_prefix(resource)?.strip_prefix('='))?;
    values.split(',').map(|value| value.parse().ok()).collect()
}

/// Returns the amount of a resource in a text of [`Inventory::describe`], which is the number of
/// pieces if it has any; `None` for one that the text does not name.
pub fn amount_in(text: &str, resource: &str) -> Option<u64> {
    if let Some(indices) = indices_in(text, resource) {
        return u64::try_from(indices.len()).ok();
    }
    text.split(' ').find_map(|part| part.strip_prefix(resource)?.strip_prefix(':')?.parse().ok())
}

/// Returns environment variables that tell a command what a text of [`Inventory::describe`] says,
/// such as `BRIGADE_RESOURCE_GPU` with the value `0,3`.
pub fn variables_in(text: &str) -> Vec<(String, String)> {
    let parts = text.split(' ').filter_map(|part| part.split_once(['=', ':']));
    let named = parts.map(|(name, value)| (format!("{VARIABLE}{name}").to_uppercase(), value));
    named.map(|(name, value)| (name, value.to_owned())).collect()
}

/// Begin of the variables' names.
const VARIABLE: &str = "BRIGADE_RESOURCE_";

fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=16).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Ledger;

    fn two() -> Inventory {
        let mut inventory = Inventory::default();
        inventory.declare("gpu", Resource::Indexed(4)).unwrap();
        inventory.declare("memory", Resource::Sum(16)).unwrap();
        inventory
    }

    #[test]
    fn declarations_that_make_no_sense_are_refused() {
        let mut inventory = two();
        let mut refused = |name: &str, resource| inventory.declare(name, resource).unwrap_err();
        assert!(matches!(refused("gpu", Resource::Sum(1)), ResourceError::Twice { .. }));
        for name in ["", "GPU", "a-b", "1st", "seventeen_letters"] {
            assert!(matches!(refused(name, Resource::Sum(1)), ResourceError::Name { .. }));
        }
        for none in [Resource::Sum(0), Resource::Indexed(0), Resource::Indexed(8_189)] {
            assert!(matches!(refused("other", none), ResourceError::Amount { .. }));
        }
    }

    #[test]
    fn needs_that_can_never_be_met_are_refused() {
        let text = |needs: &[(&str, u64)]| {
            two().resolve(needs.iter().copied()).map_err(|error| error.to_string())
        };
        assert_eq!(
            text(&[("tpu", 1)]),
            Err("there is no resource \"tpu\": declared are gpu, memory".to_owned())
        );
        assert_eq!(
            text(&[("gpu", 3), ("gpu", 2)]),
            Err("5 of the resource \"gpu\" are needed, and there are only 4".to_owned())
        );
        assert!(text(&[("memory", u64::MAX), ("memory", 1)]).is_err());
        assert!(text(&[("gpu", 0)]).unwrap().are_none());
    }

    #[test]
    fn a_text_says_which_pieces_were_taken() {
        let inventory = two();
        let mut ledger = Ledger::new(inventory.resources());
        let _first = ledger.take(&inventory.resolve([("gpu", 1)]).unwrap()).unwrap();
        let needs = inventory.resolve([("memory", 7), ("gpu", 2)]).unwrap();
        let text = inventory.describe(&ledger.take(&needs).unwrap());
        assert_eq!(text, "gpu=1,2 memory:7");
        assert_eq!(
            (indices_in(&text, "gpu"), amount_in(&text, "gpu")),
            (Some(vec![1, 2]), Some(2))
        );
        assert_eq!((indices_in(&text, "memory"), amount_in(&text, "memory")), (None, Some(7)));
        assert_eq!((indices_in(&text, "mem"), amount_in(&text, "mem")), (None, None));
        let variables = [("BRIGADE_RESOURCE_GPU", "1,2"), ("BRIGADE_RESOURCE_MEMORY", "7")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(variables_in(&text), variables);
        assert!(variables_in("").is_empty());
        assert_eq!((indices_in("", "gpu"), indices_in("gpu=x", "gpu")), (None, None));
    }
}
