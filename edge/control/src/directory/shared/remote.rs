//! The directory of another process of this machine. Every call connects anew, so a restart of that process needs no care.

use super::{Attendees, Beat, Change, Changes, Entry, Outcome};
use crate::limits::{DIRECTORY_WAIT, WATCH_WAIT};
use api::client::Client;
use failure::{Code, Failure};
use std::path::PathBuf;
use std::time::Duration;

/// The way to it.
#[derive(Clone)]
pub struct Remote {
    client: Client,
}

impl Remote {
    /// The directory that is served at a unix socket.
    pub fn new(socket: PathBuf) -> Remote {
        Remote { client: Client::Unix(socket) }
    }

    /// See [`super::Shared::get`].
    pub(super) async fn get(&self, key: &str) -> Result<Option<Entry>, Failure> {
        let path = format!("/directory/v1/record?key={}", escaped(key));
        self.within(DIRECTORY_WAIT, self.client.get(&path)).await
    }

    /// See [`super::Shared::commit`].
    pub(super) async fn commit(&self, changes: &[Change]) -> Outcome {
        let path = "/directory/v1/commit";
        match self.within(DIRECTORY_WAIT, self.client.post(path, &changes)).await {
            Ok(outcome) => outcome,
            Err(failure) => {
                tracing::warn!("nobody knows how a change of the directory ended: {failure}");
                Outcome::Unknown
            }
        }
    }

    /// See [`super::Shared::beat`].
    pub(super) async fn beat(&self, beat: &Beat) -> Result<Attendees, Failure> {
        self.within(DIRECTORY_WAIT, self.client.post("/directory/v1/beat", beat)).await
    }

    /// See [`super::Shared::watch`].
    pub(super) async fn watch(&self, revision: Option<u64>) -> Result<Changes, Failure> {
        let after = revision.map_or_else(String::new, |revision| format!("?after={revision}"));
        let path = format!("/directory/v1/changes{after}");
        self.within(WATCH_WAIT + DIRECTORY_WAIT, self.client.get(&path)).await
    }

    async fn within<T>(
        &self,
        wait: Duration,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let silent = |why: String| {
            Failure::new(
                Code::Unreachable,
                format!("the directory does not answer at {}: {why}", self.client),
            )
            .hint("start what serves it, or correct [cluster] directory")
        };
        match tokio::time::timeout(wait, answer).await {
            Ok(Err(failure)) if failure.code == Code::Unreachable => Err(silent(failure.error)),
            Ok(answer) => answer,
            Err(_) => Err(silent(format!("nothing within {} s", wait.as_secs()))),
        }
    }
}

fn escaped(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    let each = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    key.bytes().map(each).collect()
}
