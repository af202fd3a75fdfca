//! What comes with a request: its body and its query.

use crate::limits::BODY_BYTES_MAX;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use failure::Failure;
use serde::de::DeserializeOwned;

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
