//! The lab's commands alone, without the rest of Drystone: quick to build while the lab is worked on.

use clap::Parser;
use lab::commands::{LabCommand, NoDisks, World, perform};

#[derive(Parser)]
struct Cli {
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: LabCommand,
}

fn main() {
    let cli = Cli::parse();
    let mut out = std::io::stdout();
    let mut world = World {
        out: &mut out,
        json: cli.json,
        interactive: false,
        program: "lab".to_owned(),
        disks: std::sync::Arc::new(NoDisks),
        keep: None,
    };
    if let Err(error) = perform(cli.command, &mut world) {
        eprintln!("lab: {error}");
        if let Some(hint) = error.hint {
            eprintln!("  {hint}");
        }
        std::process::exit(1);
    }
}
