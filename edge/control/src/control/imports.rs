//! Imports: a disk whose content is replaced, by one program that alone knows the name of its export.
//!
//! The program is a client of NBD like any other; here it is settled that no other client has the disk meanwhile, and that people
//! find out who imported what. Must not keep a disk locked for a program that is gone.

use super::Control;
use super::disks::check_confirmed;
use super::state::Import;
use crate::addresses::nbd_address;
use crate::directory::State;
use crate::events::Kind;
use crate::limits::{IMPORT_IDLE_WAIT, IMPORT_POLL, REASON_LENGTH_MAX};
use crate::system::random_bits;
use api::types::{BeginImport, DiskView, EndImport, ImportView};
use base::DiskId;
use base::units::format_bytes;
use engine::DiskLock;
use failure::{Code, Failure};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// Why clients are kept from a disk meanwhile.
const WHY: &str = "is being imported: its content is being replaced";

impl Control {
    /// Locks a disk for an import, and gives the export by which the importing program gets it.
    ///
    /// # Errors
    /// When it is not confirmed, clients have the disk and are not to lose it, or the image does not fit.
    pub async fn begin_import(
        self: &Arc<Control>,
        name: &str,
        request: BeginImport,
    ) -> Result<ImportView, Failure> {
        let entry = self.find(name)?;
        let record = &entry.record;
        check_confirmed(request.confirm.as_deref(), &record.name, "importing replaces all that is on it")?;
        check_request(&request)?;
        if entry.state != State::Active {
            return Err(Failure::new(Code::Conflict, format!("disk {name} is being made or deleted")));
        }
        self.cluster.expect_not_rolling_back(record.id)?;
        if record.read_only {
            return Err(Failure::refused(format!("disk {} may only be read", record.name))
                .hint(format!("drystone disk set {} read-only off", record.name)));
        }
        if request.size > record.size {
            return Err(Failure::refused(format!(
                "the image has {} and the disk {} only {}",
                format_bytes(request.size),
                record.name,
                format_bytes(record.size)
            ))
            .hint(format!("drystone disk resize {} {}", record.name, request.size)));
        }
        let export = format!(".import-{:032x}", random_bits()?);
        let lock = DiskLock {
            why: WHY.to_owned(),
            export: Some(export.clone()),
            ends_connections: request.detach_clients,
        };
        let locked = self.lock(record, lock).await?;
        let what = format!("{} ({}, {})", request.source, request.format, format_bytes(request.size));
        self.events.disk(
            Kind::DiskImporting,
            &record.name,
            format!("its content is being replaced by {what}"),
        );
        let import = Import { export: export.clone(), what, locked };
        self.imports.lock().unwrap_or_else(PoisonError::into_inner).insert(record.id, import);
        tokio::spawn(Arc::clone(self).watch_import(record.id, record.name.clone(), export.clone()));
        let address = |listen| nbd_address(listen, self.must_encrypt(listen), &export);
        Ok(ImportView {
            disk: record.name.clone(),
            addresses: self.config().nbd.iter().map(address).collect(),
            export,
        })
    }

    /// Lets clients have a disk again whose import has ended.
    ///
    /// # Errors
    /// When no such import is under way.
    pub async fn end_import(&self, name: &str, request: EndImport) -> Result<DiskView, Failure> {
        let entry = self.find(name)?;
        let found = self.take_import(entry.record.id, &request.export).ok_or_else(|| {
            Failure::new(Code::NotFound, format!("no such import of disk {name} is under way"))
                .hint("see `drystone events --kind disk`")
        })?;
        let failure = request.failure.as_deref().map(|why| (why, request.unchanged));
        self.finish_import(&entry.record.name, found, failure).await;
        self.disk_view(&entry.record.id.to_string()).await
    }

    fn take_import(&self, disk: DiskId, export: &str) -> Option<Import> {
        let mut imports = self.imports.lock().unwrap_or_else(PoisonError::into_inner);
        imports.get(&disk).is_some_and(|import| import.export == export).then(|| imports.remove(&disk))?
    }

    /// `failure`: why it failed, and whether nothing was written.
    async fn finish_import(&self, disk: &str, import: Import, failure: Option<(&str, bool)>) {
        self.unlock(import.locked).await;
        let text = match failure {
            None => format!("imported from {}", import.what),
            Some((why, is_unchanged)) => format!(
                "the import from {} failed: {}{}",
                import.what,
                why.chars().take(REASON_LENGTH_MAX).collect::<String>(),
                if is_unchanged { "" } else { "; part of the former content may be left" }
            ),
        };
        self.events.disk(Kind::DiskImported, disk, text);
    }

    /// Ends an import whose program is gone without a word.
    async fn watch_import(self: Arc<Control>, disk: DiskId, name: String, export: String) {
        let mut last_seen = Instant::now();
        loop {
            tokio::time::sleep(IMPORT_POLL).await;
            let is_under_way = {
                let imports = self.imports.lock().unwrap_or_else(PoisonError::into_inner);
                imports.get(&disk).is_some_and(|import| import.export == export)
            };
            let Ok(states) = self.disk_states(Some(disk)).await else { return };
            if !is_under_way {
                return;
            }
            if states.get(&disk).is_some_and(|state| !state.clients.is_empty()) {
                last_seen = Instant::now();
            }
            if last_seen.elapsed() >= IMPORT_IDLE_WAIT {
                if let Some(import) = self.take_import(disk, &export) {
                    let why = format!("nothing was written for {} s", IMPORT_IDLE_WAIT.as_secs());
                    self.finish_import(&name, import, Some((&why, false))).await;
                }
                return;
            }
        }
    }
}

fn check_request(request: &BeginImport) -> Result<(), Failure> {
    for (what, text) in [("source", &request.source), ("format", &request.format)] {
        let is_plain = !text.is_empty() && !text.chars().any(char::is_control);
        if !is_plain || text.len() > REASON_LENGTH_MAX {
            return Err(Failure::usage(format!(
                "the {what} of an import is a line of at most {REASON_LENGTH_MAX} bytes"
            )));
        }
    }
    Ok(())
}
