//! What `top` shows: which disks, in which order, in which columns, so that every line fits the terminal.

use super::keys::Key;
use crate::text;
use api::types::{FiguresView, TopView};
use clap::ValueEnum;
use std::cmp::Ordering;

/// The narrowest terminal that is made use of.
const WIDTH_MIN: usize = 60;
/// Names of disks are cut down to this before a line is cut.
const NAME_WIDTH_MIN: usize = 12;
/// Lines around the disks: the sums, a blank line, the headings, and the keys.
const LINES_AROUND: usize = 4;

/// By what disks are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopSort {
    /// I/Os per second, reads and writes together.
    Iops,
    /// Reads per second.
    ReadIops,
    /// Writes per second.
    WriteIops,
    /// Bytes per second, reads and writes together.
    Throughput,
    /// 99th percentile of the latency of reads.
    ReadLatency,
    /// 99th percentile of the latency of writes.
    WriteLatency,
    /// Requests in flight.
    Outstanding,
    /// Attached clients.
    Clients,
    /// Name of the disk.
    Name,
}

impl TopSort {
    fn next(self) -> TopSort {
        let all = TopSort::value_variants();
        let at = all.iter().position(|one| *one == self).expect("it is one of them");
        all[(at + 1) % all.len()]
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The largest figure first; names from A to Z.
    fn compare(self, a: &FiguresView, b: &FiguresView) -> Ordering {
        let iops = |disk: &FiguresView| disk.read.iops + disk.write.iops;
        let bytes = |disk: &FiguresView| disk.read.bytes_per_second + disk.write.bytes_per_second;
        let by_figure = match self {
            TopSort::Iops => iops(b).total_cmp(&iops(a)),
            TopSort::ReadIops => b.read.iops.total_cmp(&a.read.iops),
            TopSort::WriteIops => b.write.iops.total_cmp(&a.write.iops),
            TopSort::Throughput => bytes(b).total_cmp(&bytes(a)),
            TopSort::ReadLatency => {
                let latency = |disk: &FiguresView| disk.read.latency_us_p99.unwrap_or(-1.0);
                latency(b).total_cmp(&latency(a))
            }
            TopSort::WriteLatency => {
                let latency = |disk: &FiguresView| disk.write.latency_us_p99.unwrap_or(-1.0);
                latency(b).total_cmp(&latency(a))
            }
            TopSort::Outstanding => b.outstanding.cmp(&a.outstanding),
            TopSort::Clients => b.client_count.cmp(&a.client_count),
            TopSort::Name => Ordering::Equal,
        };
        by_figure.then_with(|| a.disk.cmp(&b.disk))
    }
}

/// A column.
struct Column {
    heading: &'static str,
    /// The higher, the sooner it is left out where the terminal is narrow.
    expendability: u8,
    value: fn(&FiguresView) -> String,
}

/// The columns beside the disk's name.
const COLUMNS: [Column; 11] = [
    Column { heading: "read iops", expendability: 0, value: |disk| format!("{:.0}", disk.read.iops) },
    Column { heading: "read", expendability: 5, value: |disk| text::rate(disk.read.bytes_per_second) },
    Column { heading: "read p50", expendability: 9, value: |disk| text::latency(disk.read.latency_us_p50) },
    Column { heading: "read p99", expendability: 2, value: |disk| text::latency(disk.read.latency_us_p99) },
    Column { heading: "write iops", expendability: 1, value: |disk| format!("{:.0}", disk.write.iops) },
    Column { heading: "write", expendability: 6, value: |disk| text::rate(disk.write.bytes_per_second) },
    Column {
        heading: "write p50",
        expendability: 10,
        value: |disk| text::latency(disk.write.latency_us_p50),
    },
    Column { heading: "write p99", expendability: 3, value: |disk| text::latency(disk.write.latency_us_p99) },
    Column { heading: "outstanding", expendability: 7, value: |disk| disk.outstanding.to_string() },
    Column { heading: "limit", expendability: 4, value: limit },
    Column { heading: "clients", expendability: 8, value: |disk| disk.client_count.to_string() },
];

/// `limited` while requests wait for a limit of the disk.
fn limit(disk: &FiguresView) -> String {
    let is_limited = disk.limit.as_ref().is_some_and(|limit| limit.is_limited);
    if is_limited { "limited".to_owned() } else { "-".to_owned() }
}

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// What becomes of the display after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Redraw,
    Quit,
}

