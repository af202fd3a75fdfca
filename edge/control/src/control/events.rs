//! What happened: here, or on all hosts.

use super::Control;
use crate::events::{check, merged};
use api::types::{EventQuery, EventView, EventsView};
use failure::Failure;

impl Control {
    /// What happened on this host, and to the disks that it owned; oldest first.
    ///
    /// # Errors
    /// When there is no such kind of event.
    pub fn events(&self, query: &EventQuery) -> Result<Vec<EventView>, Failure> {
        check(query)?;
        Ok(self.events.find(query))
    }

    /// The same of all hosts that answer, by their clocks.
    ///
    /// # Errors
    /// When there is no such kind of event, or the engine is gone.
    pub async fn all_events(&self, query: &EventQuery) -> Result<EventsView, Failure> {
        check(query)?;
        let own = self.events.find(query);
        let cluster = &self.cluster;
        let path = format!("/api/v1/events{}", query.text());
        let (others, silent) = cluster.ask_others::<Vec<EventView>>(&cluster.state().await?, &path).await;
        let all = own.into_iter().chain(others.into_values().flatten()).collect();
        Ok(EventsView { events: merged(all, query.limit), silent })
    }
}
