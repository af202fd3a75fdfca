//! The way to a host's API: HTTP over a unix socket, loopback, or TLS with a certificate of the cluster; one request per
//! connection. Who asks a host again and again has a [`crate::Pool`].
//!
//! Has no rights of its own. Must never wait for ever: a host that accepts and does not answer is told as such.

use crate::limits::{ANSWER_BYTES_MAX, ANSWER_WAIT, EVENTS_SILENCE_MAX};
use crate::stream::Events;
use crate::types::{ActionView, MethodWord};
use failure::{Code, Failure};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use trust::{Expected, Fingerprint, Refusal, Trust};

/// Where a host's API is.
#[derive(Debug, Clone)]
pub enum Client {
    /// A unix socket.
    Unix(PathBuf),
    /// `address:port` of this machine, not encrypted.
    Tcp(String),
    /// `address:port`, encrypted, and both sides show certificates.
    Tls {
        /// Where.
        address: String,
        /// What is shown and believed.
        trust: Arc<Trust>,
        /// Who must answer.
        expected: Expected,
    },
    /// The same for somebody who has a join token and no certificate yet.
    Joining {
        /// Where.
        address: String,
        /// The authority that must have signed the certificate of who answers.
        authority: Fingerprint,
    },
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Client::Unix(path) => write!(f, "unix:{}", path.display()),
            Client::Tcp(address) => f.write_str(address),
            Client::Tls { address, .. } | Client::Joining { address, .. } => write!(f, "https://{address}"),
        }
    }
}

impl Client {
    /// Reads `https://10.0.0.1:7443`, `unix:PATH`, a path with a slash, `http://127.0.0.1:8000` or `127.0.0.1:8000`.
    /// `identity` gives what is shown where both sides show certificates.
    ///
    /// # Errors
    /// When it is none of these, or there is no identity for it.
    pub fn parse(
        text: &str,
        identity: impl FnOnce() -> Result<Arc<Trust>, Failure>,
    ) -> Result<Client, Failure> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Client::Unix(PathBuf::from(path)));
        }
        if let Some(address) = text.strip_prefix("https://") {
            let address = address.trim_end_matches('/').to_owned();
            return Ok(Client::Tls { address, trust: identity()?, expected: Expected::AnyHost });
        }
        if let Some(address) = text.strip_prefix("http://") {
            return Ok(Client::Tcp(address.trim_end_matches('/').to_owned()));
        }
        if text.contains('/') {
            return Ok(Client::Unix(PathBuf::from(text)));
        }
        match text.rsplit_once(':') {
            Some((_, port)) if port.parse::<u16>().is_ok() => Ok(Client::Tcp(text.to_owned())),
            _ => Err(Failure::usage(format!(
                "`{text}` is not the address of an API: `https://ADDRESS:PORT`, `unix:PATH` and `127.0.0.1:8000` are"
            ))),
        }
    }

    /// Asks for what is at `path`.
    ///
    /// # Errors
    /// What the host says, or that it does not answer.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask(Method::GET, path, None::<&()>).await
    }

    /// Makes something at `path`.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        self.ask(Method::POST, path, Some(body)).await
    }

    /// Changes what is at `path`.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn patch<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        self.ask(Method::PATCH, path, Some(body)).await
    }

    /// Deletes what is at `path`.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask(Method::DELETE, path, None::<&()>).await
    }

    /// Sends a request that an answer offered, as it stands there.
    ///
    /// # Errors
    /// As [`Client::get`]; or that this release does not know its method.
    pub async fn act(&self, action: &ActionView) -> Result<serde_json::Value, Failure> {
        let method = match action.method {
            MethodWord::Post => Method::POST,
            MethodWord::Patch => Method::PATCH,
            MethodWord::Delete => Method::DELETE,
            MethodWord::Unknown => {
                let what = format!("this release does not know how to ask for: {}", action.label);
                return Err(Failure::new(Code::Usage, what).hint(action.command.clone()));
            }
        };
        self.ask(method, &action.path, action.body.as_ref()).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, Failure> {
        let bytes = match body {
            Some(body) => {
                serde_json::to_vec(body).map_err(|error| Failure::failed("write a request", error))?.into()
            }
            None => Bytes::new(),
        };
        let (status, text) = self.send(request_of(method, path, bytes)?).await?;
        answer_of(self, status, &text)
    }

    /// Sends a request and gives the status and the body back.
    ///
    /// # Errors
    /// When the host does not answer.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Vec<u8>), Failure> {
        let answer = tokio::time::timeout(ANSWER_WAIT, async {
            let (response, connection) = exchange(self.open().await?, request).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            let bytes = body.map_err(|error| Failure::failed("talk to the host", error))?.to_bytes().to_vec();
            connection.abort();
            Ok((status, bytes))
        });
        match answer.await {
            Ok(answer) => answer,
            Err(_) => Err(self.silent(format!("no answer within {} s", ANSWER_WAIT.as_secs()))),
        }
    }

    /// Follows the events of a path.
    ///
    /// # Errors
    /// What the host says, or that it does not answer.
    pub async fn events(&self, path: &str) -> Result<Events, Failure> {
        let request = request_of(Method::GET, path, Bytes::new())?;
        let answer =
            tokio::time::timeout(EVENTS_SILENCE_MAX, async { exchange(self.open().await?, request).await });
        let answer = answer.await.map_err(|_| self.silent("no answer".to_owned()))?;
        let (response, connection) = answer?;
        match response.status().is_success() {
            true => Ok(Events::new(response.into_body(), connection)),
            false => {
                let status = response.status();
                let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
                let bytes = body.map(|body| body.to_bytes()).unwrap_or_default();
                connection.abort();
                Err(serde_json::from_slice(&bytes).unwrap_or_else(|_| {
                    Failure::failed(format!("follow {self}"), format!("it answered {status}"))
                }))
            }
        }
    }

    /// Connects, and encrypts where it has to be.
    pub(crate) async fn open(&self) -> Result<Box<dyn Stream>, Failure> {
        Ok(match self {
            Client::Unix(path) => {
                Box::new(UnixStream::connect(path).await.map_err(|error| self.silent(error))?)
            }
            Client::Tcp(address) => Box::new(self.connect(address).await?),
            Client::Tls { address, trust, expected } => {
                let config = trust::client_config(trust, *expected, trust::system_clock());
                let config = config.map_err(|error| Failure::because("encrypt", &error))?;
                Box::new(self.encrypt(address, config, trust::server_name()).await?)
            }
            Client::Joining { address, authority } => {
                let config = trust::joining_client_config(*authority, trust::system_clock());
                let config = config.map_err(|error| Failure::because("encrypt", &error))?;
                Box::new(self.encrypt(address, config, trust::joining_server_name(*authority)).await?)
            }
        })
    }

    async fn connect(&self, address: &str) -> Result<TcpStream, Failure> {
        TcpStream::connect(address).await.map_err(|error| self.silent(error))
    }

    async fn encrypt(
        &self,
        address: &str,
        config: rustls::ClientConfig,
        name: rustls::pki_types::ServerName<'static>,
    ) -> Result<tokio_rustls::client::TlsStream<TcpStream>, Failure> {
        let stream = self.connect(address).await?;
        let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        connected.map_err(|error| match refusal_in(&error) {
            Some(refusal) => denied(self, &refusal),
            None => self.silent(error),
        })
    }

    fn silent(&self, error: impl fmt::Display) -> Failure {
        Failure::new(Code::Unreachable, format!("no host answers at {self}: {error}")).hint(
            "start one with `drystone host --config FILE`, or say where it is with --api or DRYSTONE_API",
        )
    }
}

