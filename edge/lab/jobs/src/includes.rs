//! Files that a job file includes: how many, how deep and how large they may be, and where they are looked for.

use crate::limits;
use crate::source::Options;

/// What was included so far.
#[derive(Debug, Default)]
pub(crate) struct Includes {
    files: usize,
    bytes: usize,
}

/// A file that was included.
#[derive(Debug)]
pub(crate) struct Included {
    /// Its name, from where the job file is.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Why a file cannot be included.
#[derive(Debug)]
pub(crate) enum NotIncluded {
    /// It is one too many, or too deep within others: it most likely includes itself.
    TooMany,
    /// It is too long, with all that was included before.
    TooLong,
    /// It cannot be read, for this reason.
    Unreadable(String),
}

impl Includes {
    /// The file of this path, which stands in the file `from`, itself included `depth` files deep. A path that does not begin
    /// with `/` begins where that file is.
    pub(crate) fn open(
        &mut self,
        options: &Options<'_>,
        path: &str,
        from: &str,
        depth: usize,
    ) -> Result<Included, NotIncluded> {
        self.files += 1;
        if depth >= limits::INCLUDE_DEPTH_MAX || self.files > limits::INCLUDES_MAX {
            return Err(NotIncluded::TooMany);
        }
        let folder = from.rfind('/').map_or("", |end| &from[..=end]);
        let name = if path.starts_with('/') { path.to_owned() } else { format!("{folder}{path}") };
        let text = (options.include)(&name).map_err(NotIncluded::Unreadable)?;
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > limits::TEXT_BYTES_MAX {
            return Err(NotIncluded::TooLong);
        }
        Ok(Included { name, text })
    }
}
