//! Where a job's I/Os go: files, devices, spans.

use super::Rule;
use crate::error::Fault;
use crate::findings::Findings;
use crate::fio::job::Job;
use crate::fio::value::Value;
use plan::{Extent, NoteKind};

pub(super) const RULES: &[Rule] = &[
    Rule::carried(
        "size",
        "Span of a job, in bytes or percent. Its files share it.",
        |job, value, findings| extent(value, findings).map(|size| job.size = Some(size)),
    ),
    Rule::carried("io_size", "Bytes that a job transfers.", |job, value, findings| {
        extent(value, findings).map(|size| job.io_size = Some(size))
    })
    .or(&["io_limit"]),
    Rule::carried("filesize", "Size of each file.", file_size),
    Rule::carried("fill_device", "Writes until the target is full.", |job, value, _| {
        value.boolean().map(|on| job.fill = on)
    })
    .or(&["fill_fs"]),
    Rule::carried("offset", "Start of the span, in bytes or percent.", |job, value, findings| {
        extent(value, findings).map(|offset| job.offset = offset)
    })
    .or(&["fileoffset"]),
    Rule::carried("offset_increment", "Distance between the spans of clones.", |job, value, findings| {
        extent(value, findings).map(|step| job.offset_step = step)
    }),
    Rule::noted("offset_align", "Alignment of an offset in percent. The lab aligns it to the block size."),
    Rule::carried("number_ios", "I/Os that end a pass, if all have one size.", |job, value, _| {
        value.count(0).map(|count| job.passes.ios = (count > 0).then_some(count))
    }),
    Rule::refused("file_append", "Writes behind the end of an existing file. Write offset= and size=."),
    Rule::carried("filename", "Files or devices, separated by `:`.", |job, value, findings| {
        if !job.files.is_empty() {
            let text = format!(
                "fio adds up the files of every filename=, those of [global] too: the job also uses {}. Take one of them out",
                job.files.join(" and ")
            );
            findings.note(NoteKind::Trap, &value.place, "filename", text);
        }
        job.files.extend(listed(&value.text));
        Ok(())
    }),
    Rule::carried("name", "Name of the job.", |job, value, _| {
        job.name.clone_from(&value.text);
        Ok(())
    }),
    Rule::carried(
        "filename_format",
        "Names of files: `$jobname`, `$jobnum`, `$filenum`.",
        |job, value, _| {
            job.file_format = Some(value.text.clone());
            Ok(())
        },
    ),
    Rule::noted("unique_filename", "File names of several clients of a server. The lab has agents."),
    Rule::carried(
        "directory",
        "Folders of the files, separated by `:`. Clones take them in turn.",
        |job, value, _| {
            job.directories = listed(&value.text);
            Ok(())
        },
    ),
    Rule::carried("nrfiles", "Files of each job.", |job, value, _| match value.count(0)? {
        0 => Err(value.trap("fio starts a job without files, which does nothing", "write nrfiles=1")),
        count => {
            job.files_count = count;
            Ok(())
        }
    })
    .or(&["nr_files"]),
    Rule::noted("openfiles", "Files open at a time. The lab opens all of them."),
    Rule::carried(
        "file_service_type",
        "How the next file of a job is chosen. The lab goes round: another choice needs a job with one file.",
        |job, value, _| {
            let goes_round = value.text.split(':').next() == Some("roundrobin");
            job.file_choice = (!goes_round).then(|| (value.shown(), value.place.clone()));
            Ok(())
        },
    ),
    Rule::refused("opendir", "All files of a folder. Name them with filename=."),
    Rule::noted("filetype", "Kind of the files. The lab looks at them."),
    Rule::noted("lockfile", "Locks on files. The lab takes none."),
    Rule::refused(
        "pre_read",
        "Reads the files before the job. Write a job of rw=read in front of it, and a stonewall.",
    ),
    Rule::noted("invalidate", "Drops the page cache before a job. Use --drop-caches."),
    Rule::noted("overwrite", "Lays out files before writing. Use `drystone lab prepare`."),
    Rule::noted("fallocate", "How space of a file is reserved. The lab writes it."),
    Rule::noted("fadvise_hint", "Advice for the page cache."),
    Rule::noted(
        "write_hint",
        "Expected lifetime of data, or its placement on the device. The lab gives no hints.",
    )
    .alike("fdp fdp_pli plids fdp_pli_select dataplacement data_placement dp_scheme plid_select"),
    Rule::noted(
        "create_serialize",
        "How files are created. The lab creates them one after another before the run.",
    )
    .or(&["create_fsync", "create_on_open"]),
    Rule::noted("allow_file_create", "Whether files may be created. An option of the run decides it."),
    Rule::noted(
        "allow_mounted_write",
        "Whether a mounted device may be written. An option of the run decides it.",
    ),
    Rule::noted("unlink", "Deletes the files afterwards. An option of the run decides it.")
        .or(&["unlink_each_loop"]),
];

/// Bytes or percent of a size or an offset.
fn extent(value: &Value, findings: &mut Findings) -> Result<Extent, Fault> {
    remark_inverted(value, findings);
    value.extent()
}

fn remark_inverted(value: &Value, findings: &mut Findings) {
    if value.is_inverted() {
        let text = format!("fio counts the unit of `{}` by 1000, and so does the lab", value.shown());
        findings.note(NoteKind::Trap, &value.place, &value.key, text);
    }
}

fn file_size(job: &mut Job, value: &Value, findings: &mut Findings) -> Result<(), Fault> {
    remark_inverted(value, findings);
    let (low, high) = value.text.split_once('-').unwrap_or((&value.text, ""));
    let low = value.part(low).bytes()?;
    let high = if high.is_empty() { low } else { value.part(high).bytes()? };
    if low != high {
        let text = "fio draws a size for each file; in the lab all files have the largest";
        findings.note(NoteKind::Changed, &value.place, "filesize", text);
    }
    job.file_size = Some(low.max(high));
    Ok(())
}

/// The parts between `:`, where `\:` is a colon of a name.
fn listed(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let last = parts.last_mut().expect("there is always one");
        match letter {
            '\\' if letters.peek() == Some(&':') => {
                letters.next();
                last.push(':');
            }
            ':' => parts.push(String::new()),
            letter => last.push(letter),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}
