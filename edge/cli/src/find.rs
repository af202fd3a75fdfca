//! Which host is asked, and what is shown to it.

use crate::members::known_api;
use api::Client;
use api::identity::{self, user_data_dir};
use failure::{Code, Failure};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The API that is named, or else one whose socket stands at a usual place.
pub(crate) fn find_api(named: Option<&str>, identity: Option<&Path>) -> Result<Client, Failure> {
    // A variable that is set to nothing says nothing.
    let named = named.filter(|named| !named.is_empty());
    let identity = identity.filter(|folder| !folder.as_os_str().is_empty());
    if let Some(named) = named {
        return Client::parse(named, || identity_in(identity));
    }
    let places = usual_data_dirs();
    let sockets = places.iter().map(|folder| folder.join("api.sock"));
    let found = sockets.clone().find(|path| path.exists());
    let folder = identity.map(Path::to_owned).or_else(identity::usual_folder);
    if let Some(known) = folder.filter(|_| found.is_none()).and_then(|folder| known_api(&folder)) {
        return Client::parse(&known, || identity_in(identity));
    }
    let first = sockets.into_iter().next();
    found.or(first).map(Client::Unix).ok_or_else(|| Failure::new(Code::Unreachable, "no host is known"))
}

/// What is shown to hosts and believed of them: from the folder that is named, or the usual one.
fn identity_in(named: Option<&Path>) -> Result<Arc<trust::Trust>, Failure> {
    let folder = named.map(Path::to_owned).or_else(identity::usual_folder);
    let folder =
        folder.ok_or_else(|| Failure::usage("no folder of an identity is known: name it with --identity"))?;
    trust::Store::new(folder).load().map_err(|error| {
        Failure::because("read your identity", &error).hint(
            "have an admin make a token for you (`drystone person token NAME`), then `drystone login TOKEN`",
        )
    })
}

/// Where hosts usually have their data directory.
fn usual_data_dirs() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from("/var/lib/drystone")];
    if let Some(user) = user_data_dir() {
        places.push(user.clone());
        places.push(user.join("demo"));
    }
    places
}
