//! Records in etcd: read, changed all or none, watched, and who is there.
//!
//! One key of etcd for each record, below a prefix; a record's version is the revision of etcd that changed it last. What
//! a record says is its writers' business, but for one that others can be bound to ([`Etcd::bind`]): where it is not as it
//! was, somebody else's records stand, or none, and nothing is read or changed. Works with every etcd from 3.4 on: nothing
//! newer is asked for. Must never make a change twice: one is asked for again only where its comparisons fail once it has happened,
//! and what cannot be found out is an [`Error`] of [`Etcd::commit`].

mod clock;
mod endpoints;
mod members;
mod presence;
pub mod process;
#[cfg(feature = "testing")]
pub mod testing;
mod watch;

pub use members::Member;
pub use presence::Attendance;

use endpoints::Endpoints;
use etcd_client::{
    Client, Compare, CompareOp, GetOptions, GetResponse, KeyValue, ResponseHeader, Txn, TxnOp, TxnOpResponse,
    TxnResponse,
};
use presence::Presence;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use watch::Watch;

/// How long one member of etcd may take to answer before the next one is asked.
const MEMBER_WAIT: Duration = Duration::from_secs(1);
/// Between two tries of a change that got no answer.
const COMMIT_PAUSE: Duration = Duration::from_millis(100);
/// Records read by one request; 10,000 disks of about 1 KiB would not fit into one answer of gRPC (4 MiB).
const PAGE_RECORDS: i64 = 1_000;
/// Changes of one transaction: `--max-txn-ops` of etcd is 128, and counts what is read on a conflict too.
pub const CHANGES_MAX: usize = 100;

/// How etcd is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// `http://10.0.0.1:2379` or `https://…`, one of each member.
    pub endpoints: Vec<String>,
    /// What stands before every key; ends with a slash.
    pub prefix: String,
    /// Files for `https` endpoints.
    pub tls: Option<Tls>,
    /// Name and password, where etcd asks for them.
    pub user: Option<(String, String)>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(|(name, _)| name);
        write!(f, "Options({:?}, {:?}, {:?}, user {user:?})", self.endpoints, self.prefix, self.tls)
    }
}

/// PEM files for TLS with etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The authorities that etcd's certificates come of.
    pub authorities: PathBuf,
    /// This client's certificate and key, where etcd asks for one.
    pub own: Option<(PathBuf, PathBuf)>,
    /// The name that etcd's certificates have; nothing: the host of the endpoint.
    pub name: Option<String>,
}

/// Why etcd was of no help.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No member answered: each with why.
    #[error("no member of etcd answers ({0})")]
    Silent(String),
    /// A member answered, and refuses.
    #[error("etcd refuses: {0}")]
    Refused(String),
    /// A file for TLS cannot be read.
    #[error("read {0}: {1}")]
    File(PathBuf, std::io::Error),
    /// More than one transaction of etcd takes.
    #[error("{0} records in one change; {CHANGES_MAX} are possible")]
    TooMany(usize),
    /// The record that all others are bound to is not there, or says something else. Nothing was read or changed.
    #[error("etcd holds another cluster's records there, or none: `{0}` is not what it was")]
    Foreign(String),
    /// etcd has gone back: it was made anew, or restored from a snapshot that lacks changes. Nothing was read; a change may have
    /// happened all the same.
    #[error("etcd was at revision {seen} before, and has lost changes since; it is at {found}")]
    Older {
        /// The revision that it was seen at.
        seen: u64,
        /// The one that it is at.
        found: u64,
    },
    /// An answer that makes no sense.
    #[error("etcd's answer makes no sense: {0}")]
    Odd(&'static str),
}

/// A record as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its key, without the prefix.
    pub key: String,
    /// The revision that changed it last; greater than zero.
    pub version: u64,
    /// What it says.
    pub value: Vec<u8>,
}

/// One record that a transaction sets or removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its key, without the prefix.
    pub key: String,
    /// The version that it must have; zero: it must not be there.
    pub expected: u64,
    /// What it shall say; nothing: it goes.
    pub value: Option<Vec<u8>>,
}

