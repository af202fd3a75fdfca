//! Making, changing and deleting disks.

use super::Control;
use crate::cluster::{Rules, is_taken};
use crate::directory::DiskEntry;
use crate::events::Kind;
use crate::limits::DISKS_MAX;
use api::name::{check_labels, check_name};
use api::types::{ChangeDisk, CreateDisk, DeleteDisk, DiskSummary, DiskView, ExplainPolicy, ExplainedPolicy};
use base::units::{SECTOR_SIZE, format_bytes};
use engine::{DiskLock, DiskRecord};
use failure::{Code, Failure};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Control {
    /// The record of a disk by name or id.
    pub(super) fn find(&self, name: &str) -> Result<Arc<DiskEntry>, Failure> {
        self.records().disk(name).cloned().ok_or_else(|| {
            Failure::new(Code::NotFound, format!("there is no disk `{name}`"))
                .hint("see `drystone disk list`")
        })
    }

    /// Makes a disk and begins to serve it.
    ///
    /// # Errors
    /// When the request makes no sense, or no place fits the policy.
    pub async fn create_disk(&self, request: CreateDisk) -> Result<DiskView, Failure> {
        let mut made = self.make_disk(request).await?;
        made.warnings.extend(self.space_warning().await);
        let DiskSummary { name, size, policy, .. } = &made.summary;
        self.events.disk(Kind::DiskCreated, name, format!("made: {}, policy {policy}", format_bytes(*size)));
        Ok(made)
    }

    /// Says where a disk would stand and what it would cost, as if it were made now.
    ///
    /// # Errors
    /// Where it would not be made.
    pub async fn plan_disk(&self, request: &CreateDisk) -> Result<ExplainedPolicy, Failure> {
        check_name(&request.name)?;
        if self.records().disk(&request.name).is_some() {
            return Err(is_taken(&request.name));
        }
        self.check_disk_count()?;
        let asked = ExplainPolicy { policy: request.policy.clone(), size: Some(request.size) };
        let explained = self.explain_policy(&asked).await?;
        match &explained.refusal {
            Some(refusal) => Err(Failure::refused(refusal.cause.clone()).hint(refusal.hint.clone())),
            None => Ok(explained),
        }
    }

    /// The disk of a request that may be repeated, if that was made before.
    ///
    /// # Errors
    /// When a disk of this name is there, and is another one.
    pub async fn made_before(&self, request: &CreateDisk) -> Result<Option<DiskView>, Failure> {
        let records = self.records();
        let Some(entry) = records.disk(&request.name).filter(|_| request.unless_there) else {
            return Ok(None);
        };
        let wanted = self.resolve_rules(request.policy.as_deref(), None)?;
        let (record, mut others) = (&entry.record, Vec::new());
        if record.size != request.size {
            others.push(format!("it has {}", format_bytes(record.size)));
        }
        if record.policy != wanted.policy {
            others.push(format!("its rules are {}", record.policy.short()));
        }
        if record.read_only != request.read_only {
            others.push(format!("clients may {}", if record.read_only { "only read" } else { "write" }));
        }
        if record.access.is_shared != request.share {
            let several = if record.access.is_shared { "several hosts" } else { "one host" };
            others.push(format!("clients of {several} may have it at once"));
        }
        if !request.labels.is_empty() && entry.labels != request.labels {
            others.push(format!("its labels are {}", labels_text(&entry.labels)));
        }
        match others.is_empty() {
            true => self.disk_view(&record.id.to_string()).await.map(Some),
            false => Err(Failure::new(
                Code::Conflict,
                format!("there is another disk `{}`: {}", request.name, others.join(", ")),
            )),
        }
    }

    async fn make_disk(&self, request: CreateDisk) -> Result<DiskView, Failure> {
        check_name(&request.name)?;
        check_labels(&request.labels)?;
        let rules = self.resolve_rules(request.policy.as_deref(), None)?;
        let _change = self.changes.lock().await;
        self.check_disk_count()?;
        let name = self.cluster.create_disk(request, rules, None).await?;
        self.disk_view(&name).await
    }

    pub(super) fn check_disk_count(&self) -> Result<(), Failure> {
        match self.records().disks.len() >= DISKS_MAX {
            true => Err(Failure::refused(format!("there are {DISKS_MAX} disks already, the most possible"))),
            false => Ok(()),
        }
    }

    /// Changes a disk's name, size, rules or access.
    ///
    /// # Errors
    /// When the request makes no sense, it is smaller and not confirmed or in use, or there is no space.
    pub async fn change_disk(&self, name: &str, request: ChangeDisk) -> Result<DiskView, Failure> {
        let before = self.find(name)?;
        let smaller = request.size.filter(|size| *size < before.record.size);
        let changed = match smaller {
            None => self.alter_disk(name, request).await?,
            Some(size) => {
                check_size(size, &before.record, request.confirm.as_deref())?;
                let why = "is being made smaller".to_owned();
                let lock = DiskLock { why, export: None, ends_connections: request.detach_clients };
                let locked = self.lock(&before.record, lock).await?;
                let changed = self.alter_disk(name, request).await;
                self.unlock(locked).await;
                changed?
            }
        };
        let is_other = self.find(&changed.summary.id)?.record.access.limit != before.record.access.limit;
        let mut text = change_text(&before.record, &changed.summary, is_other);
        if changed.summary.labels != before.labels {
            let separator = if text.is_empty() { "" } else { "; " };
            text += &format!("{separator}its labels are {}", labels_text(&changed.summary.labels));
        }
        if !text.is_empty() {
            self.events.disk(Kind::DiskChanged, &before.record.name, text);
        }
        Ok(changed)
    }

    async fn alter_disk(&self, name: &str, request: ChangeDisk) -> Result<DiskView, Failure> {
        let entry = self.find(name)?;
        request.name.as_deref().map_or(Ok(()), check_name)?;
        if let Some(size) = request.size {
            check_size(size, &entry.record, request.confirm.as_deref())?;
        }
        if let Some(text) = request.policy.as_deref() {
            let wanted = |before: &Rules| self.resolve_rules(Some(text), Some(before));
            self.cluster.change_rules(entry.record.id, wanted).await?;
        }
        let left = self.cluster.change_disk(entry.record.id, &request).await?;
        let mut disk = self.disk_view(&entry.record.id.to_string()).await?;
        let warning = |policy| {
            format!("{} follows policy {policy} no more: it has rules of its own", disk.summary.name)
        };
        disk.warnings = left.map(warning).into_iter().collect();
        Ok(disk)
    }

    /// Deletes a disk and all that is on it, if nobody uses it.
    ///
    /// # Errors
    /// When it is not confirmed, clients have it and are not to lose it, or a device fails. The disk is then still there.
    pub async fn delete_disk(&self, name: &str, request: &DeleteDisk) -> Result<(), Failure> {
        let before = self.find(name)?;
        let record = &before.record;
        check_confirmed(request.confirm.as_deref(), &record.name, "deleting it destroys all that is on it")?;
        let why = "is being deleted".to_owned();
        let lock = DiskLock { why, export: None, ends_connections: request.detach_clients };
        let locked = self.lock(record, lock).await?;
        let deleted = self.unmake_disk(name).await;
        self.unlock(locked).await;
        deleted?;
        self.events.disk(Kind::DiskDeleted, &record.name, "deleted, with all that was on it");
        Ok(())
    }

    async fn unmake_disk(&self, name: &str) -> Result<(), Failure> {
        let _change = self.changes.lock().await;
        let entry = self.find(name)?;
        self.cluster.delete_disk(entry.record.id).await
    }
}

