//! A place with parity (`docs/design/0040-parity.md`): one column of two data members and one or two parity members.

pub mod action;
pub mod config;
pub mod next;
pub mod read;
pub mod rule;
pub mod state;
