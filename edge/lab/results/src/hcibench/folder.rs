//! The folder of a test: its cases, each with the results of its VMs.
//!
//! HCIBench averages the percentiles of its VMs (with fio), or computes them from mean and deviation (with Vdbench), and
//! averages latencies without weights. So the figures are computed from the VMs' own results: histograms are merged, means
//! weighted by I/Os; what HCIBench printed stands beside them, and where the two differ it is said.

use super::{PERCENTILES, Summary, printed, summary};
use crate::error::{Kind, Origin, ReadError};
use crate::kinds;
use crate::model::{Direction, Figures, Note, ResultSet, Run, Tool};
use statistics::words;
use std::collections::BTreeMap;

/// Figures that differ by more are told.
const DIFFERENCE_MIN: f64 = 0.02;

/// Reads a folder: (path, text) of every file. Each case (a folder with files of VMs) becomes one set, whose runs are all VMs
/// together, with one part per VM. Files that are no results are left out with a note.
pub(crate) fn read_folder(files: &[(&str, &str)]) -> Result<Vec<ResultSet>, ReadError> {
    let mut cases: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    let mut summaries: BTreeMap<&str, Vec<Summary>> = BTreeMap::new();
    for &(path, text) in files {
        if let Some(case) = path.strip_suffix("-res.txt") {
            summaries.insert(case, summary(&Origin { file: path, kind: Kind::Hcibench }, text)?);
        } else if path.ends_with(".json") || path.ends_with(".txt") {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            cases.entry(folder).or_default().push((path, text));
        }
    }
    let mut sets = Vec::new();
    for (folder, files) in &cases {
        sets.extend(case(folder, files, summaries.get(folder).map_or(&[][..], Vec::as_slice))?);
    }
    // Summaries whose VMs' files are not there.
    for (case, summary) in summaries.iter().filter(|(case, _)| !cases.contains_key(*case)) {
        sets.push(ResultSet::new(case, Tool::Hcibench, summary.iter().map(printed).collect()));
    }
    if sets.is_empty() {
        let origin = Origin { file: files.first().map_or("", |(path, _)| path), kind: Kind::Hcibench };
        return Err(origin.whole(
            "no file of a VM and no -res.txt",
            "give the folder of a test with the folders of its cases",
        ));
    }
    Ok(sets)
}

/// The result of one VM.
struct Vm<'a> {
    name: &'a str,
    runs: Vec<Run>,
}

