//! The web console's files, as they were built: by path, with what a server says of them.
//!
//! Relies on `build.rs`, which writes the table of them. Without the feature `embed` the table is empty, and nothing is
//! ever found, so that the server can say how to get the console. Must never know of HTTP more than the words that it
//! returns: no server, no requests, no rights.

/// A file in the form that a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// Its bytes, compressed as `encoding` says.
    pub bytes: &'static [u8],
    /// `Content-Type`.
    pub content_type: &'static str,
    /// `Content-Encoding`; nothing where it is not compressed.
    pub encoding: Option<&'static str>,
    /// `ETag`, with its quotes: tells this form of this content.
    pub etag: &'static str,
    /// `Cache-Control`.
    pub cache_control: &'static str,
    /// `Link`: what the browser needs besides, so that it asks for all at once; empty where there is nothing to say.
    pub link: &'static str,
}

/// One form of a file.
#[derive(Debug, Clone, Copy)]
struct Body {
    bytes: &'static [u8],
    etag: &'static str,
}

/// A file with all its forms; one that saves nothing is left out.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// From the root: `/index.html`.
    path: &'static str,
    plain: Body,
    brotli: Option<Body>,
    gzip: Option<Body>,
}

/// What a page needs besides the document.
#[derive(Debug, Clone, Copy)]
struct Page {
    /// `/disks/[name]`: a word in brackets stands for any one.
    path: &'static str,
    link: &'static str,
}

/// In the order of their paths.
static FILES: &[Entry] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The first that matches counts.
static PAGES: &[Page] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page that draws all others.
const INDEX: &str = "/index.html";
/// Below this are the program's own files, whose names no page has.
const PROGRAM: &str = "/_app/";
/// Below this a name tells the content.
const HASHED: &str = "/_app/immutable/";

/// A year, which is as long as caches keep anything.
const FOREVER: &str = "public, max-age=31536000, immutable";
/// Asked for again each time, and answered with nothing where the tag is the same.
const ASK_AGAIN: &str = "no-cache";
/// The page names the program's files: an old one would ask for what a newer release does not have.
const NEVER: &str = "no-store";

/// Whether the console was built in.
#[must_use]
pub fn is_embedded() -> bool {
    !FILES.is_empty()
}

/// The file that answers a request for `path` (without its query), in the best form that `accept_encoding`, the header
/// of the request, allows. A path without a file is a page of the console, and answered with the page that draws them
/// all. Nothing is found for the program's own files that are not there, as those of another release, and nothing at all
/// where the console is not built in.
#[must_use]
pub fn find(path: &str, accept_encoding: Option<&str>) -> Option<File> {
    find_in(FILES, PAGES, path, accept_encoding)
}

fn find_in(files: &[Entry], pages: &[Page], path: &str, accept_encoding: Option<&str>) -> Option<File> {
    let entry = match look_up(files, path) {
        Some(entry) => entry,
        None if path.starts_with(PROGRAM) => return None,
        None => look_up(files, INDEX)?,
    };
    let accepts = |coding: &str| accept_encoding.is_some_and(|header| accepts(header, coding));
    let (body, encoding) = match (entry.brotli, entry.gzip) {
        (Some(brotli), _) if accepts("br") => (brotli, Some("br")),
        (_, Some(gzip)) if accepts("gzip") => (gzip, Some("gzip")),
        _ => (entry.plain, None),
    };
    Some(File {
        bytes: body.bytes,
        content_type: content_type(entry.path),
        encoding,
        etag: body.etag,
        cache_control: cache_control(entry.path),
        link: if entry.path == INDEX { link_of(pages, path) } else { "" },
    })
}

fn link_of(pages: &[Page], path: &str) -> &'static str {
    let page = pages.iter().find(|page| is_page(page.path, path));
    page.map_or("", |page| page.link)
}

/// Whether a path is that of a page, word by word.
fn is_page(page: &str, path: &str) -> bool {
    let (mut words, mut given) = (page.split('/'), path.split('/'));
    loop {
        match (words.next(), given.next()) {
            (None, None) => return true,
            (Some(word), Some(given)) if word == given || (word.starts_with('[') && !given.is_empty()) => {}
            _ => return false,
        }
    }
}

fn look_up<'a>(files: &'a [Entry], path: &str) -> Option<&'a Entry> {
    let index = files.binary_search_by(|entry| entry.path.cmp(path)).ok()?;
    Some(&files[index])
}

/// Whether an `Accept-Encoding` allows a coding (RFC 9110 §12.5.3): named with a weight above zero, or by `*` where it is
/// not named.
fn accepts(header: &str, coding: &str) -> bool {
    let weight_of = |name: &str| {
        header.split(',').find_map(|item| {
            let mut parts = item.split(';').map(str::trim);
            if !parts.next()?.eq_ignore_ascii_case(name) {
                return None;
            }
            let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            // A weight that is no number is none: it is safer to send what everybody reads.
            Some(weight.map_or(1.0, |text| text.trim().parse::<f32>().unwrap_or(0.0)))
        })
    };
    weight_of(coding).or_else(|| weight_of("*")).is_some_and(|weight| weight > 0.0)
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, suffix)| suffix) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn cache_control(path: &str) -> &'static str {
    if path.starts_with(HASHED) {
        FOREVER
    } else if path == INDEX {
        NEVER
    } else {
        ASK_AGAIN
    }
}

#[cfg(test)]
mod tests;
