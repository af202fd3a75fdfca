//! Who is there, by leases, and a clock that all go by.
//!
//! A member keeps a record of itself alive by a lease: renewing it writes nothing, and etcd removes the record when the member
//! is silent. Only when what a member says of itself has changed is that written. The time by which they count is in [`Clock`].
//! Must never take the silence of etcd for that of a member.

use super::clock::Clock;
use super::endpoints::Endpoints;
use super::{Error, after_all};
use etcd_client::{Client, Compare, CompareOp, GetOptions, GetResponse, PutOptions, Txn, TxnOp};
use std::collections::BTreeMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// How long a member is there after its last sign of life.
const LEASE_SECONDS: i64 = 5;

/// Who is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attendance {
    /// Now, by the clock of all members: nanoseconds since 1970.
    pub now_ns: u64,
    /// Since when this process has known who is there.
    pub since_ns: u64,
    /// Whether it is known when the time was written that this process counts on from. At first it is not: the process is late by up
    /// to the period of the writes.
    pub is_certain: bool,
    /// Each member that was ever seen, when that was the last time, and what it said.
    pub members: Vec<(String, u64, Vec<u8>)>,
}

/// What is known from one sign of life to the next.
#[derive(Default)]
pub(crate) struct Presence {
    lease: Option<i64>,
    told: Option<Vec<u8>>,
    since_ns: Option<u64>,
    seen: BTreeMap<String, (u64, Vec<u8>)>,
    clock: Clock,
}

impl Presence {
    pub(crate) async fn beat(
        &mut self,
        endpoints: &Endpoints,
        prefix: &str,
        me: &str,
        value: &[u8],
    ) -> Result<Attendance, Error> {
        // Beside the records and not among them: their watch must not wake for it.
        let below = format!("{}.present/", prefix.trim_end_matches('/'));
        self.renew(endpoints, &format!("{below}members/{me}"), value).await?;
        let clock_key = format!("{below}clock");
        let end = after_all(&below);
        let read = |mut client: Client| {
            let (from, options) = (below.clone(), GetOptions::new().with_range(end.clone()));
            async move { client.get(from, Some(options)).await }
        };
        let found = endpoints.ask(read).await?;
        self.read_clock(&found, &clock_key, &format!("{below}members/"), me);
        self.write_clock(endpoints, &clock_key).await;
        let now_ns = self.clock.now_ns(machine_ns(), Instant::now());
        self.note(&found, &format!("{below}members/"), now_ns);
        Ok(Attendance {
            now_ns,
            since_ns: *self.since_ns.get_or_insert(now_ns),
            is_certain: self.clock.is_certain(),
            members: (self.seen.iter())
                .map(|(member, (at, value))| (member.clone(), *at, value.clone()))
                .collect(),
        })
    }

    /// Keeps this member's record alive; grants a new lease when there is none any more.
    async fn renew(&mut self, endpoints: &Endpoints, key: &str, value: &[u8]) -> Result<(), Error> {
        if let Some(lease) = self.lease {
            let left = endpoints.ask(|client| keep_alive(client, lease)).await;
            if !matches!(left, Ok(left) if left > 0) {
                self.lease = None;
                left?;
            }
        }
        let lease = match self.lease {
            Some(lease) => lease,
            None => {
                let grant = |mut client: Client| async move { client.lease_grant(LEASE_SECONDS, None).await };
                let granted = endpoints.ask(grant).await?;
                self.lease = Some(granted.id());
                // What was told hangs on a lease that ends.
                self.told = None;
                granted.id()
            }
        };
        if self.told.as_deref() != Some(value) {
            let put = |mut client: Client| {
                let (key, value) = (key.to_owned(), value.to_vec());
                async move { client.put(key, value, Some(PutOptions::new().with_lease(lease))).await }
            };
            endpoints.ask(put).await.inspect_err(|_| self.lease = None)?;
            self.told = Some(value.to_vec());
        }
        Ok(())
    }

    /// Takes over what the record of the clock says.
    fn read_clock(&mut self, found: &GetResponse, key: &str, members: &str, me: &str) {
        let record = found.kvs().iter().find(|record| record.key() == key.as_bytes());
        let Some(record) = record else { return };
        let written = std::str::from_utf8(record.value()).ok().and_then(|text| text.parse().ok());
        let Some(written_ns) = written else { return };
        let is_alone = !(found.kvs().iter())
            .filter_map(|record| std::str::from_utf8(record.key()).ok()?.strip_prefix(members))
            .any(|member| member != me);
        self.clock.read(record.mod_revision(), written_ns, is_alone, machine_ns(), Instant::now());
    }

    /// Writes the time on if that is due. Whoever else does so at the same time wins or loses: both are as good.
    async fn write_clock(&mut self, endpoints: &Endpoints, key: &str) {
        let began = Instant::now();
        let Some((version, at_ns)) = self.clock.due(machine_ns(), began) else { return };
        let txn = Txn::new()
            .when([Compare::mod_revision(key, CompareOp::Equal, version)])
            .and_then([TxnOp::put(key, at_ns.to_string(), None)]);
        // Without an answer it is read again at the next beat.
        let Ok(answer) = endpoints.ask(|client| super::run(client, txn.clone())).await else { return };
        if let Some(header) = answer.header().filter(|_| answer.succeeded()) {
            self.clock.written(header.revision(), at_ns, began);
        }
    }

    fn note(&mut self, found: &GetResponse, members: &str, now_ns: u64) {
        for record in found.kvs() {
            let key = std::str::from_utf8(record.key()).ok();
            if let Some(member) = key.and_then(|key| key.strip_prefix(members)) {
                self.seen.insert(member.to_owned(), (now_ns, record.value().to_vec()));
            }
        }
    }
}

/// Seconds that a lease has left after it was renewed; zero: it is gone.
async fn keep_alive(mut client: Client, lease: i64) -> Result<i64, etcd_client::Error> {
    // The client's own word for a lease that is gone already.
    let (mut keeper, mut answers) = match client.lease_keep_alive(lease).await {
        Err(etcd_client::Error::LeaseKeepAliveError(_)) => return Ok(0),
        other => other?,
    };
    keeper.keep_alive().await?;
    Ok(answers.message().await?.map_or(0, |answer| answer.ttl()))
}

/// Nanoseconds since 1970 by this machine's clock.
fn machine_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    u64::try_from(now).unwrap_or(u64::MAX)
}
