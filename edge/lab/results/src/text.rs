//! Lines, fields and numbers, as several readers need them.

/// Lines with their numbers from 1, whatever ends them; a byte-order mark at the beginning is left out.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.trim_start_matches('\u{feff}').lines().enumerate().map(|(at, line)| (at + 1, line))
}

/// The fields of a line of CSV: a field in double quotes may hold separators and doubled quotes.
pub(crate) fn fields(line: &str, separator: char) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => {
                field.push('"');
                rest.next();
            }
            // Quotes count only around a whole field: elsewhere they are text.
            '"' if quoted || field.trim().is_empty() => {
                // Blanks before the quotes are no part of it.
                if !quoted {
                    field.clear();
                }
                quoted = !quoted;
            }
            c if c == separator && !quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    fields
}

/// A finite number, with commas between thousands allowed ("1,234.5").
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain: String = if text.contains(',') && text.chars().all(|c| c.is_ascii_digit() || ",.-".contains(c))
    {
        text.chars().filter(|c| *c != ',').collect()
    } else {
        text.to_owned()
    };
    // "inf" and "nan" parse and are no measurement.
    plain.parse().ok().filter(|value: &f64| value.is_finite())
}

/// The step in which a number was printed: 0.01 for "1.20", 1 for "7". An exponent moves the point.
pub(crate) fn step(text: &str) -> f64 {
    let text = text.trim();
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let after = digits.split_once('.').map_or(0, |(_, after)| after.len());
    exponent.parse::<i32>().map_or(0.0, |exponent| 10f64.powi(exponent.saturating_sub(after as i32)))
}

/// A line without what stands in angle brackets: Vdbench writes its tables as HTML.
pub(crate) fn without_tags(line: &str) -> String {
    let (mut plain, mut rest) = (String::new(), line);
    while let Some(begin) = rest.find('<') {
        // "0.02 < 0.04" is no tag: a tag has a letter or a slash right after the bracket, and an end.
        let is_tag = rest[begin + 1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        match rest[begin..].find('>').filter(|_| is_tag) {
            Some(end) => {
                plain.push_str(&rest[..begin]);
                rest = &rest[begin + end + 1..];
            }
            None => {
                plain.push_str(&rest[..=begin]);
                rest = &rest[begin + 1..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_may_be_quoted() {
        assert_eq!(fields("a,\"b,c\", \"d\"\"e\",C: \"Vol\"", ','), ["a", "b,c", "d\"e", "C: \"Vol\""]);
        assert_eq!(fields("", ','), [""]);
        assert_eq!(fields("\"open,x", ','), ["open,x"]);
    }

    #[test]
    fn numbers_are_finite() {
        assert_eq!(number(" 1,234.5 "), Some(1234.5));
        assert_eq!(number("NaN"), None);
        assert_eq!(number("inf"), None);
        assert_eq!(number("1e400"), None);
        assert_eq!(number(""), None);
    }

    #[test]
    fn a_step_is_the_last_digit_that_was_printed() {
        for (text, expected) in
            [("1.20", 0.01), (" 7 ", 1.0), ("0.5", 0.1), ("1.5e-3", 1e-4), ("1,234.5", 0.1)]
        {
            assert!((step(text) / expected - 1.0).abs() < 1e-9, "{text}");
        }
    }

    #[test]
    fn tags_are_left_out_and_comparisons_stay() {
        assert_eq!(without_tags("<a name=\"x\"></a>12 < 13 <i>z"), "12 < 13 z");
        assert_eq!(without_tags("open <b"), "open <b");
    }
}
