//! What processes of this program know of each other: which release they are, and a command that is not for people.

/// As people and other hosts are told. The feature `next-level` makes a program for tests that stands for the next release.
pub const RELEASE: &str = if cfg!(feature = "next-level") {
    concat!(env!("CARGO_PKG_VERSION"), "+next")
} else {
    env!("CARGO_PKG_VERSION")
};

/// The command by which a host starts the process that watches over it.
pub const WATCHER: &str = "watcher";
