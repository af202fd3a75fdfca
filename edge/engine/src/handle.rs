//! The way to the engine from the control plane.

use crate::command::{Answer, Command};
use crate::error::EngineError;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The way to the engine; clones share it.
#[derive(Clone)]
pub struct EngineHandle {
    send: Arc<dyn Fn(Command) -> Result<(), EngineError> + Send + Sync>,
}

impl EngineHandle {
    /// A handle that delivers commands by `send`.
    pub fn new(send: impl Fn(Command) -> Result<(), EngineError> + Send + Sync + 'static) -> EngineHandle {
        EngineHandle { send: Arc::new(send) }
    }

    /// Sends a command that has no answer.
    ///
    /// # Errors
    /// [`EngineError::Stopped`] when the engine is gone.
    pub fn tell(&self, command: Command) -> Result<(), EngineError> {
        (self.send)(command)
    }

    /// Sends the command that `make` builds around the place for its answer, and waits for that answer.
    ///
    /// # Errors
    /// [`EngineError::Stopped`] when the engine is gone.
    pub async fn call<T>(&self, make: impl FnOnce(Answer<T>) -> Command) -> Result<T, EngineError> {
        let (answer, wait) = oneshot::channel();
        (self.send)(make(answer))?;
        wait.await.map_err(|_| EngineError::Stopped)
    }
}