/// A name as it stands in an address.
pub fn escaped(name: &str) -> String {
    // Names and ids need no escapes; the host must be able to read whatever else somebody names.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let escaped = name.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    escaped.collect()
}

/// Where a disk is in the API, by its name or id.
pub fn disk_path(name: &str) -> String {
    format!("/api/v1/disks/{}", escaped(name))
}

/// Why one side refused the other, if an error tells of that.
pub fn refusal_in(error: &io::Error) -> Option<Refusal> {
    Refusal::of(error.get_ref()?.downcast_ref::<rustls::Error>()?)
}

fn denied(client: &Client, refusal: &Refusal) -> Failure {
    Failure::new(Code::Denied, format!("talk to {client}: {refusal}"))
}

/// A request with a body of JSON, or with none.
pub(crate) fn request_of(method: Method, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>, Failure> {
    let mut request = Request::builder().method(method).uri(path).header(HOST, "localhost");
    if !body.is_empty() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let request = request.body(Full::new(body));
    request.map_err(|error| Failure::usage(format!("`{path}` cannot be asked for: {error}")))
}

/// What an answer says: what was asked for, or why not.
pub(crate) fn answer_of<T: DeserializeOwned>(
    client: &Client,
    status: StatusCode,
    text: &[u8],
) -> Result<T, Failure> {
    let answer = if text.is_empty() { b"null" } else { text };
    if status.is_success() {
        return serde_json::from_slice(answer)
            .map_err(|error| Failure::failed(format!("read the answer of {client}"), error));
    }
    Err(serde_json::from_slice(answer)
        .unwrap_or_else(|_| Failure::failed(format!("ask {client}"), format!("it answered {status}"))))
}

/// A connection, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Sends a request: the answer as it begins, and what drives the connection.
async fn exchange(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
) -> Result<(Response<Incoming>, JoinHandle<Result<(), hyper::Error>>), Failure> {
    let broke = |error: &hyper::Error| {
        // A server that refuses a certificate of TLS 1.3 says so after the handshake has ended here.
        let io = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
        match io.and_then(refusal_in) {
            Some(refusal) => Failure::new(Code::Denied, format!("talk to the host: {refusal}")),
            None => Failure::failed("talk to the host", error),
        }
    };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| broke(&error))?;
    let connection = tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| broke(&error))?;
    Ok((response, connection))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_api_are_read_as_people_write_them() {
        for (text, expected) in [
            ("unix:/a/b", "unix:/a/b"),
            ("/a/b", "unix:/a/b"),
            ("http://127.0.0.1:80/", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
        ] {
            let nobody = || panic!("no identity is needed for {text}");
            assert_eq!(Client::parse(text, nobody).expect(text).to_string(), expected);
        }
        let nobody = || Err(Failure::refused("who are you"));
        Client::parse("nonsense", nobody).expect_err("no address");
        let failure = Client::parse("https://10.0.0.1:7443", nobody).expect_err("nobody");
        assert_eq!(failure.error, "who are you");
    }
}
