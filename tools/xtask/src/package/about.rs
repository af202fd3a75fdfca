//! What a package says of itself: version, architecture, time. All of it comes from the commit that it is built from.

use super::outside::output;
use crate::tidy::metadata;
use std::path::Path;
use std::process::Command;

/// Who cares for the package. The project has no mail host of its own.
pub const MAINTAINER: &str = "The Drystone maintainers <maintainers@drystone.invalid>";

/// A package's version, architecture and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// `0.1.0-1`, or of a commit that carries no tag `v0.1.0`: `0.1.0~git20261122122237.469bb9d-1`, which sorts before it.
    pub version: String,
    /// As dpkg calls it.
    pub architecture: String,
    /// The commit's time in seconds since 1970, or `SOURCE_DATE_EPOCH`.
    pub seconds: u64,
    /// The same as the changelog writes it.
    pub date: String,
}

impl About {
    /// Of the commit that is checked out at `root`.
    pub fn of(root: &Path) -> Result<About, String> {
        let git = |arguments: &[&str]| {
            output(Command::new("git").args(arguments).current_dir(root)).map(|text| text.trim().to_owned())
        };
        let commit = git(&["rev-parse", "--short=7", "HEAD"])?;
        let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(told) => told,
            Err(_) => git(&["log", "-1", "--format=%ct"])?,
        };
        let seconds = seconds.parse().map_err(|_| format!("`{seconds}` is no time in seconds"))?;
        let time = |form: &str| {
            let time = output(Command::new("date").args(["--utc", &format!("--date=@{seconds}"), form]))?;
            Ok::<String, String>(time.trim().to_owned())
        };
        let release = release(root)?;
        let tags = git(&["tag", "--points-at", "HEAD"])?;
        Ok(About {
            version: match tags.lines().any(|tag| tag == format!("v{release}")) {
                true => format!("{release}-1"),
                false => format!("{release}~git{}.{commit}-1", time("+%Y%m%d%H%M%S")?),
            },
            architecture: output(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned(),
            seconds,
            date: time("+%a, %d %b %Y %H:%M:%S +0000")?,
        })
    }

    /// The changelog of the package: one entry, for what is new is told by the repository.
    pub fn changelog(&self) -> String {
        format!(
            "drystone ({}) unstable; urgency=medium\n\n  * Built from the repository as it is; its history says what is new.\n\n \
             -- {MAINTAINER}  {}\n",
            self.version, self.date
        )
    }
}

/// The version of the program's crate.
fn release(root: &Path) -> Result<String, String> {
    let metadata = metadata(root)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let server = packages.iter().find(|package| package["name"] == "server");
    let version = server.and_then(|package| package["version"].as_str());
    version.map(str::to_owned).ok_or_else(|| "cargo metadata has no crate `server`".to_owned())
}
