//! What stands before requests of browsers: whose session it is, that the request is of our own pages, and the headers that
//! hold browsers to that.
//!
//! A cookie is believed here alone. It comes with every request that a browser makes, whoever's page had it make it: so a request
//! counts only if the browser says that it is of the same origin (`Sec-Fetch-Site`, or `Origin` of older ones), and a change only
//! with a JSON body, which no form can send.

use super::caller::{Caller, Page};
use crate::control::Control;
use crate::issuer::CALLBACK;
use crate::limits::BODY_BYTES_MAX;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use failure::{Code, Failure};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What pages may do: take scripts, styles, pictures and answers from this place, and nothing else from anywhere.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// With every answer.
const HEADERS: [(HeaderName, HeaderValue); 7] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY)),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
];

/// With every answer where browsers know the certificate: they refuse unencrypted connections to this name for 30 days. It counts for all
/// ports of the name, so it is short, and not for names below it.
const STRICT_TRANSPORT: HeaderValue = HeaderValue::from_static("max-age=2592000");

/// The name of a session's cookie. Browsers do not tell ports apart, and several hosts may be on one machine.
pub fn cookie_name(port: u16) -> String {
    format!("__Host-drystone-{port}")
}

/// Lets a browser's request on with its session, or answers it.
pub async fn enter(
    State(control): State<Arc<Control>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    request: Request,
    next: Next,
) -> Response {
    let Caller::Page(page) = caller else {
        return Failure::new(Code::Denied, "this place is for browsers").into_response();
    };
    let is_api = is_api(request.uri().path());
    // As a whole first: a refusal before the end of the body resets a stream of HTTP/2, which clients take for a broken connection.
    let request = match is_api {
        true => read_whole(request).await,
        false => Ok(request),
    };
    let checked = request.and_then(|request| match is_api {
        true if is_way_back(&request) => Ok(request),
        true => check_origin(&request).map(|()| request),
        false => Ok(request),
    });
    let mut answer = match checked {
        Err(failure) => failure.into_response(),
        Ok(request) if !is_api => super::files::answer(&request),
        Ok(mut request) => {
            let token = cookie(request.headers(), &cookie_name(page.port));
            let session = token.and_then(|token| control.sessions.find(&token, Instant::now()));
            if session.is_some() {
                page.is_known.store(true, Ordering::Relaxed);
            }
            request.extensions_mut().insert(ConnectInfo(Caller::Page(Page { session, ..page })));
            next.run(request).await
        }
    };
    let headers = answer.headers_mut();
    headers.extend(HEADERS);
    if control.is_vouched_for() {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, STRICT_TRANSPORT);
    }
    if is_api {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    answer
}

/// The same request with its body in memory.
async fn read_whole(request: Request) -> Result<Request, Failure> {
    let (head, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, BODY_BYTES_MAX).await.map_err(|error| {
        Failure::usage(format!("read the body ({BODY_BYTES_MAX} bytes at most): {error}"))
    })?;
    Ok(Request::from_parts(head, Body::from(bytes)))
}

fn is_api(path: &str) -> bool {
    path.starts_with("/api/") || path == "/metrics"
}

/// Whether an issuer sends a browser back: a navigation from a page of somebody else, as it must be. The request itself tells
/// which log-in it ends, and a cookie of its own of which browser that is.
fn is_way_back(request: &Request) -> bool {
    let destination = request.headers().get("sec-fetch-dest");
    request.method() == Method::GET
        && request.uri().path() == CALLBACK
        && destination.is_none_or(|destination| destination == "document")
}

/// Refuses what a page of somebody else may have made the browser ask.
fn check_origin(request: &Request) -> Result<(), Failure> {
    let foreign = || {
        Failure::new(Code::Denied, "the request is not of a page of this console")
            .hint("programs ask at the address of the API, with a certificate")
    };
    let headers = request.headers();
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let own = request
        .uri()
        .authority()
        .map(|authority| authority.as_str())
        .or_else(|| text(&header::HOST))
        .map(|host| format!("https://{host}"));
    let origin = text(&header::ORIGIN);
    let is_own = match (text(&HeaderName::from_static("sec-fetch-site")), origin) {
        (Some(site), None) => site == "same-origin",
        (Some(site), Some(origin)) => site == "same-origin" && own.as_deref() == Some(origin),
        (None, Some(origin)) => own.as_deref() == Some(origin),
        (None, None) => false,
    };
    if !is_own {
        return Err(foreign());
    }
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let kind = text(&header::CONTENT_TYPE).unwrap_or_default();
    let is_json = kind.split(';').next().unwrap_or_default().trim() == "application/json";
    match is_read || is_json {
        true => Ok(()),
        false => Err(Failure::new(Code::Denied, "a change needs `content-type: application/json`")),
    }
}

/// A cookie of a request (RFC 6265, 4.2). One that is there twice is none: nobody can say which is ours.
pub(super) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = all.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut found = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().method(method).uri("/api/v1/me");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).expect("a request")
    }

    #[test]
    fn only_our_own_pages_are_believed() {
        let own = ("host", "a:8443");
        let json = ("content-type", "application/json");
        let site = |site| ("sec-fetch-site", site);
        let origin = |origin| ("origin", origin);
        for (method, headers, is_good) in [
            ("GET", vec![own, site("same-origin")], true),
            ("GET", vec![own, origin("https://a:8443")], true),
            ("GET", vec![own], false),
            ("GET", vec![own, site("same-site")], false),
            ("GET", vec![own, site("cross-site")], false),
            ("GET", vec![own, site("none")], false),
            ("GET", vec![own, origin("https://a:8444")], false),
            ("GET", vec![own, origin("http://a:8443")], false),
            ("GET", vec![own, origin("null")], false),
            ("GET", vec![own, site("same-origin"), origin("https://evil.example")], false),
            ("POST", vec![own, site("same-origin")], false),
            ("POST", vec![own, site("same-origin"), json], true),
            ("POST", vec![own, site("same-origin"), ("content-type", "text/plain")], false),
            ("DELETE", vec![own, site("same-origin")], false),
            ("DELETE", vec![own, site("cross-site"), json], false),
        ] {
            let found = check_origin(&request(method, &headers));
            assert_eq!(found.is_ok(), is_good, "{method} {headers:?}");
        }
    }

    #[test]
    fn only_a_navigation_comes_back_from_an_issuer() {
        let back = |method: &str, path: &str, destination: Option<&str>| {
            let mut request = Request::builder().method(method).uri(path);
            if let Some(destination) = destination {
                request = request.header("sec-fetch-dest", destination);
            }
            is_way_back(&request.body(Body::empty()).expect("a request"))
        };
        assert!(back("GET", "/api/v1/session/oidc/callback?state=x&code=y", Some("document")));
        assert!(back("GET", CALLBACK, None), "an older browser does not say it");
        for destination in ["image", "iframe", "empty", "script"] {
            assert!(!back("GET", CALLBACK, Some(destination)), "{destination}");
        }
        assert!(!back("POST", CALLBACK, Some("document")) && !back("GET", "/api/v1/me", Some("document")));
    }

    #[test]
    fn a_cookie_is_found_among_others_and_one_that_is_there_twice_is_none() {
        let found = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_str(text).expect("a header"));
            cookie(&headers, "__Host-drystone-8443")
        };
        assert_eq!(found("a=b; __Host-drystone-8443=xyz; c=d").as_deref(), Some("xyz"));
        assert_eq!(found("__Host-drystone-844=xyz"), None);
        assert_eq!(found("__Host-drystone-8443=1; __Host-drystone-8443=2"), None);
        assert_eq!(found(""), None);
    }
}
