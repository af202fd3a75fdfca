//! The way to a host's API for who asks it again and again: connections stay for the next request.
//!
//! Who answers was checked when a connection was made, so whoever keeps a pool drops it now and then, and what has become known of
//! certificates since then counts.

use crate::client::{Client, Stream, answer_of, request_of};
use crate::limits::{ANSWER_BYTES_MAX, POOL_IDLE_MAX, POOL_WAIT};
use failure::Failure;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, Uri};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use serde::de::DeserializeOwned;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tower_service::Service;

/// Connections to one host. Copies have them together.
#[derive(Debug, Clone)]
pub struct Pool {
    client: Client,
    connections: legacy::Client<Connector, Full<Bytes>>,
}

impl Pool {
    /// A pool without a connection.
    pub fn new(client: Client) -> Pool {
        let connections = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_WAIT)
            .pool_max_idle_per_host(POOL_IDLE_MAX)
            .build(Connector(client.clone()));
        Pool { client, connections }
    }

    /// Asks for what is at `path`. Whoever asks says how long by ending it: a connection whose answer did not come is not used again.
    ///
    /// # Errors
    /// What the host says, or that it does not answer.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let request = || {
            let mut request = request_of(Method::GET, path, Bytes::new())?;
            // Connections are told apart by the name; there is one host here.
            *request.uri_mut() = format!("http://localhost{path}")
                .parse()
                .map_err(|error| Failure::usage(format!("`{path}` cannot be asked for: {error}")))?;
            Ok::<Request<Full<Bytes>>, Failure>(request)
        };
        let answered = match self.connections.request(request()?).await {
            // A host that has started anew knows nothing of its connections of before.
            Err(error) if !error.is_connect() => self.connections.request(request()?).await,
            answered => answered,
        };
        let answer = answered.map_err(|error| self.failure_of(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let bytes =
            body.map_err(|error| Failure::failed(format!("talk to {}", self.client), error))?.to_bytes();
        answer_of(&self.client, status, &bytes)
    }

    /// Why there is no answer: what was said when the connection was made, where it was not.
    fn failure_of(&self, error: &legacy::Error) -> Failure {
        let mut cause: Option<&dyn Error> = Some(error);
        while let Some(one) = cause {
            if let Some(failure) = one.downcast_ref::<Failure>() {
                return failure.clone();
            }
            cause = one.source();
        }
        Failure::failed(format!("talk to {}", self.client), error)
    }
}

/// Makes connections as the client does.
#[derive(Debug, Clone)]
struct Connector(Client);

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Stream>>;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Failure>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move { Ok(TokioIo::new(client.open().await?)) })
    }
}

impl Connection for Box<dyn Stream> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use failure::Code;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A host that answers with how many connections it has had, as many times on each as is said, and hangs up.
    async fn host(answers: usize) -> (Pool, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let number = counted.fetch_add(1, Ordering::Relaxed) + 1;
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    for _ in 0..answers {
                        let length = stream.read(&mut request).await.unwrap_or(0);
                        assert!(length == 0 || request.starts_with(b"GET /what HTTP/1.1\r\n"), "{request:?}");
                        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}");
                        drop(stream.write_all(answer.as_bytes()).await);
                    }
                    // The next request is taken and not answered.
                    drop(stream.read(&mut request).await);
                });
            }
        });
        (Pool::new(Client::Tcp(address)), connections)
    }

    #[tokio::test]
    async fn a_connection_serves_one_request_after_another() {
        let (pool, connections) = host(usize::MAX).await;
        for _ in 0..5 {
            assert_eq!(pool.get::<usize>("/what").await, Ok(1));
        }
        assert_eq!(connections.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_host_that_started_anew_is_asked_over_another_connection() {
        let (pool, _) = host(1).await;
        for expected in 1..4 {
            assert_eq!(
                pool.get::<usize>("/what").await,
                Ok(expected),
                "the one before broke while it was asked"
            );
        }
    }

    #[tokio::test]
    async fn a_connection_that_hangs_is_not_used_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let pool = Pool::new(Client::Tcp(listener.local_addr().expect("it is bound").to_string()));
        let hangs = tokio::time::timeout(Duration::from_millis(50), pool.get::<usize>("/what"));
        hangs.await.expect_err("nobody answers");
        let silent = listener.accept().await.expect("it was made");
        let answering = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("another one");
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).await.expect("a request") > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n7").await.expect("an answer");
        });
        assert_eq!(pool.get::<usize>("/what").await, Ok(7));
        answering.await.expect("it answered");
        drop(silent);
    }

    #[tokio::test]
    async fn who_cannot_be_connected_to_is_told_as_by_the_client() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let client = Client::Tcp(listener.local_addr().expect("it is bound").to_string());
        drop(listener);
        let failure = Pool::new(client.clone()).get::<usize>("/what").await.expect_err("nobody is there");
        assert_eq!(failure, client.get::<usize>("/what").await.expect_err("nobody is there"));
        assert_eq!(failure.code, Code::Unreachable);
    }
}
