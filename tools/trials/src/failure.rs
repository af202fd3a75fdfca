//! Why a trial cannot go on.

use std::io;

/// Why a trial cannot go on. That a rule is broken in a round is a result and not one of these.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The machine refused something.
    #[error("{what}: {source}")]
    Machine {
        /// What was tried.
        what: String,
        /// The reason.
        source: io::Error,
    },
    /// A host or the demo answered with a refusal, or with something else than was asked for.
    #[error("{0}")]
    Refused(String),
    /// Something did not come about in time.
    #[error("after {seconds} s still not so: {what}")]
    Late {
        /// What was waited for.
        what: String,
        /// For how long.
        seconds: u64,
    },
    /// A client was answered with an error, or its connection broke without a reason.
    #[error("{0}")]
    Client(String),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    /// The machine refused to do `what`.
    pub fn machine(what: impl Into<String>) -> impl FnOnce(io::Error) -> Failure {
        let what = what.into();
        move |source| Failure::Machine { what, source }
    }
}
