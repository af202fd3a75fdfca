//! XML profiles of DiskSPD.

use super::draft::{BYTES, Draft, RATE};
use super::elements::{Element, parse};
use super::keys::{ByElement, ELEMENTS};
use super::settings::{Buffer, Span, Throughput};
use super::size;
use crate::error::Fault;
use crate::findings::{Findings, malformed, refused, shown};
use crate::keys::Treatment;
use crate::limits;
use crate::source::{Options, Source};
use plan::{Extent, NoteKind, Place, Zone};

/// What a command line with `-X` overrides in every time span.
pub(crate) struct Overrides {
    /// The rows of [`OVERRIDABLE`] that are overridden.
    pub(crate) rows: Vec<&'static Overridable>,
    /// What they are taken from.
    pub(crate) span: Span,
}

/// A flag, its element, and what the one copies in place of the other.
pub(crate) type Overridable = (&'static str, &'static str, fn(&mut Span, &Span));

/// All that may be overridden.
pub(crate) const OVERRIDABLE: [Overridable; 4] = [
    ("-d", "Duration", |span, given| span.duration = given.duration),
    ("-W", "Warmup", |span, given| span.warmup = given.warmup),
    ("-C", "Cooldown", |span, given| span.cooldown = given.cooldown),
    ("-z", "RandSeed", |span, given| span.seed = given.seed),
];

/// A profile as far as it is read.
pub(crate) struct Profile<'a> {
    options: &'a Options<'a>,
    overrides: &'a Overrides,
    spans: Vec<Span>,
    /// The time span and the target that are read.
    draft: Draft,
}

/// The time spans of a profile.
pub(crate) fn read(source: &Source, options: &Options<'_>, findings: &mut Findings) -> Vec<Span> {
    let span = Span { duration: options.duration.unwrap_or(0), ..Span::default() };
    let rows = options.duration.map(|_| &OVERRIDABLE[0]).into_iter().collect();
    let overrides = Overrides { rows, span };
    read_with(source, options, &overrides, findings)
}

/// The time spans of a profile with what its command line says.
pub(crate) fn read_with(
    source: &Source,
    options: &Options<'_>,
    overrides: &Overrides,
    findings: &mut Findings,
) -> Vec<Span> {
    let Some(element) = findings.take(parse(source)) else { return Vec::new() };
    if element.name != "Profile" {
        let found = format!("the outermost element is <{}>", element.name);
        findings.fault(rejected(&element.place, found, "start with <Profile>"));
        return Vec::new();
    }
    let draft = Draft::new(&element.place);
    let mut profile = Profile { options, overrides, spans: Vec::new(), draft };
    profile.within(&element, findings);
    if profile.spans.is_empty() && findings.faults.is_empty() {
        let remedy = "add <TimeSpans><TimeSpan>…";
        findings.fault(rejected(&element.place, "the profile has no time span", remedy));
    }
    profile.spans
}

/// What DiskSPD's schema does not allow.
fn rejected(place: &Place, found: impl Into<String>, remedy: impl Into<String>) -> Fault {
    refused(place, found, "DiskSPD's schema rejects the profile", remedy)
}

