//! What did not change is not sent again: answers carry an `ETag` over their body, and whoever has that body already is told so.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use failure::Failure;
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};

/// Gives answers to GET requests their tag, and leaves out the body of those that the client has.
pub async fn tagged(request: Request, next: Next) -> Response {
    let is_get = request.method() == Method::GET;
    let known = request.headers().get(header::IF_NONE_MATCH).cloned();
    let answer = next.run(request).await;
    if !is_get || answer.status() != StatusCode::OK || !is_json(answer.headers()) {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let body: Bytes = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return Failure::failed("make an answer", error).into_response(),
    };
    let tag = tag_of(&body);
    head.headers.insert(header::ETAG, tag.clone());
    if known.is_some_and(|known| names(&known, &tag)) {
        head.status = StatusCode::NOT_MODIFIED;
        head.headers.remove(header::CONTENT_LENGTH);
        return Response::from_parts(head, Body::empty());
    }
    Response::from_parts(head, Body::from(body))
}

fn is_json(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

/// The tag of a body: the first 128 bits of its SHA-256.
fn tag_of(body: &[u8]) -> HeaderValue {
    let digest = Sha256::digest(body);
    let text: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{text}\"")).expect("hexadecimal digits are no control characters")
}

/// Whether a tag is among those of an `If-None-Match` (RFC 9110, 13.1.2: `*`, or tags with commas between them, compared weakly).
fn names(known: &HeaderValue, tag: &HeaderValue) -> bool {
    let Ok(known) = known.to_str() else { return false };
    let mut known = known.split(',').map(|one| one.trim().trim_start_matches("W/"));
    known.any(|one| one == "*" || one.as_bytes() == tag.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_among_those_that_a_client_has() {
        let tag = tag_of(b"[]");
        assert_ne!(tag, tag_of(b"[1]"));
        let text = tag.to_str().expect("text").to_owned();
        for (known, is_named) in [
            (text.clone(), true),
            (format!("\"other\", W/{text}"), true),
            ("*".to_owned(), true),
            ("\"other\"".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(names(&HeaderValue::from_str(&known).expect("a header"), &tag), is_named, "{known}");
        }
    }
}
