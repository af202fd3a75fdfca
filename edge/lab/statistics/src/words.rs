//! Numbers as people write them, for the sentences of this crate and of those who add to them.

/// A share as percent: "12 %", "3.5 %", "0.36 %". The sign is kept.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    let digits = match value.abs() {
        size if size >= 9.95 => 0,
        size if size >= 0.995 || size == 0.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{} %", if text == "-0" { "0" } else { text })
}

/// A number with as many digits as it needs to be told from its neighbours: "64", "2.5", "0.312", "0.000417".
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.01 || size == 0.0 => 3,
        size if size >= 0.001 => 5,
        _ => 6,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A count with its noun, which agrees: "1 row", "2 rows", "0 I/Os".
pub fn counted<N: std::fmt::Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Seconds as milliseconds with two digits after the point, or more where they would be lost: "0.50 ms", "217.08 ms",
/// "0.0041 ms".
pub fn milliseconds(seconds: f64) -> String {
    let value = seconds * 1e3;
    let digits = match value.abs() {
        size if size >= 0.0995 || size == 0.0 => 2,
        size if size >= 0.009_95 => 3,
        _ => 4,
    };
    format!("{value:.digits$} ms")
}

/// I/Os per second: "0.13", "12.5", "850", "67.8 k", "2.02 M".
pub fn rate(per_second: f64) -> String {
    match per_second.abs() {
        size if size >= 1e6 => format!("{:.2} M", per_second / 1e6),
        size if size >= 1e4 => format!("{:.1} k", per_second / 1e3),
        size if size >= 99.95 => format!("{per_second:.0}"),
        _ => number(per_second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        let check = |found: String, expected: &str| assert_eq!(found, expected);
        check(percent(0.1249), "12 %");
        check(percent(0.0351), "3.5 %");
        check(percent(-0.0036), "-0.36 %");
        check(percent(0.0), "0 %");
        check(percent(-0.000_000_1), "0 %");
        check(percent(1.0), "100 %");
        check(number(255.73), "256");
        check(number(4.0), "4");
        check(number(0.3117), "0.312");
        check(milliseconds(0.00050475), "0.50 ms");
        check(milliseconds(0.217_078), "217.08 ms");
        check(milliseconds(0.000_017_3), "0.017 ms");
        check(milliseconds(0.000_004_12), "0.0041 ms");
        check(milliseconds(0.0), "0.00 ms");
        check(counted(0u64, "I/O"), "0 I/Os");
        check(counted(1usize, "row"), "1 row");
        check(counted(2u32, "row"), "2 rows");
        check(rate(67_848.0), "67.8 k");
        check(rate(850.4), "850");
        check(rate(99.97), "100");
        check(rate(12.54), "12.5");
        check(rate(0.13), "0.13");
        check(rate(0.000_417), "0.000417");
    }
}
