//! Who asks, and whether they may. What each route needs stands in the table of `routes`; the rights of roles and hosts are
//! `trust`'s.

use super::caller::{Caller, LoggedIn, Page};
use super::rights::{Need, Rights};
use crate::asked::{WHO, asked_by};
use crate::control::Control;
use crate::events::Kind;
use crate::limits::SESSION_IDLE_MAX;
use crate::sessions::Session;
use crate::words::{log_in_word, right_word, role_word};
use api::types::{CallerWord, MeView, MySession};
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use failure::{Code, Failure};
use std::sync::Arc;
use trust::{Action, Identity};

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

/// What stands before every request.
#[derive(Clone)]
pub struct Gate {
    /// Knows whose certificates count no more.
    pub control: Arc<Control>,
    /// What each route needs.
    pub rights: Arc<Rights>,
}

/// Lets through what may be asked, and answers the rest.
pub async fn admit(
    State(Gate { control, rights }): State<Gate>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    mut request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map(MatchedPath::as_str);
    let needed = rights.need(request.method(), route);
    match check(&control, &caller, needed) {
        Ok(()) => {
            let who = caller.text();
            let asked = format!("{} {}", request.method(), request.uri().path());
            request.extensions_mut().insert(caller);
            WHO.scope(who, async {
                let answer = next.run(request).await;
                // What concerns people has events of its own.
                let is_told = route.is_some_and(|route| route.starts_with("/api/v1/people"));
                if needed == Need::Right(Action::GiveCertificates) && !is_told && answer.status().is_success()
                {
                    control.events.other(Kind::CertificatesChanged, "cluster", asked);
                }
                answer
            })
            .await
        }
        Err(failure) => failure.into_response(),
    }
}

/// Who asks, with all that they may.
pub fn who_asks(control: &Control, caller: &Caller) -> MeView {
    let may = |action: &Action| check(control, caller, Need::Right(*action)).is_ok();
    let rights = trust::RIGHTS.iter().map(|right| right.action).filter(may).map(right_word);
    let session = match caller {
        Caller::Page(page) => page.session.as_deref(),
        Caller::Local | Caller::Nobody | Caller::Known { .. } | Caller::Person(_) => None,
    };
    let (kind, name, role) = match session.map_or(caller, |session| &session.holder) {
        Caller::Local | Caller::Nobody | Caller::Page(_) => (CallerWord::Local, None, None),
        Caller::Known { identity: Identity::Host { name, .. }, .. }
        | Caller::Person(LoggedIn { identity: Identity::Host { name, .. }, .. }) => {
            (CallerWord::Host, Some(name.to_string()), None)
        }
        Caller::Known { identity: Identity::Person { name, role, .. }, .. }
        | Caller::Person(LoggedIn { identity: Identity::Person { name, role, .. }, .. }) => {
            (CallerWord::Person, Some(name.to_string()), Some(role_word(*role)))
        }
    };
    let session = session.map(|session| MySession {
        begun_by: log_in_word(session.begun_by),
        ends: session.ends(),
        idle_seconds: SESSION_IDLE_MAX.as_secs(),
    });
    MeView { kind, name, role, rights: rights.collect(), host: control.config().name.clone(), session }
}

/// What programs are told that want a session, or to end one.
pub const NOT_A_BROWSER: &str =
    "a program may not log in or out, or change a password of its own: browsers do, at the console's address";

/// The session of a page, if it goes on.
fn session_of<'a>(control: &Control, page: &'a Page) -> Result<&'a Session<Caller>, Failure> {
    let without = |why: String| {
        Failure::new(Code::Unauthenticated, why)
            .hint("log in, or open the link that `drystone console` prints")
    };
    let session = page.session.as_deref();
    let session = session.ok_or_else(|| without("there is no session, or it has ended".to_owned()))?;
    match &session.holder {
        Caller::Known { identity, issued_ns, .. } if control.is_revoked(identity, *issued_ns) => {
            Err(without(format!("the certificate of {identity} is revoked, and the session with it")))
        }
        Caller::Person(who) => match control.why_logged_out(who) {
            Some(why) => Err(without(format!("{why}: the session has ended"))),
            None => Ok(session),
        },
        Caller::Known { .. } | Caller::Local | Caller::Nobody | Caller::Page(_) => Ok(session),
    }
}

/// Whether somebody may have what a request needs.
///
/// # Errors
/// Says who may.
pub fn check(control: &Control, caller: &Caller, need: Need) -> Result<(), Failure> {
    let denied = |text: String| Failure::new(Code::Denied, text);
    match (caller, need) {
        (Caller::Page(_), Need::Login) => Ok(()),
        (Caller::Page(page), Need::Session) => session_of(control, page).map(|_| ()),
        (Caller::Page(page), Need::Right(_)) => check(control, &session_of(control, page)?.holder, need),
        (_, Need::Login | Need::Session) => {
            Err(denied(NOT_A_BROWSER.to_owned()).hint("`drystone console` prints a link"))
        }
        (Caller::Page(_), Need::Token) => {
            Err(denied("a join token is redeemed at the address of the API".to_owned()))
        }
        (Caller::Local, _) | (_, Need::Token) => Ok(()),
        (Caller::Nobody, Need::Right(_)) => Err(denied(
            "a certificate of this cluster is required".to_owned(),
        )
        .hint(
            "have an admin make a token for you (`drystone person token NAME`), then `drystone login TOKEN`",
        )),
        (Caller::Person(who), Need::Right(action)) => {
            trust::decide(&who.identity, action).map_err(|why| denied(why.to_string()))
        }
        (Caller::Known { identity, issued_ns, .. }, Need::Right(action)) => {
            if control.is_revoked(identity, *issued_ns) {
                return Err(denied(format!("the certificate of {identity} is revoked"))
                    .hint("ask an admin for a new token"));
            }
            trust::decide(identity, action).map_err(|why| denied(why.to_string()))
        }
    }
}
