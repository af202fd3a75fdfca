//! One watch over all records, kept open from call to call, and opened anew where it was.
//!
//! The client never opens a watch again by itself, so what was seen last is kept here: after an end, or with another member,
//! it goes on from the revision behind that. Must never skip a revision: what etcd has compacted is read as a whole.

use super::{Error, Etcd, News};
use etcd_client::{EventType, WatchOptions, WatchResponse, WatchStream};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// A watch, if one is open.
#[derive(Default)]
pub(crate) struct Watch {
    open: Option<Open>,
}

struct Open {
    stream: WatchStream,
    /// All changes up to this revision were handed over.
    seen: u64,
}

/// What one message of a watch says.
enum Said {
    /// Records and removals, in the order of revisions; none: that the watch has begun.
    Changes(Vec<(u64, String, Option<super::Record>)>),
    /// Nothing changed, as far as is known.
    Nothing,
    /// The changes that were asked for are not known any more.
    Compacted,
    /// No more will come.
    Over,
}

impl Watch {
    /// What changed after `after`; nothing when etcd does not know that any more.
    pub(crate) async fn news(
        &mut self,
        etcd: &Etcd,
        after: u64,
        wait: Duration,
    ) -> Result<Option<News>, Error> {
        let until = Instant::now() + wait;
        // Once more when the stream was at its end: it may have been so for long.
        for _ in 0..2 {
            let mut open = match self.open.take().filter(|open| open.seen == after) {
                Some(open) => open,
                None => Open { stream: begin(etcd, after).await?, seen: after },
            };
            match open.next(etcd, until).await? {
                Said::Changes(changes) => {
                    let news = news(changes, after);
                    open.seen = news.revision;
                    self.open = Some(open);
                    return Ok(Some(news));
                }
                Said::Nothing => {
                    self.open = Some(open);
                    return Ok(Some(News { revision: after, ..News::default() }));
                }
                Said::Compacted => return Ok(None),
                Said::Over => {}
            }
        }
        Ok(Some(News { revision: after, ..News::default() }))
    }
}

/// The stream stays with one member of one etcd: that these are the records that were meant is looked at once.
async fn begin(etcd: &Etcd, after: u64) -> Result<WatchStream, Error> {
    etcd.check().await?;
    let start = i64::try_from(after + 1).map_err(|_| Error::Odd("a revision of 64 bits"))?;
    let request = |mut client: etcd_client::Client| {
        let prefix = etcd.prefix.clone();
        async move {
            client.watch(prefix, Some(WatchOptions::new().with_prefix().with_start_revision(start))).await
        }
    };
    etcd.endpoints.ask(request).await
}

impl Open {
    /// The next message that says something. If none comes until `until`, a read shows whether etcd is there: it is not asked how
    /// far the stream is, as some versions answer before all changes were sent (etcd-io/etcd#15220), and later ones not at all
    /// where nothing has changed yet (#20242). A stream whose member is silent ends by the connection's pings.
    async fn next(&mut self, etcd: &Etcd, until: Instant) -> Result<Said, Error> {
        loop {
            match timeout_at(until, self.stream.message()).await {
                Ok(Ok(Some(message))) => match said(etcd, &message)? {
                    Said::Changes(changes) if changes.is_empty() => {}
                    said => return Ok(said),
                },
                Ok(Ok(None) | Err(_)) => return Ok(Said::Over),
                Err(_) => return etcd.check().await.map(|()| Said::Nothing),
            }
        }
    }
}

fn said(etcd: &Etcd, message: &WatchResponse) -> Result<Said, Error> {
    if message.compact_revision() > 0 {
        return Ok(Said::Compacted);
    }
    if message.canceled() {
        return Ok(Said::Over);
    }
    let mut changes = Vec::new();
    for event in message.events() {
        let found = event.kv().ok_or(Error::Odd("an event of no record"))?;
        let record = etcd.record(found)?;
        let is_gone = event.event_type() == EventType::Delete;
        changes.push((record.version, record.key.clone(), (!is_gone).then_some(record)));
    }
    Ok(Said::Changes(changes))
}

/// The last that was said of each record.
fn news(changes: Vec<(u64, String, Option<super::Record>)>, after: u64) -> News {
    let revision = changes.iter().map(|(revision, ..)| *revision).max().unwrap_or(after);
    let last: BTreeMap<String, Option<super::Record>> =
        changes.into_iter().map(|(_, key, record)| (key, record)).collect();
    let mut news = News { revision, ..News::default() };
    for (key, record) in last {
        match record {
            Some(record) => news.records.push(record),
            None => news.gone.push(key),
        }
    }
    news
}
