//! Chooses the lines of `/proc/self/maps` that a report needs, in a signal handler.

/// Programs and libraries need a line each; so do the address that was used, and the stack.
pub(super) struct Maps {
    stack_pointer: usize,
    address: usize,
    has_stack: bool,
    pub(super) stack: Option<MapsEntry>,
    /// The mapping that contains the address or, if there is none, the first one above it.
    address_in: Option<MapsEntry>,
}

/// A mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MapsEntry {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) is_readable: bool,
}

/// A stack pointer this far below a stack still belongs to it: it has just overflowed.
pub(super) const BELOW: usize = 1 << 20;

impl Maps {
    pub(super) fn new(stack_pointer: usize, address: usize) -> Self {
        Self { stack_pointer, address, has_stack: false, stack: None, address_in: None }
    }

    /// Returns `true` if the report needs the line. Lines come in ascending order.
    pub(super) fn needs(&mut self, line: &[u8]) -> bool {
        let Some((mapping, is_code)) = parse(line) else { return false };
        let mut needed = is_code;
        if self.address_in.is_none() && mapping.end > self.address {
            self.set_address(Some(mapping));
            needed = true;
        }
        // A page that protects a stack lies below it.
        if !self.has_stack && mapping.is_readable && mapping.end > self.stack_pointer {
            self.set_stack(Some(mapping));
            needed = true;
        }
        needed
    }

    pub(super) fn address(&self) -> usize {
        self.address
    }

    pub(super) fn stack_pointer(&self) -> usize {
        self.stack_pointer
    }

    pub(super) fn set_address(&mut self, mapping: Option<MapsEntry>) {
        self.address_in = mapping;
    }

    /// Sets the first readable mapping that contains the stack pointer or lies above it.
    pub(super) fn set_stack(&mut self, mapping: Option<MapsEntry>) {
        self.has_stack = true;
        let is_near = |it: &MapsEntry| it.start.saturating_sub(self.stack_pointer) <= BELOW;
        self.stack = mapping.filter(is_near);
    }

    /// Returns `true` if an access to the address looks like the overflow of the stack.
    pub(super) fn is_overflow(&self) -> bool {
        self.stack.is_some_and(|stack| {
            let below = |address: usize| stack.start.saturating_sub(address) <= BELOW;
            let outside =
                self.address_in.is_some_and(|it| !it.is_readable || it.start > self.address);
            outside
                && self.address < stack.start
                && below(self.address)
                && self.stack_pointer < stack.start.saturating_add(BELOW)
        })
    }
}

/// Returns the mapping of a line, and `true` if it is code.
fn parse(line: &[u8]) -> Option<(MapsEntry, bool)> {
    let (start, rest) = hexadecimal(line)?;
    let (end, rest) = hexadecimal(rest.strip_prefix(b"-")?)?;
    let rest = rest.strip_prefix(b" ")?;
    let is_code = rest.get(2) == Some(&b'x');
    Some((MapsEntry { start, end, is_readable: rest.first() == Some(&b'r') }, is_code))
}

fn hexadecimal(text: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_usize;
    let mut length = 0;
    for byte in text {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => break,
        };
        value = value.checked_mul(16)?.checked_add(usize::from(digit))?;
        length += 1;
    }
    (length > 0).then(|| (value, &text[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&[u8]; 7] = [
        b"555555554000-555555556000 r--p 00000000 fd:00 17   /usr/bin/shop",
        b"555555556000-555555559000 r-xp 00002000 fd:00 17   /usr/bin/shop",
        b"555555560000-555555570000 rw-p 00000000 00:00 0    [heap]",
        b"7ffff0000000-7ffff0001000 ---p 00000000 00:00 0 ",
        b"7ffff0001000-7ffff0201000 rw-p 00000000 00:00 0 ",
        b"7ffff7fc9000-7ffff7fcb000 r-xp 00000000 00:00 0    [vdso]",
        b"nonsense",
    ];

    fn needed(maps: &mut Maps) -> Vec<usize> {
        (0..LINES.len()).filter(|index| maps.needs(LINES[*index])).collect()
    }

    #[test]
    fn code_the_stack_and_the_address_are_needed() {
        let mut maps = Maps::new(0x7fff_f010_0000, 0x10);
        assert_eq!(needed(&mut maps), [0, 1, 4, 5]);
        assert_eq!(maps.stack.map(|it| it.start), Some(0x7fff_f000_1000));
        assert!(!maps.is_overflow());
    }

    #[test]
    fn an_access_below_the_stack_is_an_overflow() {
        for stack_pointer in [0x7fff_f000_0f00, 0x7fff_f000_1010] {
            let mut maps = Maps::new(stack_pointer, 0x7fff_f000_0ff8);
            needed(&mut maps);
            assert!(maps.is_overflow(), "{stack_pointer:#x}");
        }
        let mut maps = Maps::new(0x7fff_f000_1010, 0x5555_5555_4010);
        needed(&mut maps);
        assert!(!maps.is_overflow());
    }

    #[test]
    fn damaged_lines_are_not_needed() {
        for line in [&b""[..], b"12", b"12-", b"12-13", b"fffffffffffffffff-1 r", b"-", b"g-1 r"] {
            assert!(!Maps::new(0, 0).needs(line));
        }
    }
}
