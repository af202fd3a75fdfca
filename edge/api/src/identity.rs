//! The certificate that this machine or a person shows: where it is kept, and how it is got with a token.

use crate::client::Client;
use crate::types::{JoinAnswer, JoinRequest, JoiningHost};
use failure::{Code, Failure};
use std::path::{Path, PathBuf};
use trust::{Anchors, Credentials, Identity, JoinToken, KeyPair, Store, Trust};

/// The folder of an identity in a data directory.
pub const FOLDER: &str = "identity";

/// The user's own data directory for Drystone.
pub fn user_data_dir() -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share"));
    data.or_else(home).map(|folder| folder.join("drystone"))
}

/// The folder of a person's identity, where nothing else is said.
pub fn usual_folder() -> Option<PathBuf> {
    user_data_dir().map(|folder| folder.join(FOLDER))
}

/// Where the files of a host's identity are.
pub fn store_of(data_dir: &Path) -> Store {
    Store::new(data_dir.join(FOLDER))
}

/// Writes a new host's or person's identity.
///
/// # Errors
/// When its parts do not belong together, or the system refuses.
pub fn save_new(
    store: &Store,
    key: KeyPair,
    certificate: &str,
    authorities: &str,
) -> Result<Identity, Failure> {
    let what = "take the certificate";
    let credentials = Credentials::new(key, certificate).map_err(|error| Failure::because(what, &error))?;
    let identity = credentials.identity().clone();
    let anchors =
        Anchors::from_pem(identity.cluster(), authorities).map_err(|error| Failure::because(what, &error))?;
    Trust::new(credentials.clone(), anchors.clone()).map_err(|error| Failure::because(what, &error))?;
    store.save_anchors(&anchors).map_err(|error| Failure::because(what, &error))?;
    store.save_credentials(&credentials).map_err(|error| Failure::because(what, &error))?;
    name_for_others(store.folder())?;
    Ok(identity)
}

/// The same files under the names by which QEMU, libvirt and libnbd look for them (those of GnuTLS's examples).
fn name_for_others(folder: &Path) -> Result<(), Failure> {
    let names = [
        ("ca-cert.pem", "authorities.pem"),
        ("client-cert.pem", "certificate.pem"),
        ("client-key.pem", "key.pem"),
    ];
    for (name, ours) in names {
        let link = folder.join(name);
        match std::os::unix::fs::symlink(ours, &link) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(Failure::failed(format!("make {}", link.display()), error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Gets a certificate for a token from one of the hosts that it names, and writes it. Gives also where the cluster's own etcd answers,
/// if it has one.
///
/// # Errors
/// When the token is not good, or nobody answers.
pub async fn redeem(
    token: &str,
    host: Option<JoiningHost>,
    store: &Store,
) -> Result<(Identity, JoinToken, Vec<String>), Failure> {
    let token: JoinToken =
        token.parse().map_err(|error: trust::TokenError| Failure::usage(error.to_string()))?;
    let key = KeyPair::generate().map_err(|error| Failure::because("make a key", &error))?;
    let request = JoinRequest {
        token: token.id.to_string(),
        secret: token.secret.to_text(),
        request: key.signing_request().map_err(|error| Failure::because("make a key", &error))?,
        host,
    };
    let mut last = Failure::new(Code::Unreachable, "the token names no host");
    for endpoint in &token.endpoints {
        let client = Client::Joining { address: endpoint.to_string(), authority: token.authority };
        match client.post::<JoinAnswer>("/api/v1/join", &request).await {
            Ok(answer) => {
                let identity = save_new(store, key, &answer.certificate, &answer.authorities)?;
                return Ok((identity, token, answer.etcd));
            }
            // Another one may answer, or have the authority's key.
            Err(failure) if matches!(failure.code, Code::Unreachable | Code::Refused) => last = failure,
            Err(failure) => return Err(failure),
        }
    }
    Err(last)
}
