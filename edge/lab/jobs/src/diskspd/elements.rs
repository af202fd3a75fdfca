//! An XML text as elements with their places.

use crate::error::Fault;
use crate::findings::malformed;
use crate::limits;
use crate::source::Source;
use plan::Place;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// An element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) text: String,
    pub(crate) children: Vec<Element>,
}

impl Element {
    /// The value of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Elements within elements: a profile has seven levels.
const DEPTH_MAX: usize = 32;

/// The outermost element.
pub(crate) fn parse(source: &Source) -> Result<Element, Fault> {
    let text = source.text.trim_start_matches('\u{feff}');
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Element> = Vec::new();
    let places = Places { file: &source.name, text };
    let mut count = 0;
    loop {
        let at = usize::try_from(reader.buffer_position()).unwrap_or(text.len());
        let event = reader.read_event().map_err(|error| {
            let at = usize::try_from(reader.error_position()).unwrap_or(at);
            malformed(
                &places.of(at),
                format!("this is no XML: {error}"),
                "close every element that is opened",
            )
        })?;
        let closed = match event {
            Event::Start(start) => {
                count += 1;
                if open.len() >= DEPTH_MAX || count > limits::GROUPS_MAX {
                    return Err(malformed(
                        &places.of(at),
                        "there are too many elements",
                        "split the profile",
                    ));
                }
                open.push(element(&start, places.of(at))?);
                None
            }
            Event::Empty(start) => Some(element(&start, places.of(at))?),
            Event::End(_) => open.pop(),
            Event::Text(piece) => {
                if let Some(element) = open.last_mut() {
                    element.text.push_str(piece.trim());
                } else if !piece.trim().is_empty() {
                    return Err(malformed(
                        &places.of(at),
                        "text outside of any element",
                        "begin with <Profile>",
                    ));
                }
                None
            }
            Event::CData(piece) => {
                if let Some(element) = open.last_mut() {
                    element.text.push_str(piece.trim());
                }
                None
            }
            Event::GeneralRef(name) => {
                let letter =
                    quick_xml::escape::unescape(&format!("&{};", &*name)).map(|text| text.into_owned());
                if let (Ok(letter), Some(element)) = (letter, open.last_mut()) {
                    element.text.push_str(&letter);
                }
                None
            }
            Event::Eof => return Err(ended(open.pop(), &places)),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => None,
        };
        let Some(element) = closed else { continue };
        match open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => return Ok(element),
        }
    }
}

/// The text ends within an element, or has none.
fn ended(open: Option<Element>, places: &Places<'_>) -> Fault {
    match open {
        Some(element) => malformed(
            &element.place,
            format!("<{}> is not closed", element.name),
            format!("add </{}>", element.name),
        ),
        None => malformed(&places.of(0), "the text has no element", "begin with <Profile>"),
    }
}

fn element(start: &BytesStart<'_>, place: Place) -> Result<Element, Fault> {
    let name = start.local_name().as_ref().to_owned();
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| {
            malformed(&place, format!("an attribute of <{name}> cannot be read: {error}"), "correct it")
        })?;
        let value = attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0).map_err(|error| {
            malformed(&place, format!("an attribute of <{name}> cannot be read: {error}"), "correct it")
        })?;
        let key = attribute.key.local_name().as_ref().to_owned();
        attributes.push((key, value.into_owned()));
    }
    Ok(Element { name, place, attributes, text: String::new(), children: Vec::new() })
}

/// Places of byte offsets.
struct Places<'a> {
    file: &'a str,
    text: &'a str,
}

impl Places<'_> {
    fn of(&self, offset: usize) -> Place {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |index| index + 1);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        Place {
            file: self.file.to_owned(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        }
    }
}
