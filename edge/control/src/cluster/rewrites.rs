//! Orders of one host to others to write their components of a disk anew.

use super::Cluster;
use super::pools::client_of;
use crate::limits::HOST_ORDER_WAIT;
use api::types::{HostRewriteView, RewriteHost};
use base::DiskId;
use engine::ClusterState;
use failure::{Code, Failure};
use std::sync::Arc;

/// Where a host takes these orders.
const PATH: &str = "/api/v1/rewrite/host";

impl Cluster {
    /// Sends the order to all other hosts that have components of a disk, at once. Each tells how many it has begun with; those that cannot be asked, why
    /// not.
    pub async fn order_rewrites(&self, state: &ClusterState, disk: DiskId) -> Vec<HostRewriteView> {
        let view = self.view();
        let Some(found) = view.disks.get(&disk) else { return Vec::new() };
        let has_any = |host| found.record.roster.members.iter().any(|member| member.node.host == host);
        let others = view.hosts.values().map(|known| &known.host);
        let others = others.filter(|host| host.record.id != self.me && has_any(host.record.id));
        let mut asked = Vec::new();
        let mut answers = Vec::new();
        for host in others {
            let name = host.record.name.clone();
            if !self.reaches(state, host) {
                answers.push(not_begun(name, "it cannot be reached"));
                continue;
            }
            let (host, security, order) =
                (Arc::clone(host), self.certified(), RewriteHost { disk: disk.to_string() });
            let task = tokio::spawn(async move {
                let client = client_of(&host, security.as_deref())?;
                let silent = || Failure::new(Code::Unreachable, "it does not answer");
                let answer = client.post(PATH, &order);
                tokio::time::timeout(HOST_ORDER_WAIT, answer).await.map_err(|_| silent())?
            });
            asked.push((name, task));
        }
        for (name, task) in asked {
            match task.await {
                Ok(Ok(begun)) => answers.push(begun),
                Ok(Err(failure)) => answers.push(not_begun(name, &failure.error)),
                Err(broken) => tracing::error!("order another host to write a disk anew: {broken}"),
            }
        }
        answers
    }
}

fn not_begun(host: String, why: &str) -> HostRewriteView {
    HostRewriteView { host, components: 0, trouble: Some(why.to_owned()) }
}
