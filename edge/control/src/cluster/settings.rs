//! What people set for the whole cluster, and what they do not want to be told again for a while.

use super::Cluster;
use crate::directory::shared::record::{ClusterSettings, SETTINGS, SILENCES, Silences};
use crate::directory::shared::{Outcome, unwritten};
use failure::{Code, Failure};

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 5;

impl Cluster {
    /// Changes the settings.
    ///
    /// # Errors
    /// When the directory does not answer, or they change all the time.
    pub async fn change_settings(
        &self,
        change: impl Fn(ClusterSettings) -> Result<ClusterSettings, Failure>,
    ) -> Result<ClusterSettings, Failure> {
        for _ in 0..ATTEMPTS {
            let found = self.directory().get(SETTINGS).await?;
            let (expected, before) = match &found {
                Some(entry) => {
                    let settings = ClusterSettings::read(entry)
                        .map_err(|error| Failure::failed("read the cluster's settings", error))?;
                    (entry.version, settings)
                }
                None => (0, ClusterSettings::default()),
            };
            let settings = change(before)?;
            match self.directory().commit(vec![settings.change(expected)?]).await {
                Outcome::Done { .. } => {
                    self.catch_up().await?;
                    return Ok(settings);
                }
                Outcome::Conflict { .. } => {}
                Outcome::Unwritten { why } => return Err(unwritten(why)),
                Outcome::Unknown => {
                    return Err(Failure::new(Code::Unreachable, "the directory does not answer"));
                }
            }
        }
        Err(Failure::new(Code::Conflict, "the settings change all the time").hint("try again"))
    }

    /// Replaces the silences by what `change` makes of them.
    ///
    /// # Errors
    /// What `change` says; or when the directory does not answer, or they change all the time.
    pub async fn change_silences(
        &self,
        change: impl Fn(Silences) -> Result<Silences, Failure>,
    ) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let found = self.directory().get(SILENCES).await?;
            let (expected, before) = match &found {
                Some(entry) => {
                    let silences =
                        Silences::read(entry).map_err(|error| Failure::failed("read the silences", error))?;
                    (entry.version, silences)
                }
                None => (0, Silences::default()),
            };
            match self.directory().commit(vec![change(before)?.change(expected)?]).await {
                Outcome::Done { .. } => return self.catch_up().await,
                Outcome::Conflict { .. } => {}
                Outcome::Unwritten { why } => return Err(unwritten(why)),
                Outcome::Unknown => {
                    return Err(Failure::new(Code::Unreachable, "the directory does not answer"));
                }
            }
        }
        Err(Failure::new(Code::Conflict, "the silences change all the time").hint("try again"))
    }
}
