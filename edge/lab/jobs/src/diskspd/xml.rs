//! XML profiles of DiskSPD.

use super::elements::{Element, parse};
use super::keys::ELEMENTS;
use super::settings::{Access, Buffer, Span, Target, Throughput};
use super::size;
use crate::error::Fault;
use crate::findings::{Findings, malformed, refused, unsupported};
use crate::keys::Treatment;
use crate::limits;
use crate::source::{Options, Source};
use plan::{Extent, NoteKind, Zone};

/// What a command line with `-X` overrides in every time span.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Overrides {
    pub(crate) duration: Option<u64>,
    pub(crate) warmup: Option<u64>,
    pub(crate) cooldown: Option<u64>,
    pub(crate) seed: Option<Option<u64>>,
}

/// The time spans of a profile.
pub(crate) fn read(source: &Source, options: &Options<'_>, findings: &mut Findings) -> Vec<Span> {
    let overrides = Overrides { duration: options.duration, ..Overrides::default() };
    read_with(source, options, &overrides, findings)
}

/// The time spans of a profile with what its command line says.
pub(crate) fn read_with(
    source: &Source,
    options: &Options<'_>,
    overrides: &Overrides,
    findings: &mut Findings,
) -> Vec<Span> {
    let Some(profile) = findings.take(parse(source)) else { return Vec::new() };
    if profile.name != "Profile" {
        findings.fault(refused(
            &profile.place,
            format!("the outermost element is <{}>", profile.name),
            "DiskSPD's schema wants <Profile>",
            "begin with <Profile>",
        ));
        return Vec::new();
    }
    let mut spans = Vec::new();
    for child in &profile.children {
        if child.name == "TimeSpans" {
            for inner in &child.children {
                if known(inner, "Profile", findings)
                    && inner.name == "TimeSpan"
                    && spans.len() <= limits::STAGES_MAX
                {
                    spans.push(span(inner, options, overrides, findings));
                }
            }
        } else {
            known(child, "Profile", findings);
        }
    }
    if spans.is_empty() && findings.faults.is_empty() {
        findings.fault(refused(
            &profile.place,
            "the profile has no time span",
            "DiskSPD refuses it",
            "add <TimeSpans><TimeSpan>…",
        ));
    }
    spans
}

/// Whether an element may stand here; what is noted or refused is told.
fn known(element: &Element, scope: &str, findings: &mut Findings) -> bool {
    let Some(key) = ELEMENTS.iter().find(|key| key.scope == scope && key.is(&element.name)) else {
        let names = ELEMENTS.iter().filter(|key| key.scope == scope).map(|key| key.name);
        let remedy = match crate::keys::nearest(&element.name, names) {
            Some(near) => format!("did you mean <{near}>?"),
            None => "take it out".to_owned(),
        };
        let shown: String = element.name.chars().take(60).collect();
        findings.fault(refused(
            &element.place,
            format!("the element <{shown}> is unknown here"),
            "DiskSPD's schema refuses it",
            remedy,
        ));
        return false;
    };
    match key.treatment {
        Treatment::Carried => true,
        Treatment::Noted => {
            if element.text != "false" && element.text != "0" {
                findings.note(NoteKind::NotCarried, &element.place, key.name, key.sentence);
            }
            false
        }
        Treatment::Refused => {
            if element.text != "false" {
                findings.fault(unsupported(&element.place, format!("<{}>", key.name), key.sentence));
            }
            false
        }
    }
}

fn number(element: &Element, least: u64, most: u64) -> Result<u64, Fault> {
    if element.text.is_empty() {
        return Err(refused(
            &element.place,
            format!("<{}> is empty", element.name),
            "DiskSPD's schema refuses it: the profile is a template",
            format!(
                "write a number into <{0}>, give --duration in place of an empty <Duration>, or make the profile with the \
                 script that fills it (New-FleetProfile)",
                element.name
            ),
        ));
    }
    element.text.parse::<u64>().ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        refused(
            &element.place,
            format!("<{}> is `{}`", element.name, element.text.chars().take(40).collect::<String>()),
            "DiskSPD's schema refuses it",
            format!("write a whole number, {least} to {most}"),
        )
    })
}

/// An element that stands twice beside itself: the last would win in silence.
fn unrepeated(element: &Element, findings: &mut Findings) {
    for (index, child) in element.children.iter().enumerate() {
        if element.children[..index].iter().any(|earlier| earlier.name == child.name) {
            findings.fault(refused(
                &child.place,
                format!("<{}> stands twice in <{}>", child.name, element.name),
                "DiskSPD's schema takes it once",
                "take one of them out",
            ));
        }
    }
}

fn boolean(element: &Element) -> Result<bool, Fault> {
    match element.text.as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(refused(
            &element.place,
            format!("<{}> is neither true nor false", element.name),
            "DiskSPD's schema refuses it",
            "write true or false",
        )),
    }
}

const SECONDS: u64 = 10 * 365 * 86_400;
const COUNT: u64 = 1 << 20;
const BYTES: u64 = i64::MAX as u64;

