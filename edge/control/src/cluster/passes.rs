//! Orders of one host to all others about the pass that samples their data.

use super::Cluster;
use super::pools::client_of;
use crate::limits::HOST_ORDER_WAIT;
use api::types::{HostPassView, PassWord, RatesView};
use engine::ClusterState;
use failure::{Code, Failure};
use std::sync::Arc;
use std::time::Duration;

/// Where a host takes these orders.
const PATH: &str = "/api/v1/estimate/host";

/// What other hosts are to do.
#[derive(Debug, Clone, Copy)]
pub enum OtherPasses {
    /// Begin a pass.
    Begin(RatesView),
    /// End the one that is under way.
    End,
}

impl Cluster {
    /// Sends an order to all other hosts, at once. Each tells of its pass; those that cannot be asked, why.
    pub async fn order_passes(&self, state: &ClusterState, order: OtherPasses) -> Vec<HostPassView> {
        let view = self.view();
        let mut asked = Vec::new();
        let mut passes = Vec::new();
        for known in view.hosts.values().filter(|known| known.host.record.id != self.me) {
            let name = known.host.record.name.clone();
            if !self.reaches(state, &known.host) {
                passes.push(without_answer(name, "it cannot be reached"));
                continue;
            }
            let (host, security) = (Arc::clone(&known.host), self.certified());
            let task = tokio::spawn(async move {
                let client = client_of(&host, security.as_deref())?;
                let answer = async {
                    match order {
                        OtherPasses::Begin(rates) => client.post(PATH, &rates).await,
                        OtherPasses::End => client.delete(PATH).await,
                    }
                };
                within(HOST_ORDER_WAIT, answer).await
            });
            asked.push((name, task));
        }
        for (name, task) in asked {
            match task.await {
                Ok(Ok(pass)) => passes.push(pass),
                Ok(Err(failure)) => passes.push(without_answer(name, &failure.error)),
                Err(broken) => tracing::error!("order a pass of another host: {broken}"),
            }
        }
        passes
    }
}

async fn within(
    wait: Duration,
    answer: impl Future<Output = Result<HostPassView, Failure>>,
) -> Result<HostPassView, Failure> {
    let silent = || Failure::new(Code::Unreachable, format!("no answer within {} s", wait.as_secs()));
    tokio::time::timeout(wait, answer).await.map_err(|_| silent())?
}

/// A host of which nothing is known.
pub fn without_answer(host: String, why: &str) -> HostPassView {
    HostPassView {
        host,
        state: PassWord::Unreachable,
        percent: None,
        read_bytes: 0,
        seconds: None,
        age_seconds: None,
        trouble: Some(why.to_owned()),
    }
}
