//! Handlers of sessions: a link, the log-in with it or with a password, and the log-out.

use super::access::{NOT_A_BROWSER, who_asks};
use super::caller::{Caller, Page};
use super::console::cookie_name;
use super::input::Input;
use crate::control::Control;
use crate::log_ins::Refused;
use api::types::{ChangeOwnPassword, LogIn, LogInChoices, MeView, SessionLink};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use failure::{Code, Failure};
use std::sync::Arc;

type Shared = State<Arc<Control>>;

/// Make a link that opens the console in a browser, once and within a minute, with the rights of whoever asks.
#[utoipa::path(post, path = "/api/v1/sessions", responses((status = 201, body = SessionLink), (status = "default", body = Failure)))]
pub async fn make_link(
    State(control): Shared,
    Extension(caller): Extension<Caller>,
) -> Result<(StatusCode, Json<SessionLink>), Failure> {
    Ok((StatusCode::CREATED, Json(control.make_session_link(&caller).await?)))
}

/// Tell how people may log in to the console, besides with a link.
#[utoipa::path(get, path = "/api/v1/session", responses((status = 200, body = LogInChoices), (status = "default", body = Failure)))]
pub async fn choices(State(control): Shared) -> Json<LogInChoices> {
    Json(control.log_in_choices())
}

/// Log in to the console with the code of a link, or with a name and a password. The answer sets the cookie of the session. After five
/// tries that failed, of a name or from an address, the next ones have to wait: 429, with `Retry-After` in seconds.
#[utoipa::path(post, path = "/api/v1/session", request_body = LogIn, responses((status = 200, body = MeView), (status = 429, body = Failure), (status = "default", body = Failure)))]
pub async fn log_in(
    State(control): Shared,
    Extension(caller): Extension<Caller>,
    Input(request): Input<LogIn>,
) -> Result<Response, Refused> {
    let Caller::Page(page) = caller else {
        return Err(Failure::new(Code::Denied, NOT_A_BROWSER).into());
    };
    let (token, session) = control.log_in(request, &page).await?;
    let cookie = session_cookie(&control, &page, &token)?;
    let me = who_asks(&control, &Caller::Page(Page { session: Some(session), ..page }));
    Ok(([(header::SET_COOKIE, cookie)], Json(me)).into_response())
}

/// Set another password of one's own, on a page of somebody who logged in with one. The answer sets the cookie of a new session; all
/// others of that person end. Tries with a wrong former password are slowed as log-ins are: 429, with `Retry-After` in seconds.
#[utoipa::path(put, path = "/api/v1/me/password", request_body = ChangeOwnPassword, responses((status = 204), (status = 429, body = Failure), (status = "default", body = Failure)))]
pub async fn change_own_password(
    State(control): Shared,
    Extension(caller): Extension<Caller>,
    Input(request): Input<ChangeOwnPassword>,
) -> Result<Response, Refused> {
    let Caller::Page(page) = caller else {
        return Err(Failure::new(Code::Denied, NOT_A_BROWSER).into());
    };
    let (token, _) = control.change_own_password(request, &page).await?;
    let cookie = session_cookie(&control, &page, &token)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// The cookie of a session that has begun; the one that the browser had ends.
pub(super) fn session_cookie(control: &Control, page: &Page, token: &str) -> Result<HeaderValue, Failure> {
    if let Some(former) = &page.session {
        control.sessions.end(former);
    }
    let cookie = format!("{}={token}; Path=/; Secure; HttpOnly; SameSite=Strict", cookie_name(page.port));
    HeaderValue::from_str(&cookie).map_err(|error| Failure::failed("log in", error))
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let retry_after =
            self.retry_after.map(|wait| [(header::RETRY_AFTER, HeaderValue::from(wait.as_secs()))]);
        (retry_after, self.failure).into_response()
    }
}

/// Log out of the console: the session ends.
#[utoipa::path(delete, path = "/api/v1/session", responses((status = 204), (status = "default", body = Failure)))]
pub async fn log_out(
    State(control): Shared,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Failure> {
    let Caller::Page(Page { port, session: Some(session), .. }) = caller else {
        return Err(Failure::new(Code::Denied, NOT_A_BROWSER));
    };
    control.sessions.end(&session);
    let cookie = format!("{}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0", cookie_name(port));
    let cookie = HeaderValue::from_str(&cookie).map_err(|error| Failure::failed("log out", error))?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}