/// `env=test, team=db`, or `none`.
fn labels_text(labels: &BTreeMap<String, String>) -> String {
    match labels.is_empty() {
        true => "none".to_owned(),
        false => labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", "),
    }
}

/// What is other than it was; nothing when nothing is.
fn change_text(before: &DiskRecord, after: &DiskSummary, is_other: bool) -> String {
    let mut changes = Vec::new();
    if after.name != before.name {
        changes.push(format!("its name is {} from now on", after.name));
    }
    if after.size != before.size {
        changes.push(format!("it was {} and is {}", format_bytes(before.size), format_bytes(after.size)));
    }
    if after.policy != before.policy.short() {
        changes.push(format!("its rules were {} and are {}", before.policy.short(), after.policy));
    }
    match (before.read_only, after.read_only) {
        (false, true) => changes.push("clients may only read".to_owned()),
        (true, false) => changes.push("clients may write".to_owned()),
        (true, true) | (false, false) => {}
    }
    match (before.access.is_shared, after.share) {
        (false, true) => changes.push("several hosts may have it at once".to_owned()),
        (true, false) => changes.push("one host at a time may have it".to_owned()),
        (true, true) | (false, false) => {}
    }
    match (&before.access.limit, &after.allowed) {
        (Some(_), None) => changes.push("whoever may attach to disks may attach to it".to_owned()),
        (_, Some(allowed)) if is_other => changes.push(format!(
            "only these may attach to it: {}",
            allowed.people.iter().chain(&allowed.hosts).cloned().collect::<Vec<_>>().join(", ")
        )),
        (_, Some(_)) | (None, None) => {}
    }
    changes.join("; ")
}

/// Whether a disk may be asked to have another size; a smaller one must be confirmed.
fn check_size(size: u64, record: &DiskRecord, confirm: Option<&str>) -> Result<(), Failure> {
    if size == 0 || !size.is_multiple_of(SECTOR_SIZE) {
        return Err(Failure::usage(format!(
            "a disk of {size} bytes is not possible: multiples of {SECTOR_SIZE} are"
        )));
    }
    match size < record.size {
        true => {
            let what = "making it smaller destroys what stands beyond the new end";
            check_confirmed(confirm, &record.name, what)
        }
        false => Ok(()),
    }
}

pub(super) fn check_confirmed(confirm: Option<&str>, name: &str, what: &str) -> Result<(), Failure> {
    match confirm {
        Some(given) if given == name => Ok(()),
        Some(given) => Err(Failure::refused(format!("`{given}` is not the name, `{name}` is"))),
        None => Err(Failure::refused(format!("{what}; it must be confirmed with the name"))
            .hint(format!("add `--confirm {name}`"))),
    }
}
