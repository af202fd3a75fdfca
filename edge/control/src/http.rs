//! The HTTP API under `/api/v1`, its OpenAPI document, and `/metrics`.
//!
//! Handlers only translate: what is done is `control`'s. `routes` is the table of what there is and which right it needs;
//! `access` holds requests to it. Where no certificate is shown (unix sockets, loopback of a host that has none), a browser's
//! page from elsewhere is kept out by the `Host` header and by asking for a JSON content type.

pub mod access;
pub mod doors;
mod handlers;
pub mod metrics;
mod routes;
pub mod serve;
#[cfg(test)]
pub mod tests;

use crate::control::Control;
use crate::limits::BODY_BYTES_MAX;
use access::Caller;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use failure::{Code, Failure};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use utoipa::OpenApi;

pub use routes::document;

/// The document's head; the paths come from the handlers.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Drystone",
        description = "Virtual disks on the local disks of Linux hosts. Errors are JSON: code, error, hint.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(Failure))
)]
struct Document;

/// Everything that the server answers.
pub fn router(control: Arc<Control>) -> Router {
    let (router, rights) = routes::assemble();
    let gate = access::Gate { control: Arc::clone(&control), rights: Arc::new(rights) };
    let (router, _) = router.split_for_parts();
    router
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(middleware::from_fn_with_state(gate, access::admit))
        .layer(middleware::from_fn(only_local_pages))
        .with_state(control)
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

/// A JSON body; what is wrong with it is a [`Failure`] like any other.
pub struct Input<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Input<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        if !is_json(request.headers()) {
            return Err(Failure::usage("the body must be JSON, with `content-type: application/json`"));
        }
        let request = request.map(|body| Body::new(http_body_util::Limited::new(body, BODY_BYTES_MAX)));
        let bytes = Bytes::from_request(request, state).await.map_err(|error| {
            Failure::usage(format!("read the body ({BODY_BYTES_MAX} bytes at most): {error}"))
        })?;
        serde_json::from_slice(&bytes)
            .map(Input)
            .map_err(|error| Failure::usage(format!("the body: {error}")))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim() == "application/json"
}

/// The query of an address.
pub struct Options<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Options<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        match axum::extract::Query::<T>::from_request_parts(parts, state).await {
            Ok(query) => Ok(Options(query.0)),
            Err(error) => Err(Failure::usage(error.body_text())),
        }
    }
}
