//! `support-bundle`: one file with all that supporters ask for, of one host or of all.
//!
//! A `.tar.zst` that any tar with zstd unpacks. Its last file, `MANIFEST`, has the SHA-256 of all others as `sha256sum --check`
//! reads them. What must not leave a host is taken out by the host.

use super::text::now_seconds;
use crate::shell::Shell;
use api::client::escaped;
use api::types::{HostSummary, HostView, SupportView};
use clap::Args;
use failure::{Code, Failure};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The folder in the bundle.
const FOLDER: &str = "drystone-support";
/// How hard it is compressed: texts become a tenth, in no time to speak of.
const LEVEL: i32 = 9;

/// Options of `support-bundle`.
#[derive(Debug, Args)]
pub struct SupportOptions {
    /// File to create; it must not exist [default: drystone-support-HOST-SECONDS.tar.zst].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Include all hosts that answer, not only the one that is asked.
    #[arg(long)]
    cluster: bool,
}

/// What stands in the bundle beside the folders of hosts, and what is shown at the end.
#[derive(Debug, Serialize)]
struct About {
    /// The file.
    file: PathBuf,
    /// The version of this program.
    version: &'static str,
    /// When it was made, in seconds since 1970.
    time: u64,
    /// The hosts that are in it.
    hosts: Vec<String>,
    /// Hosts that did not answer, and why.
    silent: Vec<Silent>,
    /// What hosts left out, and why.
    left_out: Vec<String>,
}

/// A host that did not answer.
#[derive(Debug, Serialize)]
struct Silent {
    host: String,
    why: String,
}

/// Makes one.
///
/// # Errors
/// When nobody answers, or the file cannot be written.
pub async fn run(shell: &mut Shell<'_>, options: SupportOptions) -> Result<(), Failure> {
    let host: HostView = shell.client.get("/api/v1/host").await?;
    let time = now_seconds();
    let file = options.out.unwrap_or_else(|| format!("drystone-support-{}-{time}.tar.zst", host.name).into());
    let failed = |error: io::Error| Failure::failed(format!("write {}", file.display()), error);
    // Not before a host has answered: a bundle with nothing in it is no bundle.
    let mut bundle: Option<Bundle> = None;
    let mut refused = None;
    let version = api::program::RELEASE;
    let mut about = About {
        file: file.clone(),
        version,
        time,
        hosts: Vec::new(),
        silent: Vec::new(),
        left_out: Vec::new(),
    };
    let names = match options.cluster && !host.hosts.is_empty() {
        true => host.hosts.iter().map(|one: &HostSummary| one.name.clone()).collect(),
        false => vec![host.name.clone()],
    };
    for name in names {
        eprintln!("asking host {name}");
        let path = format!("/api/v1/support/hosts/{}", escaped(&name));
        match shell.client.get::<SupportView>(&path).await {
            Ok(view) => {
                let bundle = match &mut bundle {
                    Some(bundle) => bundle,
                    None => bundle.insert(Bundle::create(&file).map_err(failed)?),
                };
                bundle.add_host(&view).map_err(failed)?;
                about.left_out.extend(view.left_out.iter().map(|what| format!("host {name}: {what}")));
                about.hosts.push(name);
            }
            Err(failure) => {
                about.silent.push(Silent { host: name, why: failure.error.clone() });
                refused.get_or_insert(failure);
            }
        }
    }
    let Some(mut bundle) = bundle else {
        let why = refused.unwrap_or_else(|| Failure::new(Code::Unreachable, "no host was asked"));
        return Err(Failure { error: format!("no support bundle was written: {}", why.error), ..why });
    };
    let text = serde_json::to_string_pretty(&about).map_err(|error| Failure::failed("write JSON", error))?;
    bundle.add("bundle.json", text.as_bytes()).map_err(failed)?;
    bundle.finish().map_err(failed)?;
    shell.show(&about, about_text)
}

fn about_text(about: &About) -> String {
    let mut lines = vec![format!("{} has host {}", about.file.display(), about.hosts.join(", "))];
    lines.extend(about.silent.iter().map(|one| format!("missing: host {}: {}", one.host, one.why)));
    lines.extend(about.left_out.iter().map(|what| format!("left out: {what}")));
    lines.push(
        "private keys, join tokens and passwords were taken out; look through it before you send it"
            .to_owned(),
    );
    lines.join("\n")
}

/// The file as it is written.
struct Bundle {
    archive: tar::Builder<zstd::Encoder<'static, File>>,
    sums: String,
}

impl Bundle {
    fn create(path: &Path) -> io::Result<Bundle> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        Ok(Bundle { archive: tar::Builder::new(zstd::Encoder::new(file, LEVEL)?), sums: String::new() })
    }

    fn add_host(&mut self, view: &SupportView) -> io::Result<()> {
        let folder = plain(&view.host);
        for file in &view.files {
            // A host names its files; none gets out of its folder.
            let path: Vec<String> = file.path.split('/').map(plain).collect();
            self.add(&format!("{folder}/{}", path.join("/")), file.text.as_bytes())?;
        }
        Ok(())
    }

    fn add(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let sum: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        self.sums += &format!("{sum}  {path}\n");
        self.append(path, bytes)
    }

    fn append(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(now_seconds());
        self.archive.append_data(&mut header, format!("{FOLDER}/{path}"), bytes)
    }

    fn finish(mut self) -> io::Result<()> {
        let sums = std::mem::take(&mut self.sums);
        self.append("MANIFEST", sums.as_bytes())?;
        let mut file = self.archive.into_inner()?.finish()?;
        file.flush()?;
        file.sync_all()
    }
}

/// A name that is one file's or folder's, and no way out.
fn plain(name: &str) -> String {
    let letter = |of: char| if of.is_ascii_alphanumeric() || "._-".contains(of) { of } else { '-' };
    let plain: String = name.chars().map(letter).collect();
    if plain.trim_matches('.').is_empty() { "-".to_owned() } else { plain }
}
