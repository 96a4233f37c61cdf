//! Macros that declare what is missing, many names in a line.

/// Declares constants of a type, which are numbered from 1 or have a value of their own.
macro_rules! numbers {
    ($list:ident $type:ty: $($name:ident $(= $value:literal)?)*) => {
        enum $list { _Zero, $($name $(= $value)?),* }
        $(pub const $name: $type = $list::$name as $type;)*
    };
}

/// Declares structures of plain data.
macro_rules! records {
    ($($name:ident { $($field:ident: $type:ty),* })*) => {
        $(#[derive(Debug, Clone, Copy)]
        pub struct $name { $(pub $field: $type),* })*
    };
}

/// Declares sets of flags.
macro_rules! flags {
    ($($name:ident: $($flag:ident)*;)*) => {
        $(#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name(u32);

        const _: () = {
            enum Bit { $($flag),* }
            impl $name { $(pub const $flag: Self = Self(1 << Bit::$flag as u32);)* }
        };

        impl $name {
            pub const fn empty() -> Self {
                Self(0)
            }

            pub const fn bits(self) -> u32 {
                self.0
            }

            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            pub fn set(&mut self, other: Self, value: bool) {
                self.0 = if value { self.0 | other.0 } else { self.0 & !other.0 };
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                self.union(other)
            }
        }

        impl std::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl std::ops::BitAnd for $name {
            type Output = Self;

            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        })*
    };
}

/// Declares functions that return an error.
macro_rules! refused {
    ($($name:ident $(<$($parameter:ident),*>)? ($($type:ty),*) $(-> $result:ty)?;)*) => {
        $(pub fn $name $(<$($parameter),*>)? ($(_: $type),*) -> crate::io::Result<refused!(@ $($result)?)> {
            Err(crate::io::Errno::NOSYS)
        })*
    };
    (@) => { () };
    (@ $result:ty) => { $result };
}

/// Declares functions that return a value by which C functions say that they have failed.
macro_rules! failing {
    ($($name:ident ($($type:ty),*) -> $result:ty = $value:expr;)*) => {
        $(pub fn $name($(_: $type),*) -> $result {
            $value
        })*
    };
}