fn case(folder: &str, files: &[(&str, &str)], summaries: &[Summary]) -> Result<Option<ResultSet>, ReadError> {
    let (mut vms, mut notes): (Vec<Vm<'_>>, Vec<Note>) = (Vec::new(), Vec::new());
    let mut first_error = None;
    // fio's jobs ran together; Vdbench's run definitions one after another, and each is a result.
    let mut stages: Vec<Option<String>> = vec![None];
    for (path, text) in files {
        match kinds::read(path, text, None) {
            Ok(read) if matches!(read.tool, Tool::Fio | Tool::Vdbench) => {
                if read.tool == Tool::Vdbench && vms.is_empty() {
                    stages = read.runs.iter().map(|run| Some(run.label.clone())).collect();
                }
                vms.push(Vm { name: path.rsplit('/').next().unwrap_or(path), runs: read.runs });
            }
            Ok(_) => notes.push(Note::new(format!("left out: {path} is not the result of a VM"))),
            Err(error) => {
                notes.push(Note::new(format!("left out: {error}")));
                first_error = first_error.or(Some(error));
            }
        }
    }
    if vms.is_empty() {
        // A folder without any result that could be read is an error only when a summary says that there was one.
        return match (first_error, summaries.is_empty()) {
            (Some(error), false) => Err(error),
            _ => Ok(None),
        };
    }
    let mut result = ResultSet::new(folder, Tool::Hcibench, vec![]);
    result.notes = notes;
    for (index, stage) in stages.iter().enumerate() {
        let mut all = together(folder, &vms, stage.as_deref());
        let named = summaries.iter().find(|of| stage.is_some() && of.label == *stage);
        if let Some(summary) = named.or(summaries.get(index)) {
            all.notes = differences(&all, summary);
            if let Some(claimed) = summary.vms.filter(|claimed| *claimed as usize > vms.len()) {
                let text = format!(
                    "the summary covers {claimed} VMs, but there are files of {}: the others ended early or were lost",
                    words::counted(vms.len(), "VM")
                );
                all.notes.push(Note::new(text));
            }
        }
        result.runs.push(all);
    }
    Ok(Some(result))
}

/// All VMs as one run, whose parts they are; of one run definition, or of all jobs.
fn together(folder: &str, vms: &[Vm<'_>], stage: Option<&str>) -> Run {
    let belongs = |run: &&Run| stage.is_none_or(|stage| run.label == stage);
    let runs = || vms.iter().flat_map(|vm| vm.runs.iter().filter(belongs));
    let mut label = format!("{} (all VMs)", folder.rsplit('/').next().unwrap_or(folder));
    if let Some(stage) = stage {
        label = format!("{label}, {stage}");
    }
    let mut all = Run { label, vms: u32::try_from(vms.len()).ok(), ..Run::default() };
    let Some(first) = runs().next() else { return all };
    let same =
        |of: &dyn Fn(&Run) -> Option<f64>| of(first).filter(|one| runs().all(|run| of(run) == Some(*one)));
    all.job.block_bytes =
        first.job.block_bytes.filter(|one| runs().all(|run| run.job.block_bytes == Some(*one)));
    all.job.read_share = same(&|run| run.job.read_share);
    all.job.random_share = same(&|run| run.job.random_share);
    all.job.outstanding = runs().try_fold(0.0, |sum, run| Some(sum + run.job.outstanding?));
    all.workers = runs().try_fold(0u32, |sum, run| sum.checked_add(run.workers?));
    all.seconds = runs().filter_map(|run| run.seconds).reduce(f64::max);
    all.workers_iops = vms
        .iter()
        .map(|vm| vm.runs.iter().filter(belongs).filter_map(|run| run.total().iops).sum())
        .collect();
    for direction in [Direction::Read, Direction::Write, Direction::Trim] {
        let parts: Vec<&Figures> = runs().filter_map(|run| run.directions.get(&direction)).collect();
        if !parts.is_empty() {
            all.directions.insert(direction, Figures::together(parts.into_iter()));
        }
    }
    let totals: Vec<Figures> = runs().map(Run::total).collect();
    all.directions.insert(Direction::Total, Figures::together(totals.iter()));
    let named = |vm: &Vm<'_>, run: &Run| Run { label: format!("{}: {}", vm.name, run.label), ..run.clone() };
    all.parts = vms.iter().flat_map(|vm| vm.runs.iter().filter(belongs).map(|run| named(vm, run))).collect();
    all
}

/// What HCIBench printed against what was computed.
fn differences(all: &Run, summary: &Summary) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut compare = |what: &str, printed: Option<f64>, computed: Option<f64>, why: &str| {
        let Some((printed, computed)) = printed.zip(computed).filter(|(_, computed)| *computed > 0.0) else {
            return;
        };
        if (printed / computed - 1.0).abs() > DIFFERENCE_MIN {
            notes.push(Note::new(format!(
                "HCIBench printed {what} {}, but the results of the VMs give {}: {why}",
                words::number(printed),
                words::number(computed)
            )));
        }
    };
    let total = all.total();
    let ms = |figures: Option<&Figures>| figures.and_then(|of| of.latency_s).map(|s| s * 1e3);
    compare("IOPS", summary.iops, total.iops, "a VM was dropped, or its file is missing");
    let unweighted = "HCIBench averages over VMs without weights";
    compare("latency (ms)", summary.latency_ms, total.latency_s.map(|s| s * 1e3), unweighted);
    compare("read latency (ms)", summary.read_ms, ms(all.directions.get(&Direction::Read)), unweighted);
    compare("write latency (ms)", summary.write_ms, ms(all.directions.get(&Direction::Write)), unweighted);
    for ((direction, _), printed) in PERCENTILES.iter().zip(summary.percentile_95) {
        let computed = all.directions.get(direction).and_then(|of| of.latencies.percentile_s(0.95));
        let computed = computed.map(|seconds| seconds * 1e3);
        compare("p95 (ms)", printed, computed, "HCIBench averages percentiles");
    }
    notes
}
