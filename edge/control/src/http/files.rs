//! The files of the console's pages.

use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// What a browser is told where the program has no pages in it.
const WITHOUT_PAGES: &str = "This drystone was built without the console's pages: build it with `./x build`, which says what it \
     needs for that. The API is served here all the same.\n";

/// Answers a request that is not of the API.
pub(super) fn answer(request: &Request) -> Response {
    let words = |status: StatusCode, text: &'static str| {
        (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
    };
    match [Method::GET, Method::HEAD].contains(request.method()) {
        true => words(StatusCode::NOT_FOUND, WITHOUT_PAGES),
        false => words(StatusCode::METHOD_NOT_ALLOWED, "Pages are read, and nothing else.\n"),
    }
}
