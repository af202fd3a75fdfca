//! Charts as data: what the page's script gives to the drawing library, and what the tables behind the charts are made of.

pub mod distribution;
pub mod experiment;
pub mod surfaces;
pub mod system;
pub mod time;

use serde::{Serialize, Serializer};
use statistics::words;

/// One chart.
#[derive(Debug, Clone, Serialize)]
pub struct Chart {
    /// What it shows, for people.
    pub title: String,
    /// How to read it, and what was joined or left out.
    pub caption: String,
    /// The picture.
    #[serde(flatten)]
    pub shape: Shape,
}

/// What is drawn.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "shape", rename_all = "snake_case")]
pub enum Shape {
    /// Lines, points, or both.
    Lines(Lines),
    /// Counts by time and bucket, one picture.
    Heat(Heat),
    /// Several disks' counts by time and bucket, several kinds.
    Surfaces(Surfaces),
}

/// Lines over two axes.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Lines {
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// Each with its name.
    pub series: Vec<Series>,
    /// Upright lines with a word beside them.
    pub marks: Vec<Mark>,
}

/// An axis.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Axis {
    /// What it measures, with its unit.
    pub title: String,
    /// How it is divided.
    pub scale: Scale,
    /// Names of the positions 0, 1, 2, …, where it measures nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Evenly, from 0.
    #[default]
    Linear,
    /// By powers of two: doubled loads.
    Log2,
    /// By powers of ten, of nanoseconds: ticks have names such as `1 ms`.
    LogTime,
    /// By powers of ten, of shares of a whole: ticks are percent.
    LogShare,
    /// By powers of ten, of a ratio to something: ticks are how much more or less, in percent.
    Ratio,
}

/// One line.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Series {
    /// For the legend.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// Positions across.
    pub x: Numbers,
    /// Positions up; where there is none, the line is broken.
    pub y: Numbers,
    /// The interval around each point, lower ends; empty without.
    #[serde(skip_serializing_if = "Numbers::is_empty")]
    pub low: Numbers,
    /// The interval around each point, upper ends.
    #[serde(skip_serializing_if = "Numbers::is_empty")]
    pub high: Numbers,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// A line.
    #[default]
    Line,
    /// A line with a point at each figure: few figures.
    Both,
    /// Points alone; intervals lie across.
    Points,
    /// A thin broken line: a bound, a law.
    Dashed,
}

/// An upright line.
#[derive(Debug, Clone, Serialize)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// A word or two.
    pub text: String,
}

/// Counts by time and bucket.
#[derive(Debug, Clone, Serialize)]
pub struct Heat {
    /// When each column begins, in seconds.
    pub x: Numbers,
    /// How long a column lasts.
    pub width: f64,
    /// The middle of each bucket, in ns.
    pub y: Numbers,
    /// The label of each bucket.
    pub labels: Vec<String>,
    /// For each column, for each bucket, I/Os per second.
    pub z: Vec<Numbers>,
    /// Lines on top, in ns: percentiles.
    pub lines: Vec<Series>,
}

/// Several disks, several histograms, one scale for each.
#[derive(Debug, Clone, Serialize)]
pub struct Surfaces {
    /// Names of the disks, in order.
    pub disks: Vec<String>,
    /// One for each histogram.
    pub views: Vec<View>,
}

/// One histogram of all disks.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    /// The kind, for a choice: `length`.
    pub kind: String,
    /// `both`, `reads`, `writes`.
    pub operations: String,
    /// A caption.
    pub title: String,
    /// What the buckets measure, with the unit of their labels where those have none.
    pub axis: String,
    /// Labels of the buckets.
    pub labels: Vec<String>,
    /// The top of the common scale.
    pub top: f64,
    /// One for each disk.
    pub panels: Vec<Panel>,
}

/// One disk.
#[derive(Debug, Clone, Serialize)]
pub struct Panel {
    /// When each column begins, in seconds.
    pub x: Numbers,
    /// How long each lasts.
    pub seconds: Numbers,
    /// For each column, for each bucket, I/Os per second. An empty one where nothing is known.
    pub z: Vec<Numbers>,
}

/// Numbers as the page holds them: with four digits, what is not finite as `null`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Numbers(pub Vec<f64>);

impl Numbers {
    /// True without numbers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<f64> for Numbers {
    fn from_iter<T: IntoIterator<Item = f64>>(numbers: T) -> Numbers {
        Numbers(numbers.into_iter().collect())
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|&number| Rounded(number)))
    }
}

struct Rounded(f64);

impl Serialize for Rounded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = rounded(self.0);
        if !value.is_finite() {
            serializer.serialize_none()
        } else if value.fract() == 0.0 && value.abs() < 9e15 {
            serializer.serialize_i64(value as i64)
        } else {
            serializer.serialize_f64(value)
        }
    }
}

/// Four digits: more cannot be seen, and each costs a byte.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    if digits <= 0 {
        // Whole numbers below a million keep all digits: they are times and counts.
        if value.abs() < 1e6 {
            return value.round();
        }
        let scale = 10f64.powi(-digits);
        return (value / scale).round() * scale;
    }
    let scale = 10f64.powi(digits.min(300));
    (value * scale).round() / scale
}

impl Chart {
    /// With more marks, if it has any place for them.
    #[must_use]
    pub fn with_marks(mut self, more: Vec<Mark>) -> Chart {
        if let Shape::Lines(lines) = &mut self.shape {
            lines.marks.extend(more);
        }
        self
    }
}

impl Axis {
    /// An axis that begins at 0.
    pub fn linear(title: impl Into<String>) -> Axis {
        Axis { title: title.into(), ..Axis::default() }
    }

    /// An axis with this scale.
    pub fn scaled(title: impl Into<String>, scale: Scale) -> Axis {
        Axis { title: title.into(), scale, names: Vec::new() }
    }
}

/// The busiest of these (name, weight, line), at most [`crate::LINES_MAX`], in their own order; how many are left out.
pub fn busiest<T>(mut lines: Vec<(f64, T)>) -> (Vec<T>, usize) {
    let count = lines.len();
    if count > crate::LINES_MAX {
        let mut weights: Vec<f64> = lines.iter().map(|(weight, _)| *weight).collect();
        weights.sort_by(|one, other| other.total_cmp(one));
        let least = weights[crate::LINES_MAX - 1];
        lines.retain(|(weight, _)| *weight >= least);
        lines.truncate(crate::LINES_MAX);
    }
    let left_out = count - lines.len();
    (lines.into_iter().map(|(_, line)| line).collect(), left_out)
}

/// What a caption says of lines that were left out.
pub fn left_out(count: usize, what: &str) -> String {
    if count == 0 {
        String::new()
    } else {
        format!(" Not drawn: {}, those with the fewest I/Os.", words::counted(count, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits_and_what_is_none_is_null() {
        let numbers = Numbers(vec![0.0, 1.0 / 3.0, 123_456.7, 98_765_432.1, f64::NAN, -0.000_123_456]);
        let text = serde_json::to_string(&numbers).unwrap();
        assert_eq!(text, "[0,0.3333,123457,98770000,null,-0.0001235]");
    }

    #[test]
    fn the_busiest_lines_stay_in_their_order() {
        let lines = (0..15).map(|index| (f64::from(index % 5), index)).collect();
        let (kept, left_out) = busiest(lines);
        assert_eq!((kept.len(), left_out), (crate::LINES_MAX, 5));
        assert!(kept.is_sorted());
    }
}
