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

/// Attributes of an element: those of a profile have one.
const ATTRIBUTES_MAX: usize = 32;

/// The outermost element.
pub(crate) fn parse(source: &Source) -> Result<Element, Fault> {
    let text = source.text.trim_start_matches('\u{feff}');
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Element> = Vec::new();
    let mut places = Places { file: &source.name, text, offset: 0, line: 1, column: 1 };
    let mut count = 0;
    loop {
        let at = usize::try_from(reader.buffer_position()).unwrap_or(text.len());
        let event = reader.read_event().map_err(|error| {
            let at = usize::try_from(reader.error_position()).unwrap_or(at);
            malformed(&places.of(at), format!("the text is not XML: {error}"), "close every element")
        })?;
        count += usize::from(matches!(event, Event::Start(_) | Event::Empty(_)));
        if open.len() > DEPTH_MAX || count > limits::GROUPS_MAX {
            return Err(malformed(&places.of(at), "the profile has too many elements", "split the profile"));
        }
        let closed = match event {
            Event::Start(start) => {
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
                        "start with <Profile>",
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
            Event::Eof => return Err(ended(open.pop(), &mut places)),
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
fn ended(open: Option<Element>, places: &mut Places<'_>) -> Fault {
    match open {
        Some(element) => malformed(
            &element.place,
            format!("<{}> is not closed", element.name),
            format!("add </{}>", element.name),
        ),
        None => malformed(&places.of(0), "the text has no element", "start with <Profile>"),
    }
}

fn element(start: &BytesStart<'_>, place: Place) -> Result<Element, Fault> {
    let name = start.local_name().as_ref().to_owned();
    let mut attributes = Vec::new();
    for (index, attribute) in start.attributes().enumerate() {
        if index == ATTRIBUTES_MAX {
            let found = format!("<{name}> has more than {ATTRIBUTES_MAX} attributes");
            return Err(malformed(&place, found, "remove attributes that are no part of a profile"));
        }
        let attribute = attribute.map_err(|error| {
            malformed(
                &place,
                format!("an attribute of <{name}> cannot be read: {error}"),
                "correct the attribute",
            )
        })?;
        let value = attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0).map_err(|error| {
            malformed(
                &place,
                format!("an attribute of <{name}> cannot be read: {error}"),
                "correct the attribute",
            )
        })?;
        let key = attribute.key.local_name().as_ref().to_owned();
        attributes.push((key, value.into_owned()));
    }
    Ok(Element { name, place, attributes, text: String::new(), children: Vec::new() })
}

/// Places of byte offsets, which are asked for in their order: what was counted once is not counted again.
struct Places<'a> {
    file: &'a str,
    text: &'a str,
    offset: usize,
    line: u32,
    column: u32,
}

impl Places<'_> {
    fn of(&mut self, offset: usize) -> Place {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        if offset < self.offset {
            (self.offset, self.line, self.column) = (0, 1, 1);
        }
        for letter in self.text[self.offset..offset].chars() {
            match letter {
                '\n' => (self.line, self.column) = (self.line + 1, 1),
                _ => self.column += 1,
            }
        }
        self.offset = offset;
        Place { file: self.file.to_owned(), line: self.line, column: self.column }
    }
}
