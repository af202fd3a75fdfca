//! Handlers of a log-in at an issuer of OpenID Connect: the way there, and the way back.
//!
//! Who comes back comes from the issuer's page, so the browser sends no cookie of ours that is `SameSite=Strict`, and says that the
//! request is of another site. What tells that it is the browser that went there is a cookie of its own, `SameSite=Lax`, which comes with
//! such a navigation. The session's cookie is set by the answer; the pages' own requests have it from then on. A person who is refused
//! gets a page in words, for no script is there yet.

use super::access::NOT_A_BROWSER;
use super::caller::{Caller, Page};
use super::console::cookie;
use super::input::Options;
use super::sessions::session_cookie;
use crate::control::Control;
use crate::issuer::Back;
use crate::limits::ISSUER_LOG_IN_WAIT;
use crate::log_ins::Refused;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use failure::{Code, Failure};
use std::sync::Arc;

type Shared = State<Arc<Control>>;

/// The name of the cookie by which a browser is known that comes back.
fn browser_cookie_name(port: u16) -> String {
    format!("__Host-drystone-oidc-{port}")
}

/// Begin a log-in at the issuer of OpenID Connect: the browser is sent there, and comes back to `/session/oidc/callback`.
#[utoipa::path(get, path = "/api/v1/session/oidc", responses((status = 303), (status = "default", body = Failure)))]
pub async fn begin(
    State(control): Shared,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    let begun = async {
        let page = page_of(caller)?;
        let name = browser_cookie_name(page.port);
        let sent = control.begin_at_issuer(cookie(&headers, &name), &page).await?;
        let set = format!(
            "{name}={}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={}",
            sent.browser,
            ISSUER_LOG_IN_WAIT.as_secs()
        );
        Ok((
            StatusCode::SEE_OTHER,
            [(header::LOCATION, value(&sent.to)?), (header::SET_COOKIE, value(&set)?)],
        ))
    };
    begun.await.map_or_else(|refused: Refused| in_words(&refused), IntoResponse::into_response)
}

/// End a log-in at the issuer of OpenID Connect: the issuer sends the browser here. The answer sets the cookie of the session and leads to
/// the console; where nobody is logged in, it is a page that says why.
#[utoipa::path(get, path = "/api/v1/session/oidc/callback", params(
    ("state" = Option<String>, Query), ("code" = Option<String>, Query), ("error" = Option<String>, Query)
), responses((status = 303), (status = "default", body = String, content_type = "text/html")))]
pub async fn end(
    State(control): Shared,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Options(back): Options<Back>,
) -> Response {
    let ended = async {
        let page = page_of(caller)?;
        let name = browser_cookie_name(page.port);
        let browser = cookie(&headers, &name);
        let (token, _) = control.end_at_issuer(&back, browser.as_deref(), &page).await?;
        let session = session_cookie(&control, &page, &token)?;
        let gone = value(&format!("{name}=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0"))?;
        let mut answer =
            (StatusCode::SEE_OTHER, [(header::LOCATION, HeaderValue::from_static("/"))]).into_response();
        answer.headers_mut().append(header::SET_COOKIE, session);
        answer.headers_mut().append(header::SET_COOKIE, gone);
        Ok(answer)
    };
    ended.await.unwrap_or_else(|refused: Refused| in_words(&refused))
}

fn page_of(caller: Caller) -> Result<Page, Failure> {
    match caller {
        Caller::Page(page) => Ok(page),
        Caller::Local | Caller::Nobody | Caller::Known { .. } | Caller::Person(_) => {
            Err(Failure::new(Code::Denied, NOT_A_BROWSER))
        }
    }
}

fn value(text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(text).map_err(|error| Failure::failed("answer the browser", error))
}

/// A page that says why nobody is logged in.
fn in_words(refused: &Refused) -> Response {
    let Failure { code, error, hint } = &refused.failure;
    let hint = hint.as_ref().map_or_else(String::new, |hint| format!("<p>{}</p>\n", escaped(hint)));
    let text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Drystone: not logged in</title>\n\
         <h1>You are not logged in</h1>\n<p role=\"alert\">{}</p>\n{hint}<p><a href=\"/login\">Log in</a></p>\n</html>\n",
        escaped(error)
    );
    let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))], text)
        .into_response()
}

/// Text that no browser takes for anything else.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_issuer_says_is_text_and_nothing_else() {
        assert_eq!(escaped("<b onclick='x' a=\"&\">ä"), "&lt;b onclick=&#39;x&#39; a=&quot;&amp;&quot;&gt;ä");
        let refused = Refused::from(Failure::new(Code::Denied, "<script>alert(1)</script>"));
        let answer = in_words(&refused);
        assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    }
}
