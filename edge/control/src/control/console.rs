//! The console: where browsers connect, and links by which people log in there.

use super::Control;
use crate::http::caller::Caller;
use crate::limits::{SESSION_CODE_WAIT, SESSION_LIFETIME};
use api::types::SessionLink;
use failure::{Code, Failure};
use std::net::SocketAddr;
use std::time::{Instant, SystemTime};
use trust::Identity;

impl Control {
    /// Serves browsers at these addresses.
    ///
    /// # Errors
    /// When one cannot be bound, or the certificate for browsers cannot be used: it is found out now, and not by the first browser.
    pub async fn open_console(&self, addresses: &[SocketAddr]) -> Result<(), Failure> {
        if addresses.is_empty() {
            return Ok(());
        }
        self.browsers.tls()?;
        for address in addresses {
            self.doors
                .serve_browsers(*address, &self.browsers)
                .await
                .map_err(|error| Failure::failed(format!("listen at {address} ([listen] console)"), error))?;
        }
        Ok(())
    }

    /// A link by which whoever asks opens the console, once. Where the configuration does not say where that is, it is served at
    /// loopback from now on.
    ///
    /// # Errors
    /// When the configuration turns the console off, or it is no person who asks.
    pub async fn make_session_link(&self, caller: &Caller) -> Result<SessionLink, Failure> {
        let left = match caller {
            Caller::Local => SESSION_LIFETIME,
            Caller::Known { identity: Identity::Person { .. }, ends, .. } => {
                ends.duration_since(SystemTime::now()).unwrap_or_default()
            }
            Caller::Known { identity: Identity::Host { .. }, .. }
            | Caller::Nobody
            | Caller::Person(_)
            | Caller::Page(_) => {
                let why = format!("{} may not make a link to the console", caller.text());
                return Err(Failure::new(Code::Denied, why)
                    .hint("run `drystone console` on the host as root, or with your certificate"));
            }
        };
        let config = self.config();
        match &config.console.listen {
            Some(listen) if listen.is_empty() => {
                return Err(Failure::refused("this host's configuration turns the console off")
                    .hint("leave out [listen] console, or set it to an address such as \"127.0.0.1:8443\", and start the host again"));
            }
            Some(_) => {}
            None => {
                // Two who ask at once do not open it twice.
                let _one_change = self.changes.lock().await;
                if self.doors.console().is_empty() {
                    self.browsers.tls()?;
                    let opened = self.doors.serve_browsers_here(&self.browsers).await;
                    opened.map_err(|error| Failure::failed("serve the console at loopback", error))?;
                }
            }
        }
        let code = self.sessions.make_code(caller.clone(), left, Instant::now())?;
        let places = self.doors.console();
        let links = places.iter().map(|place| format!("https://{}/in#{code}", self.place_text(*place)));
        Ok(SessionLink {
            links: links.collect(),
            seconds: SESSION_CODE_WAIT.as_secs(),
            fingerprint: self.browsers.own_fingerprint()?,
        })
    }

    /// Whether browsers know the certificate that they are shown without being asked.
    pub fn is_vouched_for(&self) -> bool {
        self.browsers.is_vouched_for()
    }

    /// Whether the host ends: what is told without an end ends then.
    pub fn stopping(&self) -> tokio::sync::watch::Receiver<bool> {
        self.doors.stopping()
    }

    /// How a browser comes to a place: where it is any address of the machine, by the host's name.
    fn place_text(&self, place: SocketAddr) -> String {
        match place.ip().is_unspecified() {
            true => format!("{}:{}", self.config().name, place.port()),
            false => place.to_string(),
        }
    }
}
