//! The HTTP API under `/api/v1`, its OpenAPI document, and `/metrics`.
//!
//! Handlers only translate: what is done is `control`'s. `routes` is the table of what there is and which right it needs;
//! `access` holds requests to it. Where no certificate is shown (unix sockets, loopback of a host that has none), a browser's
//! page from elsewhere is kept out by the `Host` header and by asking for a JSON content type.

pub mod access;
pub mod caller;
mod console;
pub mod doors;
mod files;
mod handlers;
pub mod input;
pub mod metrics;
mod rights;
mod routes;
pub mod serve;
mod sessions;
mod stream;
#[cfg(test)]
pub mod tests;
mod unchanged;
mod views;

use crate::control::Control;
use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::http::{Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use caller::Caller;
use failure::{Code, Failure};
use std::sync::Arc;

pub use routes::document;

/// Everything that the server answers.
pub fn router(control: Arc<Control>) -> Router {
    let (router, rights) = routes::assemble();
    let gate = access::Gate { control: Arc::clone(&control), rights: Arc::new(rights) };
    let (router, _) = router.split_for_parts();
    router
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(middleware::from_fn(unchanged::tagged))
        .layer(middleware::from_fn_with_state(gate, access::admit))
        .layer(middleware::from_fn(only_local_pages))
        .with_state(control)
}

/// The same for browsers, with the pages.
pub fn pages(control: Arc<Control>) -> Router {
    router(Arc::clone(&control)).layer(middleware::from_fn_with_state(control, console::enter))
}

async fn not_found(uri: Uri) -> Failure {
    Failure::new(Code::NotFound, format!("there is nothing at {}", uri.path()))
        .hint("see /api/v1/openapi.json for what there is")
}

async fn not_allowed(uri: Uri) -> Failure {
    Failure::usage(format!("{} does not take this method", uri.path()))
}

/// Refuses requests whose `Host` is a foreign name: a page whose name was pointed at this host.
/// Who shows a certificate is no page.
async fn only_local_pages(
    ConnectInfo(caller): ConnectInfo<Caller>,
    request: Request,
    next: Next,
) -> Response {
    if caller == Caller::Local
        && let Some(host) = request.headers().get(header::HOST)
        && !host.to_str().is_ok_and(is_local)
    {
        let text = String::from_utf8_lossy(host.as_bytes()).into_owned();
        return Failure::usage(format!("the host `{text}` is not this host's loopback")).into_response();
    }
    next.run(request).await
}

fn is_local(host: &str) -> bool {
    let name =
        host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
