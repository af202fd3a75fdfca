//! People with passwords: their records are changed one at a time, and the removal of a person is one change of all that is theirs.

use super::Cluster;
use crate::directory::shared::Change;
use crate::directory::shared::record::{PersonRecord, Revocation, read, revoked_person, set};
use ::cluster::Level;
use failure::{Code, Failure};
use std::time::SystemTime;
use trust::{Name, PasswordHash, Role};

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 5;

impl Cluster {
    /// Sets the role and the password of a person as `change` makes them of what they were. Sessions of before end by that.
    ///
    /// # Errors
    /// What `change` says; or when the directory does not answer, or the record changes all the time.
    pub async fn change_person(
        &self,
        name: &Name,
        change: impl Fn(Option<&PersonRecord>) -> Result<(Role, PasswordHash), Failure>,
    ) -> Result<PersonRecord, Failure> {
        self.expect_level("a password of a person", Level::PASSWORDS)?;
        for _ in 0..ATTEMPTS {
            let found = self.directory().get(&PersonRecord::key(name)).await?;
            let former = found.as_ref().map(PersonRecord::read).transpose();
            let former = former.map_err(|why| Failure::failed("read a person's record", why))?;
            let removed_ns = self.removal_of(name).await?.map_or(0, |(_, record)| record.before_ns);
            let counts = former.as_ref().filter(|former| former.changed_ns > removed_ns);
            let (role, password) = change(counts)?;
            // Greater than all before, whatever the clock says.
            let before_ns = former.as_ref().map_or(0, |former| former.changed_ns).max(removed_ns);
            let changed_ns = trust::nanoseconds(SystemTime::now()).max(before_ns + 1);
            let record = PersonRecord { name: name.clone(), role, password, changed_ns };
            match self.change(vec![record.change(found.map_or(0, |entry| entry.version))?]).await {
                Err(failure) if failure.code == Code::Conflict => {}
                ended => return ended.map(|()| record),
            }
        }
        Err(Failure::new(Code::Conflict, "the record changes all the time").hint("try again"))
    }

    /// Removes a person: all certificates that were issued up to now count no more, nor does a password, and what is open with
    /// either ends.
    ///
    /// # Errors
    /// When the directory does not answer.
    pub async fn remove_person(&self, name: &Name) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let (key, found) = (PersonRecord::key(name), self.removal_of(name).await?);
            let password = self.directory().get(&key).await?;
            let former_ns = found.as_ref().map_or(0, |(_, record)| record.before_ns);
            let before_ns = trust::nanoseconds(SystemTime::now()).max(former_ns + 1);
            let record = Revocation { before_ns, who: name.to_string() };
            let mut changes =
                vec![set(revoked_person(name.as_str()), found.map_or(0, |(version, _)| version), &record)?];
            changes.extend(password.map(|entry| Change { key, expected: entry.version, value: None }));
            match self.change(changes).await {
                Err(failure) if failure.code == Code::Conflict => {}
                ended => return ended,
            }
        }
        Err(Failure::new(Code::Conflict, "the record changes all the time").hint("try again"))
    }

    /// The record of a person's last removal as the directory has it now, with its version.
    async fn removal_of(&self, name: &Name) -> Result<Option<(u64, Revocation)>, Failure> {
        let Some(entry) = self.directory().get(&revoked_person(name.as_str())).await? else {
            return Ok(None);
        };
        let record = read(&entry).map_err(|why| Failure::failed("read when a person was removed", why))?;
        Ok(Some((entry.version, record)))
    }
}