impl Profile<'_> {
    /// Applies what stands within an element.
    fn within(&mut self, element: &Element, findings: &mut Findings) {
        for (index, child) in element.children.iter().enumerate() {
            if findings.is_full() {
                return;
            }
            let is_list = matches!(child.name.as_str(), "TimeSpan" | "Target" | "Range");
            if !is_list && element.children[..index].iter().any(|earlier| earlier.name == child.name) {
                let found = format!("<{}> stands twice in <{}>", child.name, element.name);
                findings.fault(rejected(&child.place, found, "remove one of them"));
                continue;
            }
            let applied = self.apply(child, &element.name, findings);
            findings.take(applied);
        }
    }

    fn apply(&mut self, element: &Element, scope: &str, findings: &mut Findings) -> Result<(), Fault> {
        let scoped = || ELEMENTS.iter().copied().flatten().filter(|rule| rule.key.scope == scope);
        let Some(rule) = scoped().find(|rule| rule.key.is(&element.name)) else {
            let near = crate::keys::nearest(&element.name, scoped().map(|rule| rule.key.name));
            let shown = shown(&element.name);
            let remedy = near.map_or("remove it".to_owned(), |near| format!("did you mean <{near}>?"));
            return Err(rejected(&element.place, format!("<{scope}> has no element <{shown}>"), remedy));
        };
        let is_off = matches!(element.text.as_str(), "false" | "0");
        if rule.key.treatment != Treatment::Carried && is_off
            || self.overrides.rows.iter().any(|row| row.1 == element.name)
        {
            return Ok(());
        }
        let shown = format!("<{}>", element.name);
        match rule.admit(&element.name, &shown, &element.place, findings)? {
            None if rule.key.treatment == Treatment::Carried => self.within(element, findings),
            None => {}
            Some(ByElement::Optional(_)) if element.text == "0" => {}
            Some(ByElement::Number(number) | ByElement::Optional(number)) => {
                (number.set)(&mut self.draft, element.number(number.least, number.most)?);
            }
            Some(ByElement::Switch(set)) if element.boolean()? => set(&mut self.draft),
            Some(ByElement::Switch(_)) => {}
            Some(ByElement::Own(set)) => set(self, element, findings)?,
        }
        Ok(())
    }

    /// Adds a zone of the target's distribution.
    fn zone(&mut self, range: &Element, length: Extent) -> Result<(), Fault> {
        let ios = range.attribute("IO").and_then(|ios| ios.parse::<u64>().ok()).filter(|ios| *ios <= 100);
        let Some(ios) = ios else {
            let found = "<Range> has no attribute IO of 0 to 100";
            return Err(rejected(&range.place, found, "write <Range IO=\"95\">5</Range>"));
        };
        let zones = &mut self.draft.target.zones;
        if zones.len() == limits::MIX_LINES_MAX {
            let found = format!("there are more than {} ranges", limits::MIX_LINES_MAX);
            return Err(malformed(&range.place, found, "write fewer"));
        }
        zones.push(Zone { ios: ios as f64, length });
        Ok(())
    }
}

impl Element {
    /// Its text as a number.
    pub(super) fn number(&self, least: u64, most: u64) -> Result<u64, Fault> {
        if self.text.is_empty() {
            return Err(rejected(
                &self.place,
                format!("<{}> is empty: the profile is a template", self.name),
                format!(
                    "write a number into <{}>, pass --duration for an empty <Duration>, or create the profile with the script \
                     that fills the template (New-FleetProfile)",
                    self.name
                ),
            ));
        }
        self.text.parse::<u64>().ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
            let text = shown(&self.text);
            let remedy = format!("write a whole number, {least} to {most}");
            rejected(&self.place, format!("<{}> is `{text}`", self.name), remedy)
        })
    }

    /// Its text as a switch.
    pub(super) fn boolean(&self) -> Result<bool, Fault> {
        match self.text.as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => {
                let found = format!("<{}> is neither true nor false", self.name);
                Err(rejected(&self.place, found, "write true or false"))
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        self.children.iter().any(|child| child.name == name)
    }
}

/// A time span.
pub(super) fn span(
    profile: &mut Profile<'_>,
    element: &Element,
    findings: &mut Findings,
) -> Result<(), Fault> {
    if profile.spans.len() > limits::STAGES_MAX {
        return Ok(());
    }
    profile.draft = Draft::new(&element.place);
    profile.within(element, findings);
    let mut span = profile.draft.span.clone();
    for (_, _, copy) in &profile.overrides.rows {
        copy(&mut span, &profile.overrides.span);
    }
    for target in span.targets.iter_mut().filter(|_| profile.draft.random_data) {
        if target.buffer == Buffer::Counting {
            target.buffer = Buffer::Random;
        }
    }
    if span.targets.is_empty() && findings.faults.is_empty() {
        let remedy = "add <Targets><Target><Path>…";
        findings.fault(rejected(&span.place, "the time span has no target", remedy));
    }
    super::convert::check(&span, findings);
    profile.spans.push(span);
    Ok(())
}

