//! Disks that are written anew, so that what was written before they were compressed takes less space, too.

use super::Control;
use crate::events::Kind;
use api::types::{HostRewriteView, RewriteHost, RewriteView};
use engine::Command;
use failure::Failure;
use placement::Compression;

impl Control {
    /// Has all hosts that can be reached begin to write their components of a disk anew.
    ///
    /// # Errors
    /// When there is no such disk, it is not compressed, no host begins, or the engine is gone.
    pub async fn rewrite_disk(&self, name: &str) -> Result<RewriteView, Failure> {
        let entry = self.find(name)?;
        let record = &entry.record;
        if record.policy.compression == Compression::Off {
            let what =
                format!("disk {}: its policy does not compress: there is nothing to gain", record.name);
            let hint = format!("compress it first: `drystone disk set {} compression=lz4`", record.name);
            return Err(Failure::refused(what).hint(hint));
        }
        let state = self.cluster.state().await?;
        let mut hosts = self.cluster.order_rewrites(&state, record.id).await;
        let order = RewriteHost { disk: record.id.to_string() };
        let own = self.rewrite_here(&order).await?;
        hosts.extend(Some(own).filter(|own| own.components > 0));
        hosts.sort_by(|a, b| a.host.cmp(&b.host));
        if hosts.iter().all(|host| host.components == 0) {
            let why = hosts.iter().find_map(|host| host.trouble.clone());
            let why = why.unwrap_or_else(|| "no component of it is in service".to_owned());
            return Err(Failure::refused(format!("disk {}: no host can write it anew: {why}", record.name)));
        }
        let count: usize = hosts.iter().map(|host| host.components).sum();
        let count = if count == 1 { "1 component is".to_owned() } else { format!("{count} components are") };
        self.events.disk(
            Kind::DiskRewriting,
            &record.name,
            format!("{count} written anew, to take less space"),
        );
        Ok(RewriteView { disk: record.name.clone(), hosts })
    }

    /// Has the components of a disk on this host alone written anew.
    ///
    /// # Errors
    /// When that is no identity of a disk, or the engine is gone.
    pub async fn rewrite_here(&self, order: &RewriteHost) -> Result<HostRewriteView, Failure> {
        let disk =
            order.disk.parse().map_err(|_| Failure::usage(format!("{} is no id of a disk", order.disk)))?;
        let components = self.engine.call(|answer| Command::Rewrite { disk, answer }).await?;
        Ok(HostRewriteView { host: self.cluster.config().name.clone(), components, trouble: None })
    }
}