fn span(element: &Element, options: &Options<'_>, overrides: &Overrides, findings: &mut Findings) -> Span {
    let mut span = Span::new(element.place.clone());
    let mut random_data = false;
    unrepeated(element, findings);
    for child in &element.children {
        if !known(child, "TimeSpan", findings) {
            continue;
        }
        if child.name == "Targets" {
            for inner in &child.children {
                if known(inner, "TimeSpan", findings) && inner.name == "Target" {
                    let read = target(inner, options, findings);
                    span.targets.push(read);
                }
            }
            continue;
        }
        let set = match child.name.as_str() {
            "Duration" if overrides.duration.is_none() => {
                number(child, 1, SECONDS).map(|value| span.duration = value)
            }
            "Warmup" if overrides.warmup.is_none() => {
                number(child, 0, SECONDS).map(|value| span.warmup = value)
            }
            "Cooldown" if overrides.cooldown.is_none() => {
                number(child, 0, SECONDS).map(|value| span.cooldown = value)
            }
            "RandSeed" => number(child, 0, u64::MAX).map(|value| span.seed = Some(value)),
            "ThreadCount" => {
                number(child, 0, COUNT).map(|value| span.threads = Some(value).filter(|&count| count > 0))
            }
            "RequestCount" => {
                number(child, 0, COUNT).map(|value| span.depth = Some(value).filter(|&count| count > 0))
            }
            "RandomWriteData" => boolean(child).map(|on| random_data = on),
            _ => Ok(()),
        };
        findings.take(set);
    }
    span.duration = overrides.duration.unwrap_or(span.duration);
    span.warmup = overrides.warmup.unwrap_or(span.warmup);
    span.cooldown = overrides.cooldown.unwrap_or(span.cooldown);
    span.seed = overrides.seed.unwrap_or(span.seed);
    if random_data {
        for target in span.targets.iter_mut().filter(|target| target.buffer == Buffer::Counting) {
            target.buffer = Buffer::Random;
        }
    }
    if span.targets.is_empty() && findings.faults.is_empty() {
        findings.fault(refused(
            &span.place,
            "the time span has no target",
            "DiskSPD refuses it",
            "add <Targets><Target><Path>…",
        ));
    }
    super::convert::check(&span, findings);
    span
}

/// What is said of a target before it is known what it means together.
#[derive(Default)]
struct Draft {
    random: Option<u64>,
    ratio: Option<u64>,
    stride: Option<u64>,
    interlocked: bool,
}

fn target(element: &Element, options: &Options<'_>, findings: &mut Findings) -> Target {
    let mut target = Target::new("", element.place.clone());
    let mut draft = Draft::default();
    unrepeated(element, findings);
    for child in &element.children {
        if !known(child, "Target", findings) {
            continue;
        }
        let set = match child.name.as_str() {
            "Path" => path(child, options, findings).map(|path| target.path = path),
            "WriteBufferContent" => buffer(child, findings).map(|found| target.buffer = found),
            "Distribution" => distribution(child, findings).map(|zones| target.zones = zones),
            "Throughput" => throughput(child).map(|found| target.throughput = found),
            _ => set_number(child, &mut target, &mut draft),
        };
        findings.take(set);
    }
    target.access = match (draft.random, draft.ratio) {
        (None, None) if draft.interlocked => Access::Interlocked,
        (None, None) => Access::Sequential,
        (_, ratio) => Access::Random(ratio.unwrap_or(100)),
    };
    target.step = draft.random.or(draft.stride);
    if draft.random.is_some() && draft.stride.is_some() {
        findings.fault(refused(
            &element.place,
            "the target has <Random> and <StrideSize>",
            "DiskSPD refuses both",
            "take one of them out",
        ));
    }
    if !target.zones.is_empty() && !matches!(target.access, Access::Random(_)) {
        findings.fault(refused(
            &element.place,
            "the target has a <Distribution> and no <Random>",
            "DiskSPD refuses a distribution of sequential I/O: the profile is a template",
            format!("add <Random>{}</Random>", target.block),
        ));
    }
    if target.burst.is_some() != target.think_ms.is_some() {
        findings.fault(refused(
            &element.place,
            "the target has one of <BurstSize> and <ThinkTime>",
            "DiskSPD wants both",
            "add the other",
        ));
    }
    if target.path.is_empty() && findings.faults.is_empty() {
        findings.fault(refused(&element.place, "the target has no <Path>", "DiskSPD refuses it", "add it"));
    }
    target
}

