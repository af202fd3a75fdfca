//! A host that stands alone becomes the first of a cluster of several while it serves.

use super::Control;
use crate::config::Config;
use crate::events::Kind;
use crate::founding::Founding;
use crate::http::doors::Bound;
use crate::security;
use api::types::{EtcdChoice, FoundCluster, FoundedView};
use failure::{Code, Failure};
use std::path::Path;

impl Control {
    /// Moves the directory into etcd, and lets other hosts in. Guests go on.
    ///
    /// # Errors
    /// When the host is one of several already, its configuration cannot be taken up without a start, or etcd is not free: then
    /// nothing has changed but files that the next attempt uses.
    pub async fn found_cluster(&self, request: &FoundCluster) -> Result<FoundedView, Failure> {
        let _one_change = self.changes.lock().await;
        let config = self.config_of_several(Path::new(&request.config))?;
        let founding =
            Founding::of(&config, &self.store, request.name.as_deref(), request.etcd == EtcdChoice::Managed)?;
        founding.check(true).await?;
        let cluster = &self.cluster;
        let view = FoundedView {
            id: cluster.id().to_string(),
            name: founding.name().to_owned(),
            directory: config.cluster.directory.to_string(),
            host: config.name.clone(),
            disks: self.records().disks.len(),
            is_serving: true,
            is_made: !request.dry_run,
        };
        if !request.dry_run {
            let former = self.config();
            let mut doors = Vec::new();
            for listen in config.http.iter().filter(|one| !former.http.contains(one)) {
                doors.push(Bound::at(listen).await?);
            }
            cluster.become_several(&config, &self.store, &founding).await?;
            // Not before: nobody is let in from elsewhere who shows no certificate.
            doors.into_iter().for_each(|bound| self.doors.serve(bound, cluster));
            let text = format!("`{}` is made in {}; this host is its first", view.name, view.directory);
            self.events.other(Kind::ClusterFounded, "cluster", text);
        }
        Ok(view)
    }

    /// The configuration as it stands in the host's file now, if it can be taken up while the host serves.
    fn config_of_several(&self, path: &Path) -> Result<Config, Failure> {
        if !self.cluster.stands_alone() {
            return Err(Failure::new(Code::Conflict, "this host is one of a cluster of several already")
                .hint("let others join: drystone host token"));
        }
        let own = self.config();
        let started_with =
            own.path.as_deref().ok_or_else(|| Failure::refused("this host has no configuration file"))?;
        let is_same = match (path.canonicalize(), started_with.canonicalize()) {
            (Ok(path), Ok(own)) => path == own,
            (Err(_), _) | (_, Err(_)) => false,
        };
        if !is_same {
            return Err(Failure::refused(format!(
                "the running host was started with {}, not with {}",
                started_with.display(),
                path.display()
            ))
            .hint("name the file that it was started with"));
        }
        let config = Config::read(started_with, false)?;
        if !own.can_grow_into(&config) {
            return Err(Failure::refused(format!(
                "{} has changed since the host was started, by more than `directory`, `peers`, `fault_domain` and `etcd` of [cluster] and what was added to [listen]",
                started_with.display()
            ))
            .hint("take the other changes back for now, or stop the host, and run `cluster init` then"));
        }
        security::check_listeners(&config, true)?;
        Ok(config)
    }
}
