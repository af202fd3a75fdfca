//! What supporters need of this host: its configuration and what it knows, as files of text.
//!
//! Everything goes through [`Redactor`] before it leaves: private keys, join tokens and passwords are taken out, wherever they
//! stand. The configuration is written from what was read of it, field by field, so that a new one is left out until somebody
//! has thought about it. Bounded in bytes; what is left out is named.

mod machine;
mod redact;

use super::Control;
use crate::addresses::listen_text;
use crate::config::{Config, DirectoryPlace};
use crate::http::metrics;
use crate::limits::{
    EVENTS_KEPT, SUPPORT_BYTES_MAX, SUPPORT_DISKS_MAX, SUPPORT_FILE_BYTES_MAX, SUPPORT_HISTOGRAMS_MAX,
    SUPPORT_WAIT,
};
use crate::system::now_seconds;
use api::types::{EventQuery, SupportFile, SupportView};
use failure::Failure;
use redact::Redactor;
use serde::Serialize;
use serde_json::{Value, json};

/// Files as they come together.
struct Collection {
    redactor: Redactor,
    files: Vec<SupportFile>,
    bytes: usize,
    left_out: Vec<String>,
}

impl Collection {
    /// Adds a text without what must not leave. Of a long one its end is kept: that is the newest of a log.
    fn text(&mut self, path: &str, text: &str) {
        let mut text = self.redactor.redact(text);
        if text.len() > SUPPORT_FILE_BYTES_MAX {
            let from = text.ceil_char_boundary(text.len() - SUPPORT_FILE_BYTES_MAX);
            self.left_out.push(format!("{path}: the first {from} bytes"));
            text = text.split_off(from);
        }
        if self.bytes + text.len() > SUPPORT_BYTES_MAX {
            self.left_out.push(format!("{path}: there is more than {SUPPORT_BYTES_MAX} bytes of files"));
            return;
        }
        self.bytes += text.len();
        self.files.push(SupportFile { path: path.to_owned(), text });
    }

    fn json(&mut self, path: &str, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.text(path, &text),
            Err(error) => self.left_out.push(format!("{path}: {error}")),
        }
    }

    /// What could not be had is named: the rest is worth no less for it.
    fn answer<T: Serialize>(&mut self, path: &str, answer: Result<T, Failure>) {
        match answer {
            Ok(value) => self.json(path, &value),
            Err(failure) => self.left_out.push(format!("{path}: {failure}")),
        }
    }
}

