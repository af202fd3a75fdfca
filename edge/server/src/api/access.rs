//! Who asks, and whether they may: one table of what each request needs.
//!
//! What is not in the table needs what changes the cluster does, so that something new is closed until it is opened. The
//! rights of roles and hosts are `trust`'s.

use crate::control::Control;
use crate::events::Kind;
use crate::failure::{Code, Failure};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use trust::{Action, Identity};

/// Who is at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// Somebody on this machine, at a socket that the file system guards, or at loopback of a host without a certificate.
    Local,
    /// Somebody who showed no certificate.
    Nobody,
    /// A host or a person of the cluster.
    Known {
        /// Who.
        identity: Identity,
        /// When the certificate was made, in nanoseconds since 1970.
        issued_ns: u64,
    },
}

/// Who asks at a socket of the host itself.
pub const ON_HOST: &str = "somebody on the host";

tokio::task_local! {
    /// Who asks for what this task does.
    static WHO: String;
}

/// Who asked for what is being done, for records and events: `operator ann`; nothing where the host does it by itself.
pub fn asked_by() -> Option<String> {
    WHO.try_with(Clone::clone).ok()
}

/// Does something to the end although whoever asked for it may go away meanwhile: what was locked for it is unlocked.
///
/// # Errors
/// Those of the work.
pub async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let task = match asked_by() {
        Some(who) => tokio::spawn(WHO.scope(who, work)),
        None => tokio::spawn(work),
    };
    task.await.unwrap_or_else(|broken| Err(Failure::failed("do what was asked", broken)))
}

impl Caller {
    fn text(&self) -> String {
        match self {
            Caller::Local => ON_HOST.to_owned(),
            Caller::Nobody => "somebody without a certificate".to_owned(),
            Caller::Known { identity: Identity::Host { name, .. }, .. } => format!("host {name}"),
            Caller::Known { identity: Identity::Person { name, role, .. }, .. } => format!("{role} {name}"),
        }
    }
}

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A join token, which the request carries itself.
    Token,
    /// A right.
    Right(Action),
}

/// What a request needs.
pub fn need(method: &Method, path: &str) -> Need {
    let is_below =
        |folder: &str| path == folder || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    if path == "/api/v1/join" {
        return Need::Token;
    }
    Need::Right(match *method {
        _ if is_below("/api/v1/support") => Action::Operate,
        Method::GET | Method::HEAD => Action::See,
        _ if path == "/api/v1/what-if" => Action::See,
        _ if is_below("/api/v1/health/silences") => Action::Operate,
        _ if is_below("/api/v1/disks") || is_below("/api/v1/policies") => Action::ChangeDisk,
        _ if ["/api/v1/certificates/host", "/api/v1/cluster/copy"].contains(&path) => Action::ActAsHost,
        _ if ["/api/v1/tokens", "/api/v1/people", "/api/v1/authorities", "/api/v1/certificates"]
            .into_iter()
            .any(is_below) =>
        {
            Action::GiveCertificates
        }
        _ => Action::ChangeCluster,
    })
}

/// Lets through what may be asked, and answers the rest.
pub async fn admit(
    State(control): State<Arc<Control>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    mut request: Request,
    next: Next,
) -> Response {
    let needed = need(request.method(), request.uri().path());
    match check(&control, &caller, needed) {
        Ok(()) => {
            let who = caller.text();
            let asked = format!("{} {}", request.method(), request.uri().path());
            request.extensions_mut().insert(caller);
            WHO.scope(who, async {
                let answer = next.run(request).await;
                if needed == Need::Right(Action::GiveCertificates) && answer.status().is_success() {
                    control.events.other(Kind::CertificatesChanged, "cluster", asked);
                }
                answer
            })
            .await
        }
        Err(failure) => failure.into_response(),
    }
}

/// Whether somebody may have what a request needs.
///
/// # Errors
/// Says who may.
pub fn check(control: &Control, caller: &Caller, need: Need) -> Result<(), Failure> {
    let denied = |text: String| Failure::new(Code::Denied, text);
    match (caller, need) {
        (Caller::Local, _) | (_, Need::Token) => Ok(()),
        (Caller::Nobody, Need::Right(_)) => Err(denied(
            "nobody is let in here without a certificate of this cluster".to_owned(),
        )
        .hint(
            "have an admin make a token for you (`drystone person token NAME`), then `drystone login TOKEN`",
        )),
        (Caller::Known { identity, issued_ns }, Need::Right(action)) => {
            if control.is_revoked(identity, *issued_ns) {
                return Err(denied(format!("the certificate of {identity} counts no more"))
                    .hint("have an admin make a new token for you, if you are to come back"));
            }
            trust::decide(identity, action).map_err(|why| denied(why.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_needs_what_the_table_says() {
        let see = [
            "/api/v1/host",
            "/api/v1/disks",
            "/api/v1/disks/a/histograms",
            "/metrics",
            "/api/v1/openapi.json",
            "/api/v1/tokens",
            "/api/v1/health/silences",
            "/anything",
        ];
        for path in see {
            assert_eq!(need(&Method::GET, path), Need::Right(Action::See), "{path}");
        }
        let table = [
            (Method::POST, "/api/v1/disks", Action::ChangeDisk),
            (Method::DELETE, "/api/v1/disks/a", Action::ChangeDisk),
            (Method::PATCH, "/api/v1/disks/a", Action::ChangeDisk),
            (Method::POST, "/api/v1/policies", Action::ChangeDisk),
            (Method::POST, "/api/v1/diskset", Action::ChangeCluster),
            (Method::POST, "/api/v1/what-if", Action::See),
            (Method::POST, "/api/v1/health/silences", Action::Operate),
            (Method::DELETE, "/api/v1/health/silences", Action::Operate),
            (Method::GET, "/api/v1/support", Action::Operate),
            (Method::GET, "/api/v1/support/hosts/a", Action::Operate),
            (Method::GET, "/api/v1/supporters", Action::See),
            (Method::POST, "/api/v1/devices", Action::ChangeCluster),
            (Method::DELETE, "/api/v1/hosts/a", Action::ChangeCluster),
            (Method::PATCH, "/api/v1/cluster/settings", Action::ChangeCluster),
            (Method::POST, "/api/v1/something-new", Action::ChangeCluster),
            (Method::POST, "/api/v1/tokens", Action::GiveCertificates),
            (Method::DELETE, "/api/v1/people/ann", Action::GiveCertificates),
            (Method::POST, "/api/v1/authorities", Action::GiveCertificates),
            (Method::POST, "/api/v1/certificates/renew", Action::GiveCertificates),
            (Method::POST, "/api/v1/certificates/host", Action::ActAsHost),
            (Method::POST, "/api/v1/cluster", Action::ChangeCluster),
            (Method::POST, "/api/v1/cluster/copy", Action::ActAsHost),
            (Method::POST, "/api/v1/cluster/rebuild-directory", Action::ChangeCluster),
            (Method::GET, "/api/v1/cluster/versions", Action::See),
            (Method::POST, "/api/v1/cluster/upgrade", Action::ChangeCluster),
        ];
        for (method, path, action) in table {
            assert_eq!(need(&method, path), Need::Right(action), "{method} {path}");
        }
        assert_eq!(need(&Method::POST, "/api/v1/join"), Need::Token);
        assert_eq!(need(&Method::POST, "/api/v1/join/more"), Need::Right(Action::ChangeCluster));
    }
}