/// What is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Screen {
    pub(super) sort: TopSort,
    pub(super) reverse: bool,
    /// Only disks with this in their names.
    filter: String,
    /// Whether keys go into the filter.
    is_typing: bool,
    pub(super) is_paused: bool,
    /// The first disk that is shown.
    first: usize,
    /// Disks on a page; `None`: as many as the terminal has room for.
    disks_max: Option<usize>,
}

impl Screen {
    pub(super) fn new(sort: TopSort, reverse: bool, disks_max: Option<usize>) -> Screen {
        Screen {
            sort,
            reverse,
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            first: 0,
            disks_max,
        }
    }

    /// A key was pressed.
    pub(super) fn press(&mut self, key: Key, size: Size) -> Next {
        let page = self.page(size);
        match key {
            Key::Enter if self.is_typing => self.is_typing = false,
            Key::Escape => {
                self.is_typing = false;
                self.filter.clear();
            }
            Key::Backspace if self.is_typing => drop(self.filter.pop()),
            Key::Char(typed) if self.is_typing => {
                self.filter.push(typed);
                self.first = 0;
            }
            Key::Char('q') => return Next::Quit,
            Key::Char('s') => self.sort = self.sort.next(),
            Key::Char('r') => self.reverse = !self.reverse,
            Key::Char('/') => self.is_typing = true,
            Key::Char(' ') => self.is_paused = !self.is_paused,
            Key::Char('j') | Key::Down => self.first += 1,
            Key::Char('k') | Key::Up => self.first = self.first.saturating_sub(1),
            Key::PageDown => self.first += page,
            Key::PageUp => self.first = self.first.saturating_sub(page),
            Key::Char('g') | Key::Home => self.first = 0,
            Key::Char('G') | Key::End => self.first = usize::MAX / 2,
            Key::Enter | Key::Backspace | Key::Char(_) => {}
        }
        Next::Redraw
    }

    /// How many disks are shown at once.
    fn page(&self, size: Size) -> usize {
        let room = size.height.saturating_sub(LINES_AROUND).max(1);
        self.disks_max.map_or(room, |most| most.min(room))
    }

    /// The lines for a terminal of that size, none of them longer than it is wide.
    pub(super) fn lines(&mut self, top: &TopView, size: Size) -> Vec<String> {
        let shown: Vec<&FiguresView> = self.sorted(top);
        let page = self.page(size);
        self.first = self.first.min(shown.len().saturating_sub(page));
        let rows: Vec<&FiguresView> = shown.iter().skip(self.first).take(page).copied().collect();
        let mut lines = vec![sums(top), String::new()];
        lines.extend(table(&rows, size.width).lines().map(str::to_owned));
        let last = self.first + rows.len();
        lines.resize(lines.len() + page.saturating_sub(rows.len()).min(size.height), String::new());
        lines.push(self.footer(self.first, last, shown.len()));
        lines.into_iter().map(|line| cut(&line, size.width)).collect()
    }

    /// The same without a terminal: all columns, and no keys.
    pub(super) fn plain(&self, top: &TopView, width: Option<usize>) -> String {
        let shown = self.sorted(top);
        let count = self.disks_max.unwrap_or(shown.len());
        let rows: Vec<&FiguresView> = shown.iter().take(count).copied().collect();
        let hidden = shown.len() - rows.len();
        let more = if hidden > 0 { format!("\n… and {hidden} more") } else { String::new() };
        format!("{}\n\n{}{more}", sums(top), table(&rows, width.unwrap_or(usize::MAX)))
    }