impl Control {
    /// What this host gives for a support bundle.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn support(&self) -> Result<SupportView, Failure> {
        let mut all = Collection {
            redactor: Redactor::of(&self.config()),
            files: Vec::new(),
            bytes: 0,
            left_out: Vec::new(),
        };
        all.json("configuration.json", &settings_of(&self.config()));
        all.answer("status.json", self.host_view().await);
        all.answer("health.json", self.health().await);
        all.answer("resync.json", self.resync().await);
        all.json("policies.json", &self.policies());
        all.answer("hosts.json", self.hosts().await);
        all.answer("settings.json", self.settings());
        all.answer("balance.json", self.balance().await);
        all.answer("certificates.json", self.certificates());
        all.answer("local.json", self.local().await);
        all.text("events.jsonl", &self.events_text());
        match metrics::text(self).await {
            Ok(text) => all.text("metrics.txt", &text),
            Err(failure) => all.left_out.push(format!("metrics.txt: {failure}")),
        }
        self.add_disks(&mut all).await;
        match machine::log().await {
            Ok((source, text)) => all.text("log.txt", &format!("# {source}\n{text}")),
            Err(why) => all.left_out.push(format!("log.txt: {why}")),
        }
        for (path, text) in machine::facts() {
            all.text(&path, &text);
        }
        Ok(SupportView {
            host: self.config().name.clone(),
            version: api::program::RELEASE.to_owned(),
            time: now_seconds(),
            files: all.files,
            left_out: all.left_out,
        })
    }

    fn events_text(&self) -> String {
        let query = EventQuery { limit: Some(EVENTS_KEPT), ..EventQuery::default() };
        let lines = self.events.find(&query).into_iter().map(|one| serde_json::to_string(&one));
        lines.filter_map(Result::ok).map(|line| line + "\n").collect()
    }

    /// All disks in short; those with trouble, and then the busiest, in full.
    async fn add_disks(&self, all: &mut Collection) {
        let list = match self.disk_list().await {
            Ok(list) => list,
            Err(failure) => return all.left_out.push(format!("disks.json: {failure}")),
        };
        all.json("disks.json", &list);
        let busiest: Vec<String> = match self.top().await {
            Ok(top) => {
                all.json("top.json", &top);
                top.disks.into_iter().map(|one| one.disk).collect()
            }
            Err(_) => Vec::new(),
        };
        let has_trouble =
            |one: &&api::types::DiskSummary| one.unavailable.is_some() || !one.not_whole.is_empty();
        let mut names: Vec<String> = list.iter().filter(has_trouble).map(|one| one.name.clone()).collect();
        names.extend(busiest.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
        if names.len() > SUPPORT_DISKS_MAX {
            all.left_out.push(format!("{} disks in full", names.len() - SUPPORT_DISKS_MAX));
        }
        for name in names.iter().take(SUPPORT_DISKS_MAX) {
            all.answer(&format!("disks/{name}.json"), self.disk_view(name).await);
        }
        for name in busiest.iter().take(SUPPORT_HISTOGRAMS_MAX) {
            all.answer(&format!("histograms/{name}.json"), self.histograms(name, None).await);
        }
    }

    /// The same of a host of the cluster, by name or id.
    ///
    /// # Errors
    /// When there is none, or it does not answer.
    pub async fn support_of(&self, name: &str) -> Result<SupportView, Failure> {
        let cluster = &self.cluster;
        let host = cluster.find_host(name)?;
        match host.record.id == cluster.me {
            true => self.support().await,
            false => cluster.ask_one(&host, "/api/v1/support", SUPPORT_WAIT).await,
        }
    }
}

/// What the configuration says, but for secrets: of keys and passwords only where their files are.
fn settings_of(config: &Config) -> Value {
    let Config {
        path: _,
        name,
        data_dir,
        nbd,
        http,
        console,
        tls,
        buffer_bytes,
        table_bytes,
        scrub_bytes_per_second,
        groups,
        cluster,
    } = config;
    let groups = groups.iter().map(|group| {
        json!({
            "log": group.log,
            "capacity": group.capacity,
            "log_size": group.log_size,
            "file_size": group.file_size,
        })
    });
    let directory = match &cluster.directory {
        DirectoryPlace::Embedded => json!("embedded"),
        DirectoryPlace::Socket(path) => json!({ "socket": path }),
        DirectoryPlace::Etcd(options) => json!({
            "etcd": options.endpoints,
            "prefix": options.prefix,
            "encrypted": options.tls.is_some(),
            "user": options.user.as_ref().map(|(name, _)| name),
        }),
    };
    let cluster = json!({
        "directory": directory,
        "peers": cluster.peers,
        "fault_domain": cluster.fault_domain,
        "prefers_local": cluster.prefers_local,
        "resync_floor": cluster.resync_floor,
        "resync_latency_percent": cluster.resync_latency_percent,
        "shards": cluster.shards,
    });
    json!({
        "name": name,
        "data_dir": data_dir,
        "nbd": nbd.iter().map(listen_text).collect::<Vec<_>>(),
        "http": http.iter().map(listen_text).collect::<Vec<_>>(),
        "console": json!({
            "listen": console.listen,
            "certificate": console.certificate.as_ref().map(|(certificate, _)| certificate),
            "key": console.certificate.as_ref().map(|(_, key)| key),
        }),
        "tls": tls.as_ref().map(|tls| json!({
            "certificate": tls.certificate,
            "key": tls.key,
            "client_authorities": tls.client_authorities,
            "required": tls.required,
        })),
        "buffer_bytes": buffer_bytes,
        "table_bytes": table_bytes,
        "scrub_bytes_per_second": scrub_bytes_per_second,
        "groups": groups.collect::<Vec<_>>(),
        "cluster": cluster,
    })
}

#[cfg(test)]
mod tests;
