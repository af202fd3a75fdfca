//! The way to the HTTP API of a host, and to the demo's own: one request per connection, on a unix socket.
//!
//! Must never wait for ever: a host that stands still accepts connections and answers nothing.

use crate::failure::Failure;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;

/// How long an answer may take: making a disk takes some transactions.
const ANSWER_WAIT: Duration = Duration::from_secs(40);
/// How long a mere question may take.
const QUESTION_WAIT: Duration = Duration::from_secs(3);

/// Where an API is.
#[derive(Debug, Clone)]
pub struct Api {
    socket: PathBuf,
}

/// A disk, as far as trials look at it.
#[derive(Debug, Clone, Deserialize)]
pub struct Disk {
    /// Identity.
    pub id: String,
    /// The owner's host.
    pub owner: Option<String>,
    /// At which hosts clients have it.
    #[serde(default)]
    pub attached: Vec<Attached>,
    /// Why it is not whole.
    #[serde(default)]
    pub not_whole: Vec<String>,
    /// All that is wrong with it, in one line.
    pub trouble: Option<String>,
    /// Its components.
    pub components: Vec<Component>,
    /// How far it is, while it moves into another layout.
    pub moving: Option<Moving>,
    /// Whether it has what its policy asks for.
    #[serde(default)]
    pub compliance: Compliance,
}

/// How far a move is.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Moving {
    /// Bytes of the disk that have moved.
    pub moved_bytes: u64,
    /// Bytes that are still to be moved.
    pub remaining_bytes: u64,
}

/// Whether a disk has what its policy asks for.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Compliance {
    /// `compliant`, `not compliant` or `moving`.
    pub state: String,
}

/// A host at which clients have a disk.
#[derive(Debug, Clone, Deserialize)]
pub struct Attached {
    /// Its name.
    pub host: String,
}

/// A component.
#[derive(Debug, Clone, Deserialize)]
pub struct Component {
    /// The host that it stands on.
    pub host: Option<String>,
    /// `active`, `absent` or `stale`.
    pub standing: Option<String>,
    /// What is wrong with it.
    pub trouble: Option<String>,
}

/// What a host alone knows.
#[derive(Debug, Clone, Deserialize)]
pub struct Local {
    /// The disks that it owns.
    pub owned: Vec<Owned>,
    /// Why the directory does not answer, while it does not.
    #[serde(default)]
    pub directory_away: Option<String>,
}

/// What the owner of a disk says of it.
#[derive(Debug, Clone, Deserialize)]
pub struct Owned {
    /// Identity of the disk.
    pub disk: String,
    /// The owner's epoch.
    pub epoch: u32,
    /// Bytes copied to bring components up to date, since it began.
    pub copied_bytes: u64,
}

/// What a host finds wrong with the cluster.
#[derive(Debug, Clone, Deserialize)]
pub struct Health {
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Something that is wrong.
#[derive(Debug, Clone, Deserialize)]
pub struct Finding {
    /// What kind.
    pub code: String,
    /// `critical`, `warning` or `notice`.
    pub severity: String,
    /// What is the case.
    pub cause: String,
}

/// Something that happened.
#[derive(Debug, Clone, Deserialize)]
pub struct Event {
    /// When, in seconds since 1970.
    pub time: u64,
    /// Name of the disk.
    pub disk: String,
    /// What.
    pub text: String,
}

impl Disk {
    /// Whether every copy counts and can be reached.
    pub fn is_whole(&self) -> bool {
        let is_well = |one: &Component| one.standing.as_deref() == Some("active") && one.trouble.is_none();
        self.not_whole.is_empty() && self.components.iter().all(is_well)
    }

    /// The hosts that hold its components.
    pub fn holders(&self) -> Vec<String> {
        self.components.iter().filter_map(|component| component.host.clone()).collect()
    }
}

impl Api {
    /// The API at that socket.
    pub fn new(socket: &Path) -> Api {
        Api { socket: socket.to_owned() }
    }

    /// Asks for what is at `path`.
    ///
    /// # Errors
    /// When the host refuses or does not answer.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask(Method::GET, path, None, QUESTION_WAIT)
    }

    /// Asks for something to be done.
    ///
    /// # Errors
    /// As [`Api::get`].
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: Option<&Value>) -> Result<T, Failure> {
        self.ask(Method::POST, path, body, ANSWER_WAIT)
    }

    /// Changes what is at `path`.
    ///
    /// # Errors
    /// As [`Api::get`].
    pub fn patch<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Failure> {
        self.ask(Method::PATCH, path, Some(body), ANSWER_WAIT)
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        wait: Duration,
    ) -> Result<T, Failure> {
        let failed =
            |why: String| Failure::Refused(format!("{method} {path} at {}: {why}", self.socket.display()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Failure::machine("start a runtime"))?;
        let exchange = exchange(&self.socket, method.clone(), path, body);
        let answered = runtime.block_on(async { tokio::time::timeout(wait, exchange).await });
        let (is_good, bytes) = answered
            .map_err(|_| failed(format!("no answer in {} s", wait.as_secs())))?
            .map_err(|error| failed(error.to_string()))?;
        if !is_good {
            return Err(failed(String::from_utf8_lossy(&bytes).into_owned()));
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| failed(format!("an answer that makes no sense: {error}")))
    }
}

async fn exchange(
    socket: &Path,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<(bool, Bytes), Box<dyn std::error::Error + Send + Sync>> {
    let stream = UnixStream::connect(socket).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let body = body.map_or_else(String::new, Value::to_string);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, "localhost")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))?;
    let response = sender.send_request(request).await?;
    let is_good = response.status().is_success();
    let bytes = response.into_body().collect().await?.to_bytes();
    connection.abort();
    Ok((is_good, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn disk(standing: &str, trouble: Option<&str>) -> Disk {
        let value = json!({
            "name": "t", "id": "1", "epoch": 3, "owner": "a",
            "components": [
                { "host": "a", "standing": "active" },
                { "host": "b", "standing": standing, "trouble": trouble },
            ],
        });
        serde_json::from_value(value).expect("a disk")
    }

    #[test]
    fn a_disk_is_whole_when_every_copy_counts_and_has_no_trouble() {
        assert!(disk("active", None).is_whole());
        assert!(!disk("absent", None).is_whole());
        assert!(!disk("active", Some("its host cannot be reached")).is_whole());
        assert_eq!(disk("active", None).holders(), ["a", "b"]);
    }
}