    fn sorted<'a>(&self, top: &'a TopView) -> Vec<&'a FiguresView> {
        let mut disks: Vec<&FiguresView> =
            top.disks.iter().filter(|disk| disk.disk.contains(&self.filter)).collect();
        disks.sort_by(|a, b| self.sort.compare(a, b));
        if self.reverse {
            disks.reverse();
        }
        disks
    }

    fn footer(&self, first: usize, last: usize, count: usize) -> String {
        if self.is_typing {
            return format!("filter: {}_  (Enter: keep, Esc: clear)", self.filter);
        }
        let mut parts = Vec::new();
        if self.is_paused {
            parts.push("PAUSED".to_owned());
        }
        if last - first < count {
            parts.push(format!("{}-{last} of {count}", first + 1));
        }
        if !self.filter.is_empty() {
            parts.push(format!("filter {}", self.filter));
        }
        let order = if self.reverse { " reversed" } else { "" };
        parts.push(format!("by {}{order}", self.sort.name()));
        parts.push("q quit  s sort  r reverse  / filter  space pause  j k scroll".to_owned());
        parts.join(" | ")
    }
}

fn sums(top: &TopView) -> String {
    let iops: f64 = top.disks.iter().map(|disk| disk.read.iops + disk.write.iops).sum();
    let bytes: f64 =
        top.disks.iter().map(|disk| disk.read.bytes_per_second + disk.write.bytes_per_second).sum();
    let congestion = top.congestion.values().max().copied().unwrap_or(0);
    let disks = if top.disks.len() == 1 { "disk" } else { "disks" };
    format!(
        "{} {disks}, {iops:.0} IOPS, {}, congestion {congestion} of 255",
        top.disks.len(),
        text::rate(bytes)
    )
}

/// A table with as many columns as fit, those that can be done without left out first.
fn table(disks: &[&FiguresView], width: usize) -> String {
    let width = width.max(WIDTH_MIN);
    let mut columns: Vec<&Column> = COLUMNS.iter().collect();
    let longest = disks.iter().map(|disk| disk.disk.chars().count()).max().unwrap_or(0);
    // One long name must not leave room for nothing else.
    let longest = longest.min((width / 3).max(NAME_WIDTH_MIN));
    loop {
        let shown = with_names(disks, &columns, longest);
        let is_wide = widest(&shown) > width;
        // A name that is cut says less than a column that is left out, but some columns must stay.
        let last = columns.iter().enumerate().max_by_key(|(_, column)| column.expendability);
        match last.map(|(index, column)| (index, column.expendability)) {
            Some((index, expendability)) if is_wide && expendability > 1 => drop(columns.remove(index)),
            _ if is_wide => {
                let over = widest(&shown) - width;
                return with_names(disks, &columns, longest.saturating_sub(over).max(NAME_WIDTH_MIN));
            }
            _ => return shown,
        }
    }
}

