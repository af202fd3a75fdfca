//! Handlers of sessions: a link, the log-in with it, and the log-out.

use super::access::{NOT_A_BROWSER, who_asks};
use super::caller::{Caller, Page};
use super::console::cookie_name;
use super::input::Input;
use crate::control::Control;
use crate::events::Kind;
use api::types::{LogIn, MeView, SessionLink};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use failure::{Code, Failure};
use std::sync::Arc;
use std::time::Instant;

type Shared = State<Arc<Control>>;

/// Make a link that opens the console in a browser, once and within a minute, with the rights of whoever asks.
#[utoipa::path(post, path = "/api/v1/sessions", responses((status = 201, body = SessionLink), (status = "default", body = Failure)))]
pub async fn make_link(
    State(control): Shared,
    Extension(caller): Extension<Caller>,
) -> Result<(StatusCode, Json<SessionLink>), Failure> {
    Ok((StatusCode::CREATED, Json(control.make_session_link(&caller).await?)))
}

/// Log in to the console with the code of a link. The answer sets the cookie of the session.
#[utoipa::path(post, path = "/api/v1/session", request_body = LogIn, responses((status = 200, body = MeView), (status = "default", body = Failure)))]
pub async fn log_in(
    State(control): Shared,
    Extension(caller): Extension<Caller>,
    Input(request): Input<LogIn>,
) -> Result<Response, Failure> {
    let Caller::Page(page) = caller else {
        return Err(Failure::new(Code::Denied, NOT_A_BROWSER));
    };
    let (token, session) = control.sessions.redeem(&request.code, Instant::now())?;
    let who = session.holder.text();
    let cookie = format!("{}={token}; Path=/; Secure; HttpOnly; SameSite=Strict", cookie_name(page.port));
    let me = who_asks(&control, &Caller::Page(Page { session: Some(session), ..page }));
    control.events.here(Kind::SessionBegun, format!("{who} has logged in to the console"));
    let cookie = HeaderValue::from_str(&cookie).map_err(|error| Failure::failed("log in", error))?;
    Ok(([(header::SET_COOKIE, cookie)], Json(me)).into_response())
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
