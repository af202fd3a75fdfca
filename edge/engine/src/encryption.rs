//! Whether clients may or must encrypt, by where they come from.

use crate::error::EngineError;
use crate::listener::Origin;
use crate::settings::Settings;
use frontends::tls::{TlsIdentity, TlsPolicy};
use std::path::Path;
use std::sync::Arc;

/// The policy for each origin.
pub(crate) struct Encryption {
    loopback: TlsPolicy,
    elsewhere: TlsPolicy,
}

impl Encryption {
    /// With the files that the settings name, else with the certificates of the cluster, if there are any.
    ///
    /// # Errors
    /// When a file cannot be read or used.
    pub(crate) fn load(settings: &Settings) -> Result<Encryption, EngineError> {
        let off = Encryption { loopback: TlsPolicy::Off, elsewhere: TlsPolicy::Off };
        let Some(files) = &settings.tls else {
            let identity = settings.cluster_tls.as_ref().map(|config| TlsIdentity::new(Arc::clone(config)));
            // Only clients from elsewhere must show a certificate of the cluster.
            return Ok(identity.map_or(off, |identity| Encryption {
                loopback: TlsPolicy::Allowed(identity.clone()),
                elsewhere: TlsPolicy::Required(identity),
            }));
        };
        let authorities = files.client_authorities.as_deref().map(read).transpose()?;
        let identity =
            TlsIdentity::from_pem(&read(&files.certificate)?, &read(&files.key)?, authorities.as_deref())
                .map_err(|error| EngineError::Refused(format!("TLS: {error}")))?;
        let policy = if files.required { TlsPolicy::Required } else { TlsPolicy::Allowed };
        Ok(Encryption { loopback: policy(identity.clone()), elsewhere: policy(identity) })
    }

    /// The policy for clients from there.
    pub(crate) fn of(&self, origin: Origin) -> &TlsPolicy {
        match origin {
            // The file system says who reaches a unix socket: nothing is encrypted there.
            Origin::Unix => &TlsPolicy::Off,
            Origin::Loopback => &self.loopback,
            Origin::Elsewhere => &self.elsewhere,
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, EngineError> {
    std::fs::read(path).map_err(|error| EngineError::Refused(format!("read {}: {error}", path.display())))
}