fn widest(shown: &str) -> usize {
    shown.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

fn with_names(disks: &[&FiguresView], columns: &[&Column], name_width: usize) -> String {
    let headings: Vec<&str> =
        ["disk"].into_iter().chain(columns.iter().map(|column| column.heading)).collect();
    let row = |disk: &&FiguresView| {
        let name = cut(&disk.disk, name_width);
        [name].into_iter().chain(columns.iter().map(|column| (column.value)(disk))).collect()
    };
    let right: Vec<usize> = (1..headings.len()).collect();
    text::table(&headings, &right, disks.iter().map(row).collect())
}

/// A line of at most so many characters; one that is cut ends with `…`.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::types::RateView;

    fn disk(name: &str, read: f64, write: f64) -> FiguresView {
        let rate = |iops: f64| RateView {
            iops,
            bytes_per_second: iops * 65536.0,
            latency_us_p50: Some(123.0),
            latency_us_p99: Some(iops + 1000.0),
        };
        FiguresView {
            disk: name.to_owned(),
            seconds: 1.0,
            read: rate(read),
            write: rate(write),
            outstanding: 31,
            client_count: 2,
            limit: None,
        }
    }

    fn top() -> TopView {
        let disks = vec![
            disk("database", 123_456.0, 5.0),
            disk("a-very-long-name-of-a-disk-that-somebody-has-given-it-in-a-hurry", 1.0, 70_000.0),
            disk("web", 10.0, 10.0),
        ];
        TopView { seconds: 1.0, disks, congestion: std::collections::BTreeMap::new() }
    }

    fn names(screen: &mut Screen) -> Vec<String> {
        let lines = screen.lines(&top(), Size { width: 200, height: 24 });
        let names = lines[3..6].iter().map(|line| line.split_whitespace().next().unwrap_or_default());
        names.map(|name| name.chars().take(3).collect()).collect()
    }

    /// Lines were wrapped at 100 columns, and the headings with them.
    #[test]
    fn every_line_fits_any_terminal_and_iops_are_always_shown() {
        for width in 60..=200 {
            let mut screen = Screen::new(TopSort::Iops, false, None);
            let lines = screen.lines(&top(), Size { width, height: 24 });
            assert!(lines.len() <= 24, "{width}: {} lines", lines.len());
            for line in &lines {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            assert!(
                lines[2].contains("READ IOPS") && lines[2].contains("WRITE IOPS"),
                "{width}: {}",
                lines[2]
            );
            assert!(lines.iter().any(|line| line.trim_start().starts_with("database")), "{width}: {lines:?}");
        }
    }

    #[test]
    fn columns_that_can_be_done_without_go_first() {
        let mut screen = Screen::new(TopSort::Iops, false, None);
        screen.filter = "d".to_owned();
        let wide = screen.lines(&top(), Size { width: 220, height: 24 })[2].clone();
        assert!(wide.contains("WRITE P50") && wide.contains("CLIENTS"), "{wide}");
        let mut last = wide.split("  ").filter(|part| !part.trim().is_empty()).count();
        for width in (60..220).rev() {
            let line = screen.lines(&top(), Size { width, height: 24 })[2].clone();
            let count = line.split("  ").filter(|part| !part.trim().is_empty()).count();
            assert!(count <= last, "{width}: {line}");
            last = count;
        }
    }

    #[test]
    fn keys_sort_reverse_filter_and_quit() {
        let size = Size { width: 200, height: 24 };
        let mut screen = Screen::new(TopSort::Iops, false, None);
        assert_eq!(names(&mut screen), ["dat", "a-v", "web"]);
        screen.press(Key::Char('r'), size);
        assert_eq!(names(&mut screen), ["web", "a-v", "dat"]);
        screen.press(Key::Char('r'), size);
        screen.press(Key::Char('s'), size);
        screen.press(Key::Char('s'), size);
        assert_eq!((screen.sort, names(&mut screen)[0].as_str()), (TopSort::WriteIops, "a-v"));
        for key in ['/', 'w', 'e', 'q'] {
            assert_eq!(screen.press(Key::Char(key), size), Next::Redraw, "it goes into the filter");
        }
        screen.press(Key::Backspace, size);
        screen.press(Key::Enter, size);
        assert_eq!(screen.filter, "we");
        assert_eq!(names(&mut screen)[0], "web");
        screen.press(Key::Escape, size);
        assert_eq!(screen.filter, "");
        assert_eq!(screen.press(Key::Char('q'), size), Next::Quit);
    }

    #[test]
    fn more_disks_than_lines_are_scrolled_to() {
        let disks = (0..50).map(|index| disk(&format!("disk{index:02}"), 1.0, 1.0)).collect();
        let top = TopView { seconds: 1.0, disks, congestion: std::collections::BTreeMap::new() };
        let size = Size { width: 80, height: 14 };
        let mut screen = Screen::new(TopSort::Name, false, None);
        let first = |screen: &mut Screen| {
            let lines = screen.lines(&top, size);
            assert_eq!(lines.len(), 14);
            lines[3].split_whitespace().next().expect("a name").to_owned()
        };
        assert_eq!(first(&mut screen), "disk00");
        screen.press(Key::Down, size);
        assert_eq!(first(&mut screen), "disk01");
        screen.press(Key::PageDown, size);
        assert_eq!(first(&mut screen), "disk11");
        screen.press(Key::Char('G'), size);
        assert_eq!(first(&mut screen), "disk40");
        screen.press(Key::Down, size);
        assert_eq!(first(&mut screen), "disk40", "no further than the last");
        screen.press(Key::Home, size);
        assert_eq!(first(&mut screen), "disk00");
    }
}
