//! Where clients of the API connect: unix sockets, loopback, and TLS.
//!
//! With TLS a handshake of one client never keeps another waiting, and who does not get through it costs little: a bounded
//! number of connections, each for a bounded time. Must never hand a connection on without saying whose it is.

use crate::browsers::Browsers;
use crate::cluster::Cluster;
use crate::http::caller::{Caller, Page};
use crate::limits::{
    API_CONNECTIONS_MAX, API_GREETING_WAIT, API_GREETINGS_MAX, API_STRANGER_WAIT, API_STRANGERS_MAX,
};
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use engine::Complaints;
use failure::Failure;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;

/// Connections to one address, of which is known who made them: by the certificate that they showed, or, while this host has none
/// itself, because it listens at loopback alone.
pub struct Greeter {
    ready: mpsc::Receiver<(Held, Caller)>,
    accepting: tokio::task::JoinHandle<()>,
}

/// For whom a place is.
#[derive(Clone)]
pub enum Side {
    /// Programs, hosts and people with certificates.
    Programs(Arc<Cluster>),
    /// Browsers, and the port where they come in.
    Browsers(Arc<Browsers>, u16),
}

impl Side {
    /// Encryption of the next connection; nothing while the host has no certificate.
    fn acceptor(&self) -> Result<Option<TlsAcceptor>, Failure> {
        let config = match self {
            Side::Programs(cluster) => cluster.certified().map(|security| security.api_tls()).transpose()?,
            Side::Browsers(browsers, _) => Some(browsers.tls()?),
        };
        Ok(config.map(TlsAcceptor::from))
    }

    fn what(&self) -> &'static str {
        match self {
            Side::Programs(_) => "a client of the API",
            Side::Browsers(..) => "a browser",
        }
    }
}

impl Greeter {
    /// Accepts connections of `listener`.
    pub fn new(listener: TcpListener, side: Side) -> Greeter {
        let (sender, ready) = mpsc::channel(1);
        Greeter { ready, accepting: tokio::spawn(accept(listener, side, sender)) }
    }
}

