//! The members of etcd: one is asked until it does not answer, then the next.
//!
//! A connection of its own to each, so that which one answers is decided here and a member that is silent is left at once.
//! Must never ask for a change twice by itself ([`Endpoints::ask_once`]).

use super::{Error, MEMBER_WAIT, Options, Tls};
use etcd_client::{Certificate, Client, ConnectOptions, Identity, TlsOptions};
use std::error::Error as StdError;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// A connection that carries something asks for a sign of life after this time; less is refused by etcd
/// (`--grpc-keepalive-min-time`, 5 s).
const PING_AFTER: Duration = Duration::from_secs(6);
/// How long the sign of life may take.
const PING_WAIT: Duration = Duration::from_secs(2);
/// How fresh a member's last answer must be for a change to be sent to it without a look whether it answers.
const FRESH_MS: u64 = 500;

/// The members.
pub(crate) struct Endpoints {
    members: RwLock<Arc<[Arc<Member>]>>,
    options: ConnectOptions,
    /// The files are read anew for each connection: they change while certificates are renewed.
    tls: Option<Tls>,
    /// The one that answered last.
    current: AtomicUsize,
    started: Instant,
    /// When it did, in milliseconds since the start.
    answered_ms: AtomicU64,
}

struct Member {
    url: String,
    client: Mutex<Option<Client>>,
}

/// A request under way.
pub(crate) trait Request<T>: Future<Output = Result<T, etcd_client::Error>> + Send {}

impl<T, F: Future<Output = Result<T, etcd_client::Error>> + Send> Request<T> for F {}

/// What a member did instead of answering.
enum Trouble {
    /// Another may answer.
    Silent(String),
    /// Every other one would say the same.
    Refused(String),
}

impl Endpoints {
    pub(crate) fn new(options: Options) -> Result<Endpoints, Error> {
        let mut connect = ConnectOptions::new()
            .with_connect_timeout(MEMBER_WAIT)
            .with_keep_alive(PING_AFTER, PING_WAIT)
            .with_require_leader(true)
            .with_auto_token_refresh(true);
        if let Some((name, password)) = options.user {
            connect = connect.with_user(name, password);
        }
        if let Some(tls) = &options.tls {
            files(tls)?;
        }
        Ok(Endpoints {
            members: RwLock::new(members_of(options.endpoints)),
            options: connect,
            tls: options.tls,
            current: AtomicUsize::new(0),
            started: Instant::now(),
            answered_ms: AtomicU64::new(0),
        })
    }

    /// Asks these members from now on. Requests under way end with those that they have asked.
    pub(crate) fn set(&self, urls: &[String]) {
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        if !members.iter().map(|member| &member.url).eq(urls) {
            *members = members_of(urls.to_vec());
        }
    }

