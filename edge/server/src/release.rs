//! The release that this program says it is.

/// As people and other hosts are told. The feature `next-level` makes a program for tests that stands for the next release.
pub const RELEASE: &str = if cfg!(feature = "next-level") {
    concat!(env!("CARGO_PKG_VERSION"), "+next")
} else {
    env!("CARGO_PKG_VERSION")
};
