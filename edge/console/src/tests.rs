//! The choice of file and form, over a small table; and over the real one where it is built in.

use super::*;

const SCRIPT: &str = "/_app/immutable/start.1a2b.js";

static SMALL: &[Entry] = &[
    Entry {
        path: SCRIPT,
        plain: Body { bytes: b"script", etag: "\"s\"" },
        brotli: Some(Body { bytes: b"br", etag: "\"s-br\"" }),
        gzip: Some(Body { bytes: b"gz", etag: "\"s-gz\"" }),
    },
    Entry { path: "/index.html", plain: Body { bytes: b"page", etag: "\"p\"" }, brotli: None, gzip: None },
    Entry { path: "/mark.svg", plain: Body { bytes: b"mark", etag: "\"m\"" }, brotli: None, gzip: None },
];

static SMALL_PAGES: &[Page] = &[
    Page { path: "/", link: "overview" },
    Page { path: "/disks", link: "disks" },
    Page { path: "/disks/new", link: "new" },
    Page { path: "/disks/[name]", link: "disk" },
];

#[track_caller]
fn check(path: &str, accept_encoding: Option<&str>, bytes: &[u8], encoding: Option<&str>) {
    let file = find_in(SMALL, SMALL_PAGES, path, accept_encoding).expect("it is found");
    assert_eq!((file.bytes, file.encoding), (bytes, encoding), "{path} {accept_encoding:?}");
}

#[test]
fn a_file_is_sent_in_the_best_form_that_the_client_takes() {
    check(SCRIPT, None, b"script", None);
    check(SCRIPT, Some(""), b"script", None);
    check(SCRIPT, Some("gzip, deflate, br, zstd"), b"br", Some("br"));
    check(SCRIPT, Some("gzip"), b"gz", Some("gzip"));
    check(SCRIPT, Some("GZIP;q=0.5"), b"gz", Some("gzip"));
    check(SCRIPT, Some("br;q=0, gzip;q=1.0"), b"gz", Some("gzip"));
    check(SCRIPT, Some("br; q=0, gzip; q=0"), b"script", None);
    check(SCRIPT, Some("*"), b"br", Some("br"));
    check(SCRIPT, Some("*, br;q=0"), b"gz", Some("gzip"));
    check(SCRIPT, Some("br;q=much"), b"script", None);
    check("/mark.svg", Some("br, gzip"), b"mark", None);
}

#[test]
fn a_path_without_a_file_is_a_page() {
    for path in ["/", "/disks/web", "/disks/a.b", "/in", "", "/../etc/passwd"] {
        check(path, None, b"page", None);
    }
}

#[test]
fn the_document_names_what_its_page_needs() {
    let link = |path| find_in(SMALL, SMALL_PAGES, path, None).expect("it is found").link;
    let asked =
        ["/", "/disks", "/disks/new", "/disks/web", "/disks/", "/disks/web/x", "/nothing", "/mark.svg", ""];
    assert_eq!(asked.map(link), ["overview", "disks", "new", "disk", "", "", "", "", ""]);
}

#[test]
fn a_file_of_another_release_is_not_there() {
    assert_eq!(find_in(SMALL, SMALL_PAGES, "/_app/immutable/start.0000.js", None), None);
    assert_eq!(find_in(SMALL, SMALL_PAGES, "/_app/version.json", None), None);
}

#[test]
fn nothing_is_there_without_the_console() {
    assert_eq!(find_in(&[], &[], "/", None), None);
    assert_eq!(find_in(&[], &[], SCRIPT, Some("br")), None);
}

#[test]
fn only_names_that_tell_the_content_are_kept_and_the_page_never_is() {
    let cached = |path| find_in(SMALL, SMALL_PAGES, path, None).expect("it is found").cache_control;
    assert_eq!(cached(SCRIPT), FOREVER);
    assert_eq!(cached("/mark.svg"), ASK_AGAIN);
    assert_eq!(cached("/index.html"), NEVER);
    assert_eq!(cached("/disks"), NEVER);
}

#[test]
fn each_form_has_a_tag_of_its_own() {
    let tag = |accept| find_in(SMALL, SMALL_PAGES, SCRIPT, accept).expect("it is found").etag;
    assert_eq!([tag(None), tag(Some("br")), tag(Some("gzip"))], ["\"s\"", "\"s-br\"", "\"s-gz\""]);
}

#[test]
fn the_table_is_in_order_and_whole() {
    assert!(FILES.is_sorted_by(|a, b| a.path < b.path));
    assert_eq!(is_embedded(), cfg!(feature = "embed"));
    let page = find("/disks/web", None);
    assert_eq!(page.is_some(), is_embedded());
    let Some(page) = page else { return };
    assert_eq!(page.content_type, "text/html; charset=utf-8");
    // The servers' policy refuses whatever stands in the page itself (docs/design/0055-the-console.md).
    let text = std::str::from_utf8(page.bytes).expect("it is text");
    assert!(!text.contains("<script>") && !text.contains("<style") && !text.contains(" style="));
    // What a page needs is there, or the browser would ask for nothing.
    for page in PAGES {
        for part in page.link.split(", ").filter(|part| !part.is_empty()) {
            let file =
                part.strip_prefix('<').and_then(|part| part.split_once('>')).expect("as RFC 8288 says").0;
            assert!(file.starts_with("/api/") || look_up(FILES, file).is_some(), "{}: {file}", page.path);
        }
    }
    assert!(
        page.link.contains("/api/v1/me") && !find("/login", None).expect("a page").link.contains("/api/")
    );
    for entry in FILES {
        assert_ne!(content_type(entry.path), "application/octet-stream", "{}", entry.path);
    }
}
