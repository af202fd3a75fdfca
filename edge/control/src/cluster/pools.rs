//! The way to other hosts' APIs, and connections that are kept for what they are asked again and again.
//!
//! Who is there is checked when a connection is made. So all are dropped when it becomes known whose certificates count no more, and each after a
//! while, so that a renewed certificate is shown. The other side checks with every request who asks.

use super::view::View;
use crate::directory::shared::record::ClusterHost;
use crate::limits::POOL_AGE_MAX;
use crate::security::Security;
use api::{Client, Pool};
use base::HostId;
use failure::{Code, Failure};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What begins the address of an API that is encrypted.
const HTTPS: &str = "https://";

/// Where the API of a host answers others, without the scheme.
pub(super) fn api_of(host: &ClusterHost) -> Option<&str> {
    host.api.iter().find_map(|address| address.strip_prefix(HTTPS))
}

/// The way to another host's API.
///
/// # Errors
/// When it has none that can be used from here.
pub(super) fn client_of(host: &ClusterHost, security: Option<&Security>) -> Result<Client, Failure> {
    let silent = || Failure::new(Code::Unreachable, format!("host {} does not answer", host.record.name));
    match (security, api_of(host)) {
        (Some(security), Some(address)) => Ok(security.client(address.to_owned(), host.record.id)),
        _ => Client::parse(host.api.first().ok_or_else(silent)?, || Err(silent())),
    }
}

/// A pool for each host that was asked.
#[derive(Default)]
pub(super) struct Pools(Mutex<BTreeMap<HostId, Kept>>);

struct Kept {
    pool: Pool,
    /// Where, and whether encrypted.
    place: String,
    since: Instant,
}

impl Pools {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<HostId, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way to another host's API.
    ///
    /// # Errors
    /// When it has none that can be used from here.
    pub fn of(&self, host: &ClusterHost, security: Option<&Security>) -> Result<Pool, Failure> {
        let client = client_of(host, security)?;
        let place = client.to_string();
        let mut pools = self.lock();
        let kept = pools.get(&host.record.id);
        if let Some(kept) = kept.filter(|kept| kept.place == place && kept.since.elapsed() < POOL_AGE_MAX) {
            return Ok(kept.pool.clone());
        }
        let pool = Pool::new(client);
        pools.insert(host.record.id, Kept { pool: pool.clone(), place, since: Instant::now() });
        Ok(pool)
    }

    /// Forgets hosts that are not in the cluster any more.
    pub fn forget_others(&self, view: &View) {
        self.lock().retain(|host, _| view.hosts.contains_key(host));
    }

    /// Drops all connections that wait; what is under way ends.
    pub fn clear(&self) {
        self.lock().clear();
    }
}
