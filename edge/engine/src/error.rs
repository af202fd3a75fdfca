//! Why the engine did not do what it was asked.

use failure::{Code, Failure};

/// Why the engine did not do what it was asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// The request made no sense, or the world is not as it needs to be. Says what was found and the way out.
    #[error("{0}")]
    Refused(String),
    /// A device failed.
    #[error("{0}")]
    Device(String),
    /// The engine has stopped or is stopping.
    #[error("the storage engine has stopped")]
    Stopped,
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        let code = match error {
            EngineError::Refused(_) => Code::Refused,
            EngineError::Device(_) => Code::Failed,
            EngineError::Stopped => Code::Unreachable,
        };
        Failure::new(code, error.to_string())
    }
}
