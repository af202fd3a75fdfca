//! The members of an etcd that Drystone runs: who they are, and how they become others.

use crate::{Error, Etcd};
use etcd_client::{Client, MemberAddOptions};

/// A member, as etcd knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: u64,
    /// Its name; nothing before it has started for the first time.
    pub name: Option<String>,
    /// Where other members connect: URLs.
    pub peers: Vec<String>,
    /// Where clients connect: URLs; nothing before it has started for the first time.
    pub clients: Vec<String>,
    /// Whether it only follows: it has no vote, and answers no clients, until it is promoted.
    pub is_learner: bool,
}

impl Etcd {
    /// The members, in the order of their ids. A member that was cut off may tell what was so before.
    ///
    /// # Errors
    /// When no member answers, or etcd refuses.
    pub async fn members(&self) -> Result<Vec<Member>, Error> {
        let list = |mut client: Client| async move { client.member_list().await };
        let found = self.endpoints.ask(list).await?;
        let member = |one: &etcd_client::Member| Member {
            id: one.id(),
            name: Some(one.name().to_owned()).filter(|name| !name.is_empty()),
            peers: one.peer_urls().to_vec(),
            clients: one.client_urls().to_vec(),
            is_learner: one.is_learner(),
        };
        let mut members: Vec<Member> = found.members().iter().map(member).collect();
        members.sort_by_key(|member| member.id);
        Ok(members)
    }

    /// Adds a member that follows without a vote: it is started at its address afterwards.
    ///
    /// # Errors
    /// When no member answers, one follows already, or there is one at this address.
    pub async fn add_member(&self, peer: &str) -> Result<(), Error> {
        let add = |mut client: Client| async move {
            client.member_add([peer], Some(MemberAddOptions::new().with_is_learner())).await
        };
        self.endpoints.ask_once(add).await.map(drop)
    }

    /// Gives a member its vote.
    ///
    /// # Errors
    /// When no member answers, it has one, or it has not caught up yet.
    pub async fn promote_member(&self, id: u64) -> Result<(), Error> {
        let promote = |mut client: Client| async move { client.member_promote(id).await };
        self.endpoints.ask_once(promote).await.map(drop)
    }

    /// Takes a member out: its process ends by itself, and its data are of no more use.
    ///
    /// # Errors
    /// When no member answers, it is none, or those that remain would be no majority of those that answer.
    pub async fn remove_member(&self, id: u64) -> Result<(), Error> {
        let remove = |mut client: Client| async move { client.member_remove(id).await };
        self.endpoints.ask_once(remove).await.map(drop)
    }
}
