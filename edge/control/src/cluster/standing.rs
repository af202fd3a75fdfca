//! What a host has of its cluster by its configuration: the directory, its certificate, where others reach it. All of it is another
//! once a cluster of one becomes one of several ([`super::grow`]); nothing else ever changes it.

use super::state::{Cluster, Standing};
use crate::config::Config;
use crate::directory::shared::{Copied, Shared};
use crate::security::Security;
use failure::Failure;
use std::sync::{Arc, PoisonError};

impl Cluster {
    pub(super) fn standing(&self) -> Arc<Standing> {
        Arc::clone(&self.standing.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn stand(&self, standing: Standing) {
        *self.standing.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(standing);
    }

    /// The host's configuration.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.standing().config)
    }

    /// The directory.
    pub(super) fn directory(&self) -> Shared {
        self.standing().directory.clone()
    }

    /// What this host keeps of the directory, where it stands in etcd.
    pub(super) fn copy(&self) -> Option<Arc<Copied>> {
        self.standing().copy.clone()
    }

    /// This host's certificate, if hosts have some.
    pub fn certified(&self) -> Option<Arc<Security>> {
        self.standing().security.clone()
    }

    /// This host's certificate.
    ///
    /// # Errors
    /// In a cluster whose hosts have none.
    pub fn security(&self) -> Result<Arc<Security>, Failure> {
        self.certified().ok_or_else(|| {
            Failure::refused("the hosts of this cluster have no certificates: they are all on one machine")
                .hint("a cluster that is made by `drystone cluster init` has them")
        })
    }
}
