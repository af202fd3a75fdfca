//! Writes the tables of the console's files and pages: what `src/lib.rs` includes. Without the feature `embed` they are empty.
//!
//! Compression is done here, once, so that no host compresses the same bytes again at each request.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DRYSTONE_CONSOLE_DIST");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let (files, pages) = tables(&out)?;
    fs::write(out.join("files.rs"), format!("&[\n{files}]\n"))?;
    fs::write(out.join("pages.rs"), format!("&[\n{pages}]\n"))?;
    Ok(())
}

#[cfg(not(feature = "embed"))]
fn tables(_out: &std::path::Path) -> Result<(String, String), Box<dyn Error>> {
    Ok((String::new(), String::new()))
}

#[cfg(feature = "embed")]
use embed::tables;

#[cfg(feature = "embed")]
mod embed {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use sha2::{Digest, Sha256};
    use std::env;
    use std::error::Error;
    use std::fmt::Write as _;
    use std::fs;
    use std::io::Write;
    use std::path::{Path, PathBuf};

    /// The best there is: it takes seconds for all files, and they are sent more often than built.
    const BROTLI_QUALITY: u32 = 11;
    /// For programs that are built for tests: the best takes a minute where the compressor is not optimised, either.
    const BROTLI_QUALITY_OF_TESTS: u32 = 2;
    /// The largest window that every browser takes.
    const BROTLI_WINDOW: u32 = 22;
    /// Bytes of the hash that stand in an `ETag`: as many as nobody meets twice by chance.
    const HASH_BYTES: usize = 12;

    /// What the build of the pages says of them, for this script alone: a line a page, its path and the files that it needs.
    const PAGES: &str = "pages.txt";
    /// What every page asks for first; those that are there before anybody has logged in do not.
    const WHO_LOOKS: &str = "</api/v1/me>; rel=preload; as=fetch; crossorigin";
    const BEFORE_LOG_IN: [&str; 2] = ["/in", "/login"];

    /// One line for each file, in the order of their paths, and one for each page.
    pub fn tables(out: &Path) -> Result<(String, String), Box<dyn Error>> {
        let root = match env::var_os("DRYSTONE_CONSOLE_DIST") {
            Some(path) => PathBuf::from(path),
            None => PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo sets CARGO_MANIFEST_DIR")?)
                .join("../../console/build"),
        };
        println!("cargo::rerun-if-changed={}", root.display());
        if !root.join("index.html").is_file() {
            let root = root.display();
            return Err(format!(
                "there is no built console in {root}: run `npm ci --ignore-scripts && npm run build` in console/, \
                 or set DRYSTONE_CONSOLE_DIST to a folder that has one"
            )
            .into());
        }
        let mut files = Vec::new();
        collect(&root, &mut files)?;
        files.retain(|file| *file != root.join(PAGES));
        files.sort();
        let mut table = String::new();
        for (number, file) in files.iter().enumerate() {
            let path = file.strip_prefix(&root)?.to_str().ok_or("a name of a file is not UTF-8")?;
            entry(&mut table, out, number, path, file)?;
        }
        let document = fs::read_to_string(root.join("index.html"))?;
        let pages = fs::read_to_string(root.join(PAGES))
            .map_err(|error| format!("{PAGES} of the built console: {error}"))?;
        Ok((table, pages_table(&pages, &document)?))
    }

    /// One line for each page: those that name no thing first, since a name is matched by any word. What the document itself names
    /// is left out.
    fn pages_table(text: &str, document: &str) -> Result<String, Box<dyn Error>> {
        let mut pages: Vec<&str> = text.lines().collect();
        pages.sort_by_key(|page| (page.contains('['), *page));
        let mut table = String::new();
        for page in pages {
            let mut words = page.split_whitespace();
            let path = words.next().ok_or("a page without a path")?;
            let files = words.map(|file| format!("/{file}")).filter(|file| !document.contains(file.as_str()));
            let mut links: Vec<String> = files
                .map(|file| match file.ends_with(".css") {
                    true => format!("<{file}>; rel=preload; as=style; crossorigin"),
                    false => format!("<{file}>; rel=modulepreload"),
                })
                .collect();
            if !BEFORE_LOG_IN.contains(&path) {
                links.insert(0, WHO_LOOKS.to_owned());
            }
            writeln!(table, "    Page {{ path: {path:?}, link: {:?} }},", links.join(", "))?;
        }
        Ok(table)
    }

    fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                collect(&path, files)?;
            } else {
                files.push(path);
            }
        }
        Ok(())
    }

    fn entry(
        table: &mut String,
        out: &Path,
        number: usize,
        path: &str,
        file: &Path,
    ) -> Result<(), Box<dyn Error>> {
        let bytes = fs::read(file)?;
        let mut hash = String::new();
        for byte in &Sha256::digest(&bytes)[..HASH_BYTES] {
            write!(hash, "{byte:02x}")?;
        }
        let brotli = variant(out, number, "br", &bytes, brotli_of(&bytes)?)?;
        let gzip = variant(out, number, "gz", &bytes, gzip_of(&bytes)?)?;
        let plain = fs::canonicalize(file)?;
        writeln!(
            table,
            "    Entry {{ path: {path:?}, plain: Body {{ bytes: include_bytes!({plain:?}), etag: {plain_tag:?} }}, \
             brotli: {brotli}, gzip: {gzip} }},",
            path = format!("/{path}"),
            plain_tag = format!("\"{hash}\""),
            brotli = body(brotli, &hash, "br"),
            gzip = body(gzip, &hash, "gz"),
        )?;
        Ok(())
    }

    /// Writes a compressed form; nothing where it saves nothing.
    fn variant(
        out: &Path,
        number: usize,
        suffix: &str,
        bytes: &[u8],
        compressed: Vec<u8>,
    ) -> Result<Option<PathBuf>, Box<dyn Error>> {
        if compressed.len() >= bytes.len() {
            return Ok(None);
        }
        let path = out.join(format!("{number}.{suffix}"));
        fs::write(&path, compressed)?;
        Ok(Some(path))
    }

    /// Each form has a tag of its own: the bytes differ.
    fn body(path: Option<PathBuf>, hash: &str, suffix: &str) -> String {
        path.map_or_else(
            || "None".to_owned(),
            |path| {
                let tag = format!("\"{hash}-{suffix}\"");
                format!("Some(Body {{ bytes: include_bytes!({path:?}), etag: {tag:?} }})")
            },
        )
    }

    fn brotli_of(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
        let mut compressed = Vec::new();
        let quality = if is_release() { BROTLI_QUALITY } else { BROTLI_QUALITY_OF_TESTS };
        let mut encoder = brotli::CompressorWriter::new(&mut compressed, 4096, quality, BROTLI_WINDOW);
        encoder.write_all(bytes)?;
        encoder.flush()?;
        drop(encoder);
        Ok(compressed)
    }

    fn gzip_of(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
        let quality = if is_release() { Compression::best() } else { Compression::fast() };
        let mut encoder = GzEncoder::new(Vec::new(), quality);
        encoder.write_all(bytes)?;
        Ok(encoder.finish()?)
    }

    fn is_release() -> bool {
        env::var("PROFILE").is_ok_and(|profile| profile == "release")
    }
}