impl Drop for Greeter {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Room for connections, by how much is known of who made them.
struct Places {
    greetings: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
    known: Arc<Semaphore>,
}

async fn accept(mut listener: TcpListener, side: Side, ready: mpsc::Sender<(Held, Caller)>) {
    let room = |count| Arc::new(Semaphore::new(count));
    let places = Arc::new(Places {
        greetings: room(API_GREETINGS_MAX),
        strangers: room(API_STRANGERS_MAX),
        known: room(API_CONNECTIONS_MAX),
    });
    let complaints = Arc::new(Mutex::new(Complaints::default()));
    loop {
        let (stream, from) = Listener::accept(&mut listener).await;
        let acceptor = match side.acceptor() {
            Ok(acceptor) => acceptor,
            Err(failure) => {
                complain(&complaints, &side, from.ip(), &failure.error);
                continue;
            }
        };
        let Some(acceptor) = acceptor else {
            if let Side::Programs(cluster) = &side {
                let Ok(place) = Arc::clone(&places.known).try_acquire_owned() else {
                    complain(&complaints, &side, from.ip(), TOO_MANY);
                    continue;
                };
                drop(ready.send((Held::plain(stream, Arc::clone(cluster), place), Caller::Local)).await);
            }
            continue;
        };
        let Ok(greeting) = Arc::clone(&places.greetings).try_acquire_owned() else {
            complain(&complaints, &side, from.ip(), "too many connections are in their handshake");
            continue;
        };
        let (ready, complaints) = (ready.clone(), Arc::clone(&complaints));
        let (places, side) = (Arc::clone(&places), side.clone());
        tokio::spawn(async move {
            let greeted = greet((stream, from.ip()), &acceptor, &places, &side).await;
            drop(greeting);
            match greeted {
                Ok(greeted) => drop(ready.send(greeted).await),
                Err(why) => complain(&complaints, &side, from.ip(), &why),
            }
        });
    }
}

/// The handshake; why somebody is not let in.
async fn greet(
    (stream, from): (TcpStream, IpAddr),
    acceptor: &TlsAcceptor,
    places: &Places,
    side: &Side,
) -> Result<(Held, Caller), String> {
    let greeted = tokio::time::timeout(API_GREETING_WAIT, acceptor.accept(stream)).await;
    let stream = greeted.map_err(|_| "it does not finish the handshake".to_owned())?;
    let stream = stream.map_err(|error| match api::client::refusal_in(&error) {
        Some(refusal) => refusal.to_string(),
        None => "it does not speak TLS".to_owned(),
    })?;
    let shown = stream.get_ref().1.peer_certificates().and_then(|shown| shown.first());
    let caller = match (side, shown) {
        (Side::Browsers(_, port), _) => {
            Caller::Page(Page { port: *port, from, session: None, is_known: Arc::default() })
        }
        (Side::Programs(_), None) => Caller::Nobody,
        (Side::Programs(_), Some(first)) => {
            let certificate = trust::Certificate::read(first).map_err(|error| error.to_string())?;
            let identity = certificate.identity().cloned().ok_or("its certificate names nobody")?;
            Caller::Known { identity, issued_ns: certificate.issued_ns(), ends: certificate.not_after }
        }
    };
    let room = if caller == Caller::Nobody { &places.strangers } else { &places.known };
    let place = Arc::clone(room).try_acquire_owned().map_err(|_| TOO_MANY.to_owned())?;
    let (until, is_known) = match &caller {
        Caller::Nobody => (Some(wait()), Arc::default()),
        Caller::Page(page) => (Some(wait()), Arc::clone(&page.is_known)),
        Caller::Local | Caller::Known { .. } | Caller::Person(_) => (None, Arc::default()),
    };
    Ok((Held { stream: Box::new(stream), until, is_known, _place: place }, caller))
}

fn wait() -> End {
    Box::pin(tokio::time::sleep(API_STRANGER_WAIT))
}

fn complain(complaints: &Mutex<Complaints>, side: &Side, from: IpAddr, why: &str) {
    let text = format!("{} at {from} is refused: {why}", side.what());
    complaints.lock().unwrap_or_else(PoisonError::into_inner).complain(text);
}

/// Why somebody is not let in.
const TOO_MANY: &str = "too many connections are open";

/// When a connection ends by itself.
type End = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection that holds its place while it lives. One of somebody who is not known ends after a while.
pub struct Held {
    stream: Box<dyn Stream>,
    until: Option<End>,
    /// Whether it is known by now who it is, so that the connection stays.
    is_known: Arc<AtomicBool>,
    _place: OwnedSemaphorePermit,
}

impl Held {
    /// One that is not encrypted: it ends once this host has a certificate, for then nobody is let in without one. What is being
    /// answered has time to come.
    fn plain(stream: TcpStream, cluster: Arc<Cluster>, place: OwnedSemaphorePermit) -> Held {
        let until = async move {
            cluster.has_certificate().await;
            tokio::time::sleep(API_STRANGER_WAIT).await;
        };
        Held {
            stream: Box::new(stream),
            until: Some(Box::pin(until)),
            is_known: Arc::default(),
            _place: place,
        }
    }
}

impl AsyncRead for Held {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(until) = &mut self.until
            && until.as_mut().poll(context).is_ready()
        {
            if !self.is_known.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
            self.until = None;
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Held {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Listener for Greeter {
    type Io = Held;
    type Addr = Caller;

    async fn accept(&mut self) -> (Held, Caller) {
        match self.ready.recv().await {
            Some(greeted) => greeted,
            // The task that accepts never ends by itself.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Caller> {
        Ok(Caller::Nobody)
    }
}

impl Connected<IncomingStream<'_, Greeter>> for Caller {
    fn connect_info(stream: IncomingStream<'_, Greeter>) -> Caller {
        stream.remote_addr().clone()
    }
}

impl Connected<IncomingStream<'_, UnixListener>> for Caller {
    fn connect_info(_: IncomingStream<'_, UnixListener>) -> Caller {
        Caller::Local
    }
}