/// How a transaction ended that etcd answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// All is as asked; what was set has this version.
    Done {
        /// It.
        version: u64,
    },
    /// Nothing was changed. The records of the transaction that are there.
    Conflict {
        /// Them.
        current: Vec<Record>,
    },
}

/// What changed since a revision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct News {
    /// From where to go on.
    pub revision: u64,
    /// Whether these are all records there are, because what went before is not known any more.
    pub is_complete: bool,
    /// Records as they are now.
    pub records: Vec<Record>,
    /// Keys of records that are gone.
    pub gone: Vec<String>,
}

/// A way to the records. Connects when first used, and again whenever that is needed.
pub struct Etcd {
    prefix: String,
    endpoints: Endpoints,
    bond: RwLock<Option<Bond>>,
    /// The greatest revision that an answer had.
    seen: AtomicU64,
    is_in_doubt: AtomicBool,
    watch: Mutex<Watch>,
    presence: Mutex<Presence>,
}

/// What must be as it was.
#[derive(Debug, Clone)]
struct Bond {
    /// Its key, with the prefix.
    key: String,
    value: Vec<u8>,
}

impl Bond {
    fn compare(&self) -> Compare {
        Compare::value(self.key.as_str(), CompareOp::Equal, self.value.clone())
    }
}

impl Etcd {
    /// A way to what `options` say; nothing is connected yet.
    ///
    /// # Errors
    /// When a file for TLS cannot be read.
    pub fn new(options: Options) -> Result<Etcd, Error> {
        Ok(Etcd {
            prefix: options.prefix.clone(),
            endpoints: Endpoints::new(options)?,
            bond: RwLock::default(),
            seen: AtomicU64::new(0),
            is_in_doubt: AtomicBool::new(false),
            watch: Mutex::default(),
            presence: Mutex::default(),
        })
    }

    /// From now on, records are read and changed only where this one says the same as now.
    pub fn bind(&self, record: &Record) {
        let bond = Bond { key: format!("{}{}", self.prefix, record.key), value: record.value.clone() };
        *self.bond.write().unwrap_or_else(PoisonError::into_inner) = Some(bond);
    }

