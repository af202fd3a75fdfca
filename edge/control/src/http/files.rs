//! The files of the console's pages.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// What a browser is told where the program has no pages in it.
const WITHOUT_PAGES: &str = "This drystone was built without the console's pages: build it with `./x build`, which says what it \
     needs for that. The API is served here all the same.\n";

/// Answers a request that is not of the API.
pub(super) fn answer(request: &Request) -> Response {
    let words = |status: StatusCode, text: &'static str| {
        (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
    };
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return words(StatusCode::METHOD_NOT_ALLOWED, "Pages are read, and nothing else.\n");
    }
    let text = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let Some(file) = console::find(request.uri().path(), text(header::ACCEPT_ENCODING)) else {
        let why = if console::is_embedded() { "There is no such file.\n" } else { WITHOUT_PAGES };
        return words(StatusCode::NOT_FOUND, why);
    };
    let is_known = text(header::IF_NONE_MATCH).is_some_and(|known| known.contains(file.etag));
    let mut answer = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Body::from(file.bytes).into_response(),
    };
    let headers = answer.headers_mut();
    let fixed = HeaderValue::from_static;
    headers.insert(header::ETAG, fixed(file.etag));
    headers.insert(header::CACHE_CONTROL, fixed(file.cache_control));
    headers.insert(header::CONTENT_TYPE, fixed(file.content_type));
    headers.insert(header::VARY, fixed("accept-encoding"));
    if !file.link.is_empty() {
        headers.insert(header::LINK, fixed(file.link));
    }
    if let Some(encoding) = file.encoding {
        headers.insert(header::CONTENT_ENCODING, fixed(encoding));
    }
    answer
}
