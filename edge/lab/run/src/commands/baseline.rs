//! `lab baseline`: results kept under a name, for later results to be compared with.

use super::{CommandError, ErrorKind, World};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

/// Commands on baselines.
#[derive(Debug, Clone, Subcommand)]
pub enum BaselineCommand {
    /// Keep results under a name.
    #[command(
        after_help = "Examples:\n  drystone lab baseline save release-7 a1.run.json a2.run.json a3.run.json\n  \
                            drystone lab baseline save nightly today.run.json --replace --folder ci/baselines"
    )]
    Save {
        /// Name of the baseline.
        name: String,
        /// Results: repeated runs of one job.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Replace an existing baseline of this name.
        #[arg(long)]
        replace: bool,
        /// Location of the baselines.
        #[command(flatten)]
        folder: BaselineFolder,
    },
    /// List baselines and their results.
    #[command(
        after_help = "Examples:\n  drystone lab baseline list\n  drystone lab baseline list --folder ci/baselines --json"
    )]
    List {
        /// Location of the baselines.
        #[command(flatten)]
        folder: BaselineFolder,
    },
    /// Delete a baseline with its results.
    #[command(
        after_help = "Examples:\n  drystone lab baseline delete release-6\n  drystone lab baseline delete nightly --folder ci/baselines"
    )]
    Delete {
        /// Name of the baseline.
        name: String,
        /// Location of the baselines.
        #[command(flatten)]
        folder: BaselineFolder,
    },
}

/// Location of the baselines.
#[derive(Debug, Clone, Default, Args)]
pub struct BaselineFolder {
    /// Folder of the baselines [default: baselines in the user's data directory].
    #[arg(long = "folder", value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}

impl BaselineFolder {
    fn path(&self, world: &World) -> Result<PathBuf, CommandError> {
        let usual = world.keep.as_ref().map(|keep| keep.join("baselines"));
        self.folder.clone().or(usual).ok_or_else(|| {
            let text = "there is no user's data directory to keep baselines in";
            CommandError::new(ErrorKind::Usage, text).hint("add --folder FOLDER")
        })
    }

    fn of(&self, name: &str, world: &World) -> Result<PathBuf, CommandError> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
            let text = format!("`{name}` cannot be the name of a baseline");
            return Err(CommandError::new(ErrorKind::Usage, text)
                .hint("use letters, digits, `-`, `_` and `.`, and no `.` at the start"));
        }
        Ok(self.path(world)?.join(name))
    }

    /// The results of a baseline.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn files(&self, name: &str, world: &World) -> Result<Vec<PathBuf>, CommandError> {
        let folder = self.of(name, world)?;
        let files = files_in(&folder).unwrap_or_default();
        if files.is_empty() {
            let there = self.path(world).ok().and_then(|path| names_in(&path).ok()).unwrap_or_default();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            let text =
                format!("there is no baseline {name} in {}", folder.parent().unwrap_or(&folder).display());
            return Err(CommandError::new(ErrorKind::NotFound, text)
                .hint(format!("there are: {there}; `lab baseline save {name} FILE…` keeps one")));
        }
        Ok(files)
    }
}

/// Runs a command on baselines.
pub fn baseline(command: &BaselineCommand, world: &mut World) -> Result<(), CommandError> {
    match command {
        BaselineCommand::Save { name, files, replace, folder } => {
            save((name, files), *replace, folder, world)
        }
        BaselineCommand::List { folder } => list(folder, world),
        BaselineCommand::Delete { name, folder } => {
            folder.files(name, world)?;
            let path = folder.of(name, world)?;
            std::fs::remove_dir_all(&path)
                .map_err(|error| CommandError::failed(format!("delete {}", path.display()), error))?;
            answer(world, &serde_json::json!({ "deleted": name }), &format!("deleted baseline {name}"))
        }
    }
}

fn save(
    (name, files): (&str, &[PathBuf]),
    replace: bool,
    folder: &BaselineFolder,
    world: &mut World,
) -> Result<(), CommandError> {
    let place = folder.of(name, world)?;
    if place.exists() && !replace {
        let text = format!("there is a baseline {name} already");
        return Err(CommandError::new(ErrorKind::Refused, text).hint("add --replace, or choose another name"));
    }
    for file in files {
        // What cannot be compared is no baseline.
        super::audit::read(file, None)?;
    }
    let failed = |error: std::io::Error| {
        CommandError::failed(format!("keep the baseline in {}", place.display()), error)
    };
    // Written beside its place first: a baseline is there whole, or as it was.
    let beside = place.with_file_name(format!(".{name}.new"));
    let _ = std::fs::remove_dir_all(&beside);
    std::fs::create_dir_all(&beside).map_err(failed)?;
    for (index, file) in files.iter().enumerate() {
        let last = file.file_name().unwrap_or_default().to_string_lossy();
        std::fs::copy(file, beside.join(format!("{:02}-{last}", index + 1))).map_err(failed)?;
    }
    if place.exists() {
        std::fs::remove_dir_all(&place).map_err(failed)?;
    }
    std::fs::rename(&beside, &place).map_err(failed)?;
    let count = if files.len() == 1 { "1 result".to_owned() } else { format!("{} results", files.len()) };
    let path = place.display().to_string();
    let json = serde_json::json!({ "saved": name, "results": files.len(), "folder": path });
    answer(world, &json, &format!("saved baseline {name}: {count} in {path}"))
}

fn list(folder: &BaselineFolder, world: &mut World) -> Result<(), CommandError> {
    let place = folder.path(world)?;
    let names = names_in(&place).unwrap_or_default();
    let counted: Vec<(String, usize)> = (names.into_iter())
        .map(|name| {
            let count = files_in(&place.join(&name)).unwrap_or_default().len();
            (name, count)
        })
        .collect();
    let json: Vec<_> =
        counted.iter().map(|(name, count)| serde_json::json!({ "name": name, "results": count })).collect();
    let mut text: String = counted.iter().map(|(name, count)| format!("{name}  {count}\n")).collect();
    if text.is_empty() {
        text = format!("no baselines in {}", place.display());
    }
    answer(world, &json, &text)
}

fn answer(world: &mut World, json: &impl serde::Serialize, text: &str) -> Result<(), CommandError> {
    if world.json { world.say_json(json) } else { world.say(text) }
}

fn files_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    Ok(files)
}

fn names_in(folder: &Path) -> std::io::Result<Vec<String>> {
    let entries = std::fs::read_dir(folder)?.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    Ok(names)
}