/// A target of the time span.
pub(super) fn target(
    profile: &mut Profile<'_>,
    element: &Element,
    findings: &mut Findings,
) -> Result<(), Fault> {
    let Draft { span, random_data, .. } = std::mem::take(&mut profile.draft);
    profile.draft = Draft::new(&element.place);
    (profile.draft.span, profile.draft.random_data) = (span, random_data);
    profile.within(element, findings);
    let target = profile.draft.target();
    let mut refuse = |found: &str, tool: &str, remedy: &str| {
        findings.fault(refused(&element.place, found, tool, remedy));
    };
    if element.has("Random") && (element.has("StrideSize") || element.has("SequentialStride")) {
        refuse("the target has <Random> and <StrideSize>", "DiskSPD rejects both together", "remove one");
    }
    if !target.zones.is_empty() && !profile.draft.random {
        refuse(
            "the target has a <Distribution> and no <Random>: the profile is a template",
            "DiskSPD rejects a distribution of sequential I/O",
            &format!("add <Random>{}</Random>", target.block),
        );
    }
    if target.burst.is_some() != target.think_ms.is_some() {
        refuse(
            "the target has only one of <BurstSize> and <ThinkTime>",
            "DiskSPD expects both",
            "add the other",
        );
    }
    if target.path.is_empty() && findings.faults.is_empty() {
        findings.fault(rejected(&element.place, "the target has no <Path>", "add <Path>"));
    }
    profile.draft.span.targets.push(target);
    Ok(())
}

/// The path, with `*1` and `*2` replaced by targets of the command line.
pub(super) fn path(
    profile: &mut Profile<'_>,
    element: &Element,
    findings: &mut Findings,
) -> Result<(), Fault> {
    let number = element.text.strip_prefix('*');
    let named = profile.options.variables.iter().find(|(name, _)| Some(name.as_str()) == number);
    if let (Some(number), None) = (number, named) {
        let text = format!("the path *{number} stands for a target of the command line: pass --target");
        findings.note(NoteKind::Changed, &element.place, "Path", text);
    }
    profile.draft.target.path = named.map_or(&element.text, |(_, value)| value).clone();
    Ok(())
}

pub(super) fn throughput(
    profile: &mut Profile<'_>,
    element: &Element,
    _: &mut Findings,
) -> Result<(), Fault> {
    let number = element.number(0, RATE)?;
    profile.draft.target.throughput = match element.attribute("unit") {
        _ if number == 0 => None,
        None | Some("BPMS") => Some(Throughput::BytesPerMillisecond(number)),
        Some("IOPS") => Some(Throughput::Iops(number)),
        Some(other) => {
            let unit = shown(other);
            return Err(rejected(
                &element.place,
                format!("the unit {unit}"),
                "write unit=\"IOPS\" or unit=\"BPMS\"",
            ));
        }
    };
    Ok(())
}

pub(super) fn block(profile: &mut Profile<'_>, element: &Element, _: &mut Findings) -> Result<(), Fault> {
    let bytes = element.number(1, BYTES)?.to_string();
    profile.draft.target.block = size::block(&bytes, "<BlockSize>", &element.place)?;
    Ok(())
}

pub(super) fn percent(profile: &mut Profile<'_>, range: &Element, _: &mut Findings) -> Result<(), Fault> {
    profile.zone(range, Extent::Percent(range.number(0, 100)? as f64))
}

pub(super) fn bytes(profile: &mut Profile<'_>, range: &Element, _: &mut Findings) -> Result<(), Fault> {
    profile.zone(range, Extent::Bytes(range.number(0, BYTES)?))
}

pub(super) fn pattern(profile: &mut Profile<'_>, element: &Element, _: &mut Findings) -> Result<(), Fault> {
    profile.draft.target.buffer = match element.text.as_str() {
        "sequential" => Buffer::Counting,
        "zero" => Buffer::Zeroes,
        "random" => Buffer::Random,
        other => {
            let shown = shown(other);
            return Err(rejected(
                &element.place,
                format!("the pattern `{shown}`"),
                "write sequential, zero or random",
            ));
        }
    };
    Ok(())
}

pub(super) fn distribution(
    profile: &mut Profile<'_>,
    element: &Element,
    findings: &mut Findings,
) -> Result<(), Fault> {
    profile.within(element, findings);
    let zones = std::mem::take(&mut profile.draft.target.zones);
    profile.draft.target.zones = super::convert::closed(zones)
        .map_err(|tool| refused(&element.place, "the ranges", tool, "write shares of at most 100 %"))?;
    Ok(())
}
