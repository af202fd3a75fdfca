//! What is read, how, and what it becomes.

use plan::{Place, Plan};

/// The text of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file's name, or `command line`: what places name.
    pub name: String,
    /// All of it.
    pub text: String,
}

impl Source {
    /// A text under a name.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    /// Its first line.
    pub(crate) fn start(&self) -> Place {
        place(&self.name, 1, 1)
    }

    /// The name without folders and without its last extension.
    pub fn short_name(&self) -> &str {
        let name = self.name.rsplit(['/', '\\']).next().unwrap_or(&self.name);
        match name.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => name,
        }
    }
}

/// A place in a text.
pub(crate) fn place(file: &str, line: usize, column: usize) -> Place {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Place { file: file.to_owned(), line: count(line), column: count(column) }
}

/// How a job is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// A job file or a command line of fio.
    Fio,
    /// Command lines of DiskSPD.
    DiskSpd,
    /// An XML profile of DiskSPD.
    DiskSpdXml,
    /// A parameter file of Vdbench.
    Vdbench,
    /// An `.icf` file of Iometer.
    Iometer,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 5] =
        [Dialect::Fio, Dialect::DiskSpd, Dialect::DiskSpdXml, Dialect::Vdbench, Dialect::Iometer];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Fio => "fio",
            Dialect::DiskSpd => "DiskSPD",
            Dialect::DiskSpdXml => "DiskSPD XML",
            Dialect::Vdbench => "Vdbench",
            Dialect::Iometer => "Iometer",
        }
    }

    /// The usual extension of its files, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Dialect::Fio => "fio",
            Dialect::DiskSpd => "diskspd",
            Dialect::DiskSpdXml => "xml",
            Dialect::Vdbench => "vdb",
            Dialect::Iometer => "icf",
        }
    }

    /// By its name as people type it: `fio`, `diskspd`, `diskspd-xml`, `vdbench`, `iometer`.
    pub fn from_name(name: &str) -> Option<Dialect> {
        let name = name.to_ascii_lowercase().replace([' ', '_'], "-");
        Dialect::ALL.into_iter().find(|dialect| dialect.name().to_ascii_lowercase().replace(' ', "-") == name)
    }
}

/// What a reader may ask of the world, and what it may not know by itself.
pub struct Options<'a> {
    /// The environment: fio's `${NAME}`.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file that a job includes, by the name that the job says; an error is a sentence.
    pub include: &'a dyn Fn(&str) -> Result<String, String>,
    /// What was given beside the file on the command line: Vdbench's `x=value` for `$x`, and DiskSPD's `*1`, `*2` targets under
    /// the names `1`, `2`.
    pub variables: Vec<(String, String)>,
    /// Vdbench's `-e`: elapsed seconds of every run.
    pub elapsed: Option<u64>,
    /// Vdbench's `-i`: seconds of an interval.
    pub interval: Option<u64>,
    /// Vdbench's `+key=value`: added to every run definition.
    pub additions: Vec<String>,
    /// Whether targets are named beside the job: then a job need not say how large its files are.
    pub has_targets: bool,
    /// Seconds that every stage counts, as given beside the job: then a profile of DiskSPD may leave its duration empty.
    pub duration: Option<u64>,
    /// Whether a name stands for a device, which has a size of its own, and not for a file.
    pub is_device: &'a dyn Fn(&str) -> bool,
    /// fio's `$pagesize`, in bytes.
    pub page_size: u64,
    /// fio's `$ncpus`, and the workers that Iometer starts by default.
    pub cpu_count: u32,
    /// fio's `$mb_memory`, in bytes.
    pub memory_bytes: u64,
}

impl Default for Options<'_> {
    /// An empty environment, no files to include, no targets, a machine of 8 processors, 4 KiB pages and 16 GiB.
    fn default() -> Self {
        Options {
            environment: &|_| None,
            include: &|name| Err(format!("no file {name} can be read here")),
            variables: Vec::new(),
            elapsed: None,
            interval: None,
            additions: Vec::new(),
            has_targets: false,
            duration: None,
            is_device: &crate::fio::is_device,
            page_size: 4096,
            cpu_count: 8,
            memory_bytes: 16 << 30,
        }
    }
}

/// A job that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// What it runs; its notes say what the importer has to say.
    pub plan: Plan,
    /// What it was read as.
    pub dialect: Dialect,
}
