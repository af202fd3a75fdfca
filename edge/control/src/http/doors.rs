//! The places where the API is served: bound first, served once everything is ready, and more of them while the host runs.

use super::serve::{Greeter, Side};
use crate::addresses::listen_text;
use crate::browsers::Browsers;
use crate::cluster::Cluster;
use crate::http::caller::Caller;
use crate::limits::{CONSOLE_PORT, STOP_WAIT};
use axum::Router;
use axum::extract::connect_info::IntoMakeServiceWithConnectInfo;
use engine::Listen;
use failure::Failure;
use std::fs::Permissions;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A place that is bound, and not served yet.
pub struct Bound {
    what: String,
    socket: Socket,
}

enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

/// All places where a host serves its API; none at first.
#[derive(Default)]
pub struct Doors {
    stop: watch::Sender<bool>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// What is served; nothing before the start is done, and after the end.
    router: Option<Router>,
    /// The same for browsers.
    pages: Option<Router>,
    /// Where browsers connect.
    console: Vec<SocketAddr>,
    servers: Vec<JoinHandle<()>>,
    sockets: Vec<PathBuf>,
}

impl Bound {
    /// Binds a place. A unix socket is for its owner alone, and one that a former server left is replaced.
    ///
    /// # Errors
    /// When somebody answers there, or it cannot be bound.
    pub async fn at(listen: &Listen) -> Result<Bound, Failure> {
        let what = listen_text(listen);
        let failed = |error| Failure::failed(format!("listen at {what}"), error);
        let socket = match listen {
            Listen::Tcp(address) => Socket::Tcp(TcpListener::bind(address).await.map_err(failed)?),
            Listen::Unix(path) => Socket::Unix(bind_unix(path).await.map_err(failed)?, path.clone()),
        };
        Ok(Bound { what, socket })
    }
}

impl Doors {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is served from now on, to programs and to browsers.
    pub fn set_routers(&self, router: Router, pages: Router) {
        let mut open = self.open();
        (open.router, open.pages) = (Some(router), Some(pages));
    }

    /// Serves at a place. While the host ends, nothing is.
    pub fn serve(&self, bound: Bound, cluster: &Arc<Cluster>) {
        let mut open = self.open();
        let Some(router) = open.router.clone() else { return };
        let service = router.into_make_service_with_connect_info::<Caller>();
        let task = match bound.socket {
            Socket::Tcp(listener) => {
                self.spawn(bound.what, Greeter::new(listener, Side::Programs(Arc::clone(cluster))), service)
            }
            Socket::Unix(listener, path) => {
                open.sockets.push(path);
                self.spawn(bound.what, listener, service)
            }
        };
        open.servers.push(task);
    }

    /// Serves browsers at an address.
    ///
    /// # Errors
    /// When it cannot be bound.
    pub async fn serve_browsers(&self, address: SocketAddr, browsers: &Arc<Browsers>) -> std::io::Result<()> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let mut open = self.open();
        let Some(pages) = open.pages.clone() else { return Ok(()) };
        let service = pages.into_make_service_with_connect_info::<Caller>();
        let side = Side::Browsers(Arc::clone(browsers), address.port());
        let task = self.spawn(address.to_string(), Greeter::new(listener, side), service);
        open.servers.push(task);
        open.console.push(address);
        Ok(())
    }

    /// Serves browsers at loopback: at the usual port, or, where another program has that, at a free one.
    ///
    /// # Errors
    /// When neither can be bound.
    pub async fn serve_browsers_here(&self, browsers: &Arc<Browsers>) -> std::io::Result<()> {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        match self.serve_browsers(at(CONSOLE_PORT), browsers).await {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                self.serve_browsers(at(0), browsers).await
            }
            done => done,
        }
    }

    /// Whether the host ends.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Where browsers connect.
    pub fn console(&self) -> Vec<SocketAddr> {
        self.open().console.clone()
    }

    fn spawn<L>(
        &self,
        what: String,
        listener: L,
        service: IntoMakeServiceWithConnectInfo<Router, Caller>,
    ) -> JoinHandle<()>
    where
        L: axum::serve::Listener,
        L::Addr: std::fmt::Debug,
        Caller: for<'a> axum::extract::connect_info::Connected<axum::serve::IncomingStream<'a, L>>,
    {
        let mut stop = self.stop.subscribe();
        let stopped = async move {
            // The sender lives as long as the host; if it is gone, so is the host.
            let _ = stop.wait_for(|stop| *stop).await;
        };
        let server = axum::serve(listener, service).with_graceful_shutdown(stopped);
        tokio::spawn(async move {
            if let Err(error) = server.await {
                tracing::error!("the API at {what} ended: {error}");
            }
        })
    }

    /// Lets nobody in any more, and waits for what is being answered.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let servers = {
            let mut open = self.open();
            (open.router, open.pages) = (None, None);
            std::mem::take(&mut open.servers)
        };
        for mut server in servers {
            if tokio::time::timeout(STOP_WAIT, &mut server).await.is_err() {
                server.abort();
            }
        }
    }

    /// Removes the unix sockets: the host has ended.
    pub fn remove_sockets(&self) {
        for socket in std::mem::take(&mut self.open().sockets) {
            // It may be gone already; a stale one is replaced at the next start.
            let _ = std::fs::remove_file(socket);
        }
    }
}

/// A unix socket for its owner alone. What a former server left is replaced; one that somebody answers at is not.
///
/// # Errors
/// When somebody answers there, or it cannot be made.
pub async fn bind_unix(path: &Path) -> std::io::Result<UnixListener> {
    if path.exists() {
        if tokio::net::UnixStream::connect(path).await.is_ok() {
            return Err(std::io::Error::other("another program answers there"));
        }
        std::fs::remove_file(path)?;
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}