    /// Their addresses.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.members().iter().map(|member| member.url.clone()).collect()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.members().len()
    }

    fn members(&self) -> Arc<[Arc<Member>]> {
        Arc::clone(&self.members.read().unwrap_or_else(PoisonError::into_inner))
    }

    async fn client(&self, member: &Member) -> Result<Client, etcd_client::Error> {
        let mut client = member.client.lock().await;
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        let mut options = self.options.clone();
        if let Some(tls) = &self.tls {
            let files =
                files(tls).map_err(|error| etcd_client::Error::IoError(std::io::Error::other(error)))?;
            options = options.with_tls(files);
        }
        let new = Client::connect([&member.url], Some(options)).await?;
        *client = Some(new.clone());
        Ok(new)
    }

    /// Asks for what may be asked twice: each member once, beginning with the one that answered last.
    pub(crate) async fn ask<T, F: Request<T>>(&self, request: impl Fn(Client) -> F) -> Result<T, Error> {
        let mut silent = Vec::new();
        for _ in 0..self.count() {
            match self.ask_current(&request).await {
                Ok(answer) => return Ok(answer),
                Err(Trouble::Refused(why)) => return Err(Error::Refused(why)),
                Err(Trouble::Silent(why)) => silent.push(why),
            }
        }
        Err(Error::Silent(silent.join("; ")))
    }

    /// Whether a member has answered just now. Where none has, a read should show who does before a change is sent.
    pub(crate) fn is_fresh(&self) -> bool {
        self.now_ms() <= self.answered_ms.load(Ordering::Relaxed) + FRESH_MS
    }

    /// Asks one member, once.
    pub(crate) async fn ask_once<T, F: Request<T>>(&self, request: impl Fn(Client) -> F) -> Result<T, Error> {
        match self.ask_current(&request).await {
            Ok(answer) => Ok(answer),
            Err(Trouble::Refused(why)) => Err(Error::Refused(why)),
            Err(Trouble::Silent(why)) => Err(Error::Silent(why)),
        }
    }

    /// The members that do not answer for themselves, or know no leader, and what came instead.
    pub(crate) async fn silent(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        // One after the other: the look is not urgent, and each takes a second at most.
        for member in self.members().iter() {
            let status = async { self.client(member).await?.status().await };
            let why = match timeout(MEMBER_WAIT, status).await {
                Ok(Ok(status)) if status.leader() == 0 => Some("it knows no leader".to_owned()),
                Ok(Ok(_)) => None,
                Ok(Err(error)) => match trouble(&member.url, &error) {
                    Trouble::Silent(_) => Some(causes(&error)),
                    // It is there, and does not tell this user.
                    Trouble::Refused(_) => None,
                },
                Err(_) => Some(format!("nothing within {} s", MEMBER_WAIT.as_secs())),
            };
            if let Some(why) = why {
                if let Ok(mut client) = member.client.try_lock() {
                    *client = None;
                }
                found.push((member.url.clone(), why));
            }
        }
        found
    }

    fn now_ms(&self) -> u64 {
        // From 1 on, so that nothing counts as answered at the start.
        FRESH_MS + 1 + self.started.elapsed().as_millis() as u64
    }

    /// Asks the current member; if it does not answer, the next one is current.
    async fn ask_current<T, F: Request<T>>(&self, request: &impl Fn(Client) -> F) -> Result<T, Trouble> {
        let at = self.current.load(Ordering::Relaxed);
        let members = self.members();
        let Some(member) = members.get(at % members.len().max(1)) else {
            return Err(Trouble::Silent("none is known".to_owned()));
        };
        let answer = match timeout(MEMBER_WAIT, async { request(self.client(member).await?).await }).await {
            Ok(Ok(answer)) => {
                self.answered_ms.store(self.now_ms(), Ordering::Relaxed);
                return Ok(answer);
            }
            Ok(Err(error)) => trouble(&member.url, &error),
            Err(_) => Trouble::Silent(format!("{}: nothing within {} s", member.url, MEMBER_WAIT.as_secs())),
        };
        if matches!(answer, Trouble::Silent(_)) {
            // Only once, however many find out at the same time.
            let _ = self.current.compare_exchange(at, at + 1, Ordering::Relaxed, Ordering::Relaxed);
            if let Ok(mut client) = member.client.try_lock() {
                *client = None;
            }
        }
        Err(answer)
    }
}

fn members_of(urls: Vec<String>) -> Arc<[Arc<Member>]> {
    urls.into_iter().map(|url| Arc::new(Member { url, client: Mutex::new(None) })).collect()
}

fn files(tls: &Tls) -> Result<TlsOptions, Error> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| Error::File(path.to_owned(), error));
    let mut files = TlsOptions::new().ca_certificate(Certificate::from_pem(read(&tls.authorities)?));
    if let Some((certificate, key)) = &tls.own {
        files = files.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    if let Some(name) = &tls.name {
        files = files.domain_name(name);
    }
    Ok(files)
}

/// Whether another member may answer. Codes of gRPC: <https://grpc.io/docs/guides/status-codes/>.
fn trouble(url: &str, error: &etcd_client::Error) -> Trouble {
    use etcd_client::Error as E;
    let text = format!("{url}: {}", causes(error));
    match error {
        E::GRpcStatus(status) => {
            // Unavailable, deadline exceeded, cancelled, unknown, aborted, internal, and data loss say nothing of what was asked.
            let is_final = matches!(status.code() as i32, 3 | 5 | 6 | 7 | 8 | 9 | 11 | 12 | 16);
            if is_final { Trouble::Refused(status.message().to_owned()) } else { Trouble::Silent(text) }
        }
        E::InvalidArgs(why) => Trouble::Refused(why.clone()),
        E::InvalidUri(_) | E::InvalidMetadataValue(_) => Trouble::Refused(text),
        _ => Trouble::Silent(text),
    }
}

/// What happened, with what brought it about: of a connection that cannot be made, only the last says why.
fn causes(error: &etcd_client::Error) -> String {
    use etcd_client::Error as E;
    let mut text = match error {
        E::GRpcStatus(status) => status.message().to_owned(),
        other => other.to_string(),
    };
    let mut cause: Option<&(dyn StdError + 'static)> = match error {
        E::GRpcStatus(status) => status.source(),
        E::TransportError(error) => error.source(),
        other => other.source(),
    };
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}