    fn bond(&self) -> Option<Bond> {
        self.bond.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads what a key and an end stand for, where the bond holds.
    async fn read(&self, key: Vec<u8>, options: GetOptions) -> Result<GetResponse, Error> {
        let seen = self.seen();
        let Some(bond) = self.bond() else {
            let read = |mut client: Client| {
                let (key, options) = (key.clone(), options.clone());
                async move { client.get(key, Some(options)).await }
            };
            let found = self.endpoints.ask(read).await?;
            self.note(found.header(), seen)?;
            return Ok(found);
        };
        let txn = Txn::new().when([bond.compare()]).and_then([TxnOp::get(key, Some(options))]);
        let answer = self.endpoints.ask(|client| run(client, txn.clone())).await?;
        if !answer.succeeded() {
            return Err(Error::Foreign(bond.key));
        }
        self.note(answer.header(), seen)?;
        match answer.op_responses().pop() {
            Some(TxnOpResponse::Get(found)) => Ok(found),
            Some(_) | None => Err(Error::Odd("no answer to a read")),
        }
    }

    /// Asks these members from now on, one address of each.
    pub fn set_endpoints(&self, urls: &[String]) {
        self.endpoints.set(urls);
    }

    /// The members that are asked.
    pub fn endpoints(&self) -> Vec<String> {
        self.endpoints.urls()
    }

    /// How many members are asked.
    pub fn endpoint_count(&self) -> usize {
        self.endpoints.count()
    }

    /// The members that do not answer for themselves, or know no leader: their addresses, and what came instead. Asks each of
    /// them, so it may take a second for each that is silent.
    pub async fn silent_members(&self) -> Vec<(String, String)> {
        self.endpoints.silent().await
    }

    /// One record.
    ///
    /// # Errors
    /// When no member answers, or etcd refuses.
    pub async fn get(&self, key: &str) -> Result<Option<Record>, Error> {
        let found = self.read(format!("{}{key}", self.prefix).into_bytes(), GetOptions::new()).await?;
        found.kvs().first().map(|record| self.record(record)).transpose()
    }

    /// One record, whatever the bond says and whatever was seen before: to find out what stands there instead.
    ///
    /// # Errors
    /// When no member answers, or etcd refuses.
    pub async fn peek(&self, key: &str) -> Result<Option<Record>, Error> {
        let key = format!("{}{key}", self.prefix);
        let read = |mut client: Client| {
            let key = key.clone();
            async move { client.get(key, None).await }
        };
        let found = self.endpoints.ask(read).await?;
        found.kvs().first().map(|record| self.record(record)).transpose()
    }

    /// It was seen at this revision, by a former process: a lesser one has lost changes.
    pub fn was_seen_at(&self, revision: u64) {
        self.seen.fetch_max(revision, Ordering::Relaxed);
    }

    /// Whether etcd was found to have lost changes. Nothing is taken from it then, even if it is at a later revision by now, until
    /// [`Etcd::is_trusted_again`]: it may have got there by other changes.
    pub fn is_in_doubt(&self) -> bool {
        self.is_in_doubt.load(Ordering::Relaxed)
    }

    /// Its history was found to be the one that was seen.
    pub fn is_trusted_again(&self) {
        self.is_in_doubt.store(false, Ordering::Relaxed);
    }

    /// Its history is not the one that was seen.
    pub fn is_not_trusted(&self) {
        self.is_in_doubt.store(true, Ordering::Relaxed);
    }

    /// All records as they were at a revision, whatever was seen before. Nothing where etcd has compacted them away.
    ///
    /// # Errors
    /// When no member answers, or etcd refuses: it has not come to that revision.
    pub async fn history(&self, at: u64) -> Result<Option<Vec<Record>>, Error> {
        let at = i64::try_from(at).map_err(|_| Error::Odd("a revision of 64 bits"))?;
        let mut records = Vec::new();
        let mut from = self.prefix.clone().into_bytes();
        loop {
            let options = GetOptions::new().with_range(after_all(&self.prefix)).with_limit(PAGE_RECORDS);
            let read = |mut client: Client| {
                let (key, options) = (from.clone(), options.clone().with_revision(at));
                async move { client.get(key, Some(options)).await }
            };
            let page = match self.endpoints.ask(read).await {
                Err(Error::Refused(why)) if why.contains("compacted") => return Ok(None),
                page => page?,
            };
            for record in page.kvs() {
                records.push(self.record(record)?);
            }
            let Some(last) = page.kvs().last().filter(|_| page.more()) else { return Ok(Some(records)) };
            from = last.key().to_vec();
            from.push(0);
        }
    }

    /// Makes all changes, or none. Whoever does not answer is asked again, and the next member, for as long as `wait`: a
    /// leader that ends takes its answers with it.
    ///
    /// # Errors
    /// [`Error::Refused`] and [`Error::TooMany`]: nothing was changed. Any other: it happened, or not, or it still may.
    pub async fn commit(&self, changes: &[Change], wait: Duration) -> Result<Committed, Error> {
        if changes.len() > CHANGES_MAX {
            return Err(Error::TooMany(changes.len()));
        }
        let until = Instant::now() + wait;
        let mut is_in_doubt = false;
        loop {
            let is_ready = if self.endpoints.is_fresh() { Ok(()) } else { self.check().await };
            let is_asked = is_ready.is_ok();
            let answer = match is_ready {
                Ok(()) => self.try_commit(changes).await,
                Err(error) => Err(error),
            };
            match answer {
                Err(Error::Silent(_)) if Instant::now() < until => is_in_doubt |= is_asked,
                Err(Error::Refused(why)) if is_in_doubt => return Err(Error::Silent(why)),
                Ok(Committed::Conflict { current }) if is_in_doubt => {
                    let version = made_already(changes, &current);
                    let unknown =
                        || Error::Silent("a change had no answer, and others came since".to_owned());
                    return version.map(|version| Committed::Done { version }).ok_or_else(unknown);
                }
                answer => return answer,
            }
            tokio::time::sleep(COMMIT_PAUSE).await;
        }
    }

    /// Asks one member for a change, once.
    async fn try_commit(&self, changes: &[Change]) -> Result<Committed, Error> {
        let (bond, seen) = (self.bond(), self.seen());
        let txn = self.transaction(changes, bond.as_ref());
        let answer = self.endpoints.ask_once(|client| run(client, txn.clone())).await?;
        if answer.succeeded() {
            return Ok(Committed::Done { version: self.note(answer.header(), seen)? });
        }
        let mut current = self.found(&answer)?;
        if let Some(bond) = bond {
            // What was read first.
            let key = bond.key.strip_prefix(&self.prefix).unwrap_or_default();
            if !current.first().is_some_and(|first| first.key == key && first.value == bond.value) {
                return Err(Error::Foreign(bond.key));
            }
            current.remove(0);
        }
        self.note(answer.header(), seen)?;
        Ok(Committed::Conflict { current })
    }

    fn transaction(&self, changes: &[Change], bond: Option<&Bond>) -> Txn {
        let key = |change: &Change| format!("{}{}", self.prefix, change.key);
        // No record has a revision of 2^63; a comparison with that is as false as it shall be.
        let expected = |change: &Change| i64::try_from(change.expected).unwrap_or(i64::MAX);
        let compares = (changes.iter())
            .map(|change| Compare::mod_revision(key(change), CompareOp::Equal, expected(change)));
        let compares: Vec<Compare> = bond.map(Bond::compare).into_iter().chain(compares).collect();
        let steps: Vec<TxnOp> = (changes.iter())
            .map(|change| match &change.value {
                Some(value) => TxnOp::put(key(change), value.clone(), None),
                None => TxnOp::delete(key(change), None),
            })
            .collect();
        let keys = bond.map(|bond| bond.key.clone()).into_iter().chain(changes.iter().map(key));
        let reads: Vec<TxnOp> = keys.map(|key| TxnOp::get(key, None)).collect();
        Txn::new().when(compares).and_then(steps).or_else(reads)
    }

    fn found(&self, answer: &TxnResponse) -> Result<Vec<Record>, Error> {
        let mut records = Vec::new();
        for read in answer.op_responses() {
            if let TxnOpResponse::Get(read) = read {
                for record in read.kvs() {
                    records.push(self.record(record)?);
                }
            }
        }
        Ok(records)
    }

    /// All records, as they were at one revision.
    ///
    /// # Errors
    /// As [`Etcd::get`].
    pub async fn list(&self) -> Result<News, Error> {
        let mut news = News { is_complete: true, ..News::default() };
        let mut from = self.prefix.clone().into_bytes();
        loop {
            let page = self.page(from, news.revision).await?;
            let header = page.header().ok_or(Error::Odd("no header"))?;
            if news.revision == 0 {
                news.revision = revision(header.revision())?;
            }
            for record in page.kvs() {
                news.records.push(self.record(record)?);
            }
            let Some(last) = page.kvs().last().filter(|_| page.more()) else { return Ok(news) };
            from = last.key().to_vec();
            from.push(0);
        }
    }

    async fn page(&self, from: Vec<u8>, at: u64) -> Result<GetResponse, Error> {
        let at = i64::try_from(at).map_err(|_| Error::Odd("a revision of 64 bits"))?;
        let options = GetOptions::new().with_range(after_all(&self.prefix));
        self.read(from, options.with_limit(PAGE_RECORDS).with_revision(at)).await
    }

    /// What changed after `after`; the first time, or when that is not known any more, everything. Waits up to `wait` for
    /// something to change; that nothing did is known from etcd too.
    ///
    /// # Errors
    /// As [`Etcd::get`].
    pub async fn watch(&self, after: Option<u64>, wait: Duration) -> Result<News, Error> {
        // Who reads everything must not wait for who waits for changes.
        let Some(after) = after else { return self.list().await };
        let mut watch = self.watch.lock().await;
        match watch.news(self, after, wait).await? {
            Some(news) => Ok(news),
            None => self.list().await,
        }
    }

    /// Says that `me` is there, with what it has to say, for as long as a few calls at most a second or so apart follow one
    /// another; and hears who else is.
    ///
    /// # Errors
    /// As [`Etcd::get`].
    pub async fn beat(&self, me: &str, value: &[u8]) -> Result<Attendance, Error> {
        self.check().await?;
        self.presence.lock().await.beat(&self.endpoints, &self.prefix, me, value).await
    }

    /// The greatest revision that an answer had so far.
    fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// The revision of an answer to what was asked when `seen` was the greatest. All reads and changes are linearizable, so it
    /// is never less.
    fn note(&self, header: Option<&ResponseHeader>, seen: u64) -> Result<u64, Error> {
        let found = revision(header.ok_or(Error::Odd("no header"))?.revision())?;
        if found < seen {
            self.is_not_trusted();
        }
        if self.is_in_doubt() {
            return Err(Error::Older { seen, found });
        }
        self.seen.fetch_max(found, Ordering::Relaxed);
        Ok(found)
    }

    /// Whether the records are still those of the bond, and not older than they were.
    async fn check(&self) -> Result<(), Error> {
        let key = self.bond().map_or_else(|| self.prefix.clone(), |bond| bond.key);
        self.read(key.into_bytes(), GetOptions::new().with_keys_only()).await.map(|_| ())
    }

    /// A record of etcd as ours.
    fn record(&self, found: &KeyValue) -> Result<Record, Error> {
        let key = std::str::from_utf8(found.key()).map_err(|_| Error::Odd("a key that is no text"))?;
        let key = key.strip_prefix(&self.prefix).ok_or(Error::Odd("a key that was not asked for"))?;
        Ok(Record {
            key: key.to_owned(),
            version: revision(found.mod_revision())?,
            value: found.value().to_vec(),
        })
    }
}

/// The version of a change that was asked for before and found out about by a conflict now: everything that it sets is there
/// at one version, and what it removes is not. Who did the same at the same moment did it as well for us. Nothing is known of a
/// change that only removes.
fn made_already(changes: &[Change], current: &[Record]) -> Option<u64> {
    let found = |change: &Change| current.iter().find(|record| record.key == change.key);
    let version = changes.iter().find(|change| change.value.is_some()).and_then(found)?.version;
    let is_made = |change: &Change| match (&change.value, found(change)) {
        (None, None) => true,
        (Some(value), Some(record)) => {
            record.value == *value && record.version == version && version != change.expected
        }
        (None, Some(_)) | (Some(_), None) => false,
    };
    changes.iter().all(is_made).then_some(version)
}

async fn run(mut client: Client, txn: Txn) -> Result<TxnResponse, etcd_client::Error> {
    client.txn(txn).await
}

fn revision(number: i64) -> Result<u64, Error> {
    u64::try_from(number).map_err(|_| Error::Odd("a revision below zero"))
}

/// The first key behind all that begin with `prefix`.
fn after_all(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_change_without_an_answer_did_is_known_by_what_is_there() {
        let set = |key: &str, expected, value: &str| Change {
            key: key.to_owned(),
            expected,
            value: Some(value.as_bytes().to_vec()),
        };
        let remove = |key: &str| Change { key: key.to_owned(), expected: 3, value: None };
        let there = |key: &str, version, value: &str| Record {
            key: key.to_owned(),
            version,
            value: value.as_bytes().to_vec(),
        };
        let wanted = [set("a", 5, "1"), set("b", 0, "2"), remove("c")];
        let made = [there("a", 9, "1"), there("b", 9, "2")];
        assert_eq!(made_already(&wanted, &made), Some(9));
        assert_eq!(made_already(&wanted, &made[..1]), None, "one is missing");
        assert_eq!(made_already(&wanted, &[there("a", 5, "1"), there("b", 5, "2")]), None, "as before");
        assert_eq!(made_already(&wanted, &[there("a", 9, "1"), there("b", 8, "2")]), None, "two changes");
        assert_eq!(made_already(&wanted, &[there("a", 9, "1"), there("b", 9, "3")]), None, "another's");
        let kept = [made[0].clone(), made[1].clone(), there("c", 3, "")];
        assert_eq!(made_already(&wanted, &kept), None, "not removed");
        assert_eq!(made_already(&[remove("c")], &[]), None, "anybody can have removed it");
    }
}
