//! Writing HTML: every word that comes from outside passes through [`escaped`].

use std::fmt::Write;

/// Text as HTML shows it, safe in elements and in quoted attributes.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Control letters are no HTML; a name that has them is shown without.
            letter if letter.is_control() && letter != '\n' => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}

/// JSON as it may stand in a script element: no end of the element can occur in it.
pub fn json(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(value).expect("charts are plain data");
    text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// A cell of a table.
#[derive(Debug, Clone)]
pub enum Cell {
    /// Words, to the left.
    Words(String),
    /// A figure, to the right.
    Figure(String),
    /// A figure of too few values, greyed, with the reason.
    Weak(String, &'static str),
    /// A mark of how serious something is: a word with a colour.
    Tag(&'static str, Severity),
}

/// How serious something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// As it should be.
    Good,
    /// To be known.
    Note,
    /// The figures cannot be used as they are.
    Serious,
}

impl Severity {
    /// The class that gives it its colour.
    pub fn class(self) -> &'static str {
        match self {
            Severity::Good => "good",
            Severity::Note => "note",
            Severity::Serious => "serious",
        }
    }
}

/// A table with a head, in a box that scrolls when the page is narrow. The first column names the row.
pub fn table(head: &[&str], rows: &[Vec<Cell>]) -> String {
    let mut text = String::from("<div class=\"scroll\"><table><thead><tr>");
    for (index, name) in head.iter().enumerate() {
        let figure =
            rows.first().is_some_and(|row| matches!(row.get(index), Some(Cell::Figure(_) | Cell::Weak(..))));
        let class = if figure { " class=\"figure\"" } else { "" };
        write!(text, "<th scope=\"col\"{class}>{}</th>", escaped(name)).expect("strings take all");
    }
    text.push_str("</tr></thead><tbody>");
    for row in rows {
        text.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            text.push_str(&cell_text(cell, index));
        }
        text.push_str("</tr>");
    }
    text.push_str("</tbody></table></div>\n");
    text
}

fn cell_text(cell: &Cell, index: usize) -> String {
    match cell {
        Cell::Words(words) if index == 0 => format!("<th scope=\"row\">{}</th>", escaped(words)),
        Cell::Words(words) => format!("<td>{}</td>", escaped(words)),
        Cell::Figure(figure) => format!("<td class=\"figure\">{}</td>", escaped(figure)),
        Cell::Weak(figure, why) => {
            format!("<td class=\"figure weak\" title=\"{}\">{}</td>", escaped(why), escaped(figure))
        }
        Cell::Tag(word, severity) => {
            format!("<td><span class=\"tag {}\">{}</span></td>", severity.class(), escaped(word))
        }
    }
}

/// Sentences as a list; beyond the limit it says how many are left out.
pub fn list(lines: impl IntoIterator<Item = String>) -> String {
    let mut text = String::from("<ul>");
    let mut rest = 0;
    for (index, line) in lines.into_iter().enumerate() {
        if index < crate::SENTENCES_MAX {
            write!(text, "<li>{}</li>", escaped(&line)).expect("strings take all");
        } else {
            rest += 1;
        }
    }
    if rest > 0 {
        write!(text, "<li>and {rest} more</li>").expect("strings take all");
    }
    text.push_str("</ul>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_can_leave_its_element() {
        assert_eq!(
            escaped("</td><script>alert('1')</script> & \"x\"\u{7}"),
            "&lt;/td&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;x&quot;\u{fffd}"
        );
        assert_eq!(json(&"</script><!--"), "\"\\u003c/script>\\u003c!--\"");
    }
}