fn set_number(child: &Element, target: &mut Target, draft: &mut Draft) -> Result<(), Fault> {
    match child.name.as_str() {
        "BlockSize" => {
            target.block = size::block(&number(child, 1, BYTES)?.to_string(), "<BlockSize>", &child.place)?
        }
        "StrideSize" | "SequentialStride" => draft.stride = Some(number(child, 1, BYTES)?),
        "Random" => draft.random = Some(number(child, 1, BYTES)?),
        "RandomRatio" => draft.ratio = Some(number(child, 1, 100)?),
        "InterlockedSequential" => draft.interlocked = boolean(child)?,
        "BaseFileOffset" => target.base = number(child, 0, BYTES)?,
        "MaxFileSize" => target.stop = Some(number(child, 0, BYTES)?).filter(|&stop| stop > 0),
        "FileSize" => target.create = Some(number(child, 0, BYTES)?).filter(|&size| size > 0),
        "RequestCount" => target.depth = number(child, 1, COUNT)?,
        "WriteRatio" => target.writes = number(child, 0, 100)?,
        "ThreadsPerFile" => target.threads = number(child, 1, COUNT)?,
        "ThreadStride" => target.thread_stride = number(child, 0, BYTES)?,
        "ThinkTime" => target.think_ms = Some(number(child, 0, SECONDS)?).filter(|&time| time > 0),
        "BurstSize" => target.burst = Some(number(child, 0, COUNT)?).filter(|&count| count > 0),
        "DisableOSCache" => target.cache.direct |= boolean(child)?,
        "WriteThrough" => target.cache.write_through |= boolean(child)?,
        "DisableAllCache" => {
            let both = boolean(child)?;
            target.cache.direct |= both;
            target.cache.write_through |= both;
        }
        _ => {}
    }
    Ok(())
}

/// The path, with `*1` and `*2` replaced by targets of the command line.
fn path(element: &Element, options: &Options<'_>, findings: &mut Findings) -> Result<String, Fault> {
    let Some(number) = element.text.strip_prefix('*') else { return Ok(element.text.clone()) };
    if let Some((_, value)) = options.variables.iter().find(|(name, _)| name == number) {
        return Ok(value.clone());
    }
    let text = format!(
        "the path *{number} stands for a target that the command line names: give the run its targets"
    );
    findings.note(NoteKind::Changed, &element.place, "Path", text);
    Ok(element.text.clone())
}

fn throughput(element: &Element) -> Result<Option<Throughput>, Fault> {
    let number = number(element, 0, u64::MAX >> 20)?;
    match element.attribute("unit") {
        _ if number == 0 => Ok(None),
        None | Some("BPMS") => Ok(Some(Throughput::BytesPerMillisecond(number))),
        Some("IOPS") => Ok(Some(Throughput::Iops(number))),
        Some(other) => Err(refused(
            &element.place,
            format!("the unit {}", other.chars().take(40).collect::<String>()),
            "DiskSPD knows BPMS and IOPS",
            "write unit=\"IOPS\"",
        )),
    }
}

fn buffer(element: &Element, findings: &mut Findings) -> Result<Buffer, Fault> {
    let inner =
        |parent: &Element, name: &str| parent.children.iter().find(|child| child.name == name).cloned();
    for child in &element.children {
        known(child, "Within a Target", findings);
    }
    let pattern = inner(element, "Pattern").map_or("sequential".to_owned(), |pattern| pattern.text);
    match pattern.as_str() {
        "sequential" => Ok(Buffer::Counting),
        "zero" => Ok(Buffer::Zeroes),
        "random" => {
            let Some(source) = inner(element, "RandomDataSource") else { return Ok(Buffer::Random) };
            for child in &source.children {
                known(child, "Within a Target", findings);
            }
            match inner(&source, "SizeInBytes") {
                Some(size) => Ok(Buffer::Window(number(&size, 1, BYTES)?)),
                None => Ok(Buffer::Random),
            }
        }
        other => Err(refused(
            &element.place,
            format!("the pattern `{}`", other.chars().take(40).collect::<String>()),
            "DiskSPD knows sequential, zero and random",
            "write one of them",
        )),
    }
}

fn distribution(element: &Element, findings: &mut Findings) -> Result<Vec<Zone>, Fault> {
    let mut zones = Vec::new();
    for kind in &element.children {
        if !known(kind, "Within a Target", findings) {
            continue;
        }
        for range in &kind.children {
            if !known(range, "Within a Target", findings) {
                continue;
            }
            let ios = range.attribute("IO").and_then(|ios| ios.parse::<u64>().ok()).filter(|ios| *ios <= 100);
            let Some(ios) = ios else {
                return Err(refused(
                    &range.place,
                    "a <Range> without its attribute IO",
                    "DiskSPD's schema refuses it",
                    "write <Range IO=\"95\">5</Range>",
                ));
            };
            let length = match kind.name.as_str() {
                "Percent" => Extent::Percent(number(range, 0, 100)? as f64),
                "Absolute" => Extent::Bytes(number(range, 0, BYTES)?),
                _ => {
                    return Err(malformed(
                        &kind.place,
                        format!("<{}> in a <Distribution>", kind.name),
                        "take it out",
                    ));
                }
            };
            zones.push(Zone { ios: ios as f64, length });
            if zones.len() > limits::MIX_LINES_MAX {
                return Err(malformed(&range.place, "there are too many ranges", "write fewer"));
            }
        }
    }
    super::convert::closed(zones)
        .map_err(|tool| refused(&element.place, "the ranges", tool, "write shares of at most 100 %"))
}
