//! Requests to an issuer: HTTP/1.1 over TLS, one to a connection, bounded in time and size.
//!
//! No redirect is followed: where an issuer's documents stand is its own word, and what answers elsewhere is somebody else's. Without
//! encryption this machine alone is asked.

use crate::limits::{ISSUER_ANSWER_BYTES_MAX, ISSUER_WAIT};
use axum::http::header::HOST;
use axum::http::uri::Scheme;
use axum::http::{HeaderValue, Request, Response, Uri};
use failure::{Code, Failure};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The way to an issuer.
#[derive(Debug)]
pub struct Fetcher {
    /// A PEM text with the authorities that vouch for it.
    pub authorities: PathBuf,
}

impl Fetcher {
    /// Sends a request.
    ///
    /// # Errors
    /// When nobody answers in time, who answers is not who was meant, or the answer is too long.
    pub async fn fetch(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, Failure> {
        let what = format!("ask {}", request.uri().host().unwrap_or_default());
        let asked = tokio::time::timeout(ISSUER_WAIT, self.ask(request)).await;
        let answered = asked.unwrap_or_else(|_| Err(format!("no answer within {} s", ISSUER_WAIT.as_secs())));
        answered.map_err(|why| Failure::new(Code::Unreachable, format!("{what}: {why}")))
    }

    async fn ask(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, String> {
        let uri = request.uri().clone();
        let host = uri.host().ok_or("the address names no host")?.to_owned();
        let plain_host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_encrypted = uri.scheme() == Some(&Scheme::HTTPS);
        let port = uri.port_u16().unwrap_or(if is_encrypted { 443 } else { 80 });
        let stream =
            TcpStream::connect((plain_host.as_str(), port)).await.map_err(|error| error.to_string())?;
        let request = in_origin_form(request, &uri)?;
        if !is_encrypted {
            let is_here = stream.peer_addr().is_ok_and(|address| address.ip().is_loopback());
            return match is_here {
                true => send(stream, request).await,
                false => Err("only https is asked beyond this machine".to_owned()),
            };
        }
        let name = match plain_host.parse::<IpAddr>() {
            Ok(address) => ServerName::IpAddress(address.into()),
            Err(_) => ServerName::try_from(plain_host).map_err(|error| error.to_string())?,
        };
        let stream = self.connector()?.connect(name, stream).await.map_err(|error| error.to_string())?;
        send(stream, request).await
    }

    /// The authorities are read anew: the system may have others by now.
    fn connector(&self) -> Result<TlsConnector, String> {
        let path = self.authorities.display();
        let pem = std::fs::read(&self.authorities).map_err(|error| format!("read {path}: {error}"))?;
        let mut config = trust::outside_config(&pem, trust::system_clock())
            .map_err(|error| format!("read {path}: {error}"))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// The path alone in the request's line, and the host in its header (RFC 9112, 3.2.1).
fn in_origin_form(request: Request<Vec<u8>>, uri: &Uri) -> Result<Request<Full<Bytes>>, String> {
    let (mut head, body) = request.into_parts();
    let authority = uri.authority().ok_or("the address names no host")?.as_str();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    head.headers.insert(HOST, HeaderValue::from_str(authority).map_err(|error| error.to_string())?);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = path.parse().map_err(|_| "the address has no path".to_owned())?;
    Ok(Request::from_parts(head, Full::new(Bytes::from(body))))
}

async fn send<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Response<Vec<u8>>, String>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let connection = tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let (head, body) = response.into_parts();
    let read = Limited::new(body, ISSUER_ANSWER_BYTES_MAX).collect().await;
    connection.abort();
    let bytes = read.map_err(|error| error.to_string())?.to_bytes();
    Ok(Response::from_parts(head, bytes.to_vec()))
}
