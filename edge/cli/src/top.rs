//! `top`: what every disk does, again every second, with keys where there is a terminal.

mod keys;
mod screen;

use crate::shell::Shell;
use api::types::TopView;
use clap::Args;
use failure::Failure;
use keys::{Key, RawTerminal, read_keys};
use rustix::termios::tcgetwinsize;
use screen::{Next, Screen, Size, TopSort};
use std::io::{IsTerminal, Write, stdout};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Interval, MissedTickBehavior, interval};

pub(super) const KEYS: &str = "\
Keys: q quit, s next sort column, r reverse, / filter by name (Enter keeps, Esc clears), space pause,
j k and arrows scroll, page up and down, g and G first and last.";

/// Options of `top`.
#[derive(Debug, Args)]
#[command(after_help = KEYS)]
pub struct TopOptions {
    /// Print once and end.
    #[arg(long)]
    once: bool,
    /// Seconds between two tables.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Number of disks to show [default: 30, or as many as the terminal has lines for].
    #[arg(long)]
    disks: Option<usize>,
    /// Column to sort by, the largest figure first.
    #[arg(long, value_enum, default_value = "iops")]
    sort: TopSort,
    /// Reverse the order.
    #[arg(long)]
    reverse: bool,
}

/// To the upper left corner.
const HOME: &str = "\x1b[H";
/// Clear the rest of a line, and what is below.
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";
/// Disks that are shown without a terminal.
const DISKS_USUAL: usize = 30;
/// Where the terminal does not tell its size.
const SIZE_USUAL: Size = Size { width: 80, height: 24 };

/// Shows it until the output is closed, the host is gone, or somebody quits.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>, options: TopOptions) -> Result<(), Failure> {
    let has_terminal = !shell.json && !options.once && stdout().is_terminal();
    if has_terminal {
        let mut screen = Screen::new(options.sort, options.reverse, options.disks);
        return watch(shell, &mut screen, options.interval).await;
    }
    let screen = Screen::new(options.sort, options.reverse, Some(options.disks.unwrap_or(DISKS_USUAL)));
    let width = stdout().is_terminal().then(|| size().width);
    loop {
        let top: TopView = shell.client.get("/api/v1/top").await?;
        shell.show(&top, |top| screen.plain(top, width))?;
        if options.once {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(options.interval)).await;
    }
}

/// What happens next.
enum Event {
    Tick,
    Key(Key),
    Quit,
}

async fn watch(shell: &mut Shell<'_>, screen: &mut Screen, seconds: u64) -> Result<(), Failure> {
    let raw = RawTerminal::enter();
    let mut keys = raw.is_some().then(read_keys);
    let mut ticks = interval(Duration::from_secs(seconds));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut top: Option<TopView> = None;
    loop {
        match next_event(&mut ticks, &mut keys).await {
            Event::Tick if screen.is_paused && top.is_some() => {}
            Event::Tick => top = Some(shell.client.get("/api/v1/top").await?),
            Event::Key(key) => {
                if screen.press(key, size()) == Next::Quit {
                    return Ok(());
                }
            }
            Event::Quit => return Ok(()),
        }
        if let Some(top) = &top
            && !draw(&screen.lines(top, size()))
        {
            return Ok(());
        }
    }
}

async fn next_event(ticks: &mut Interval, keys: &mut Option<UnboundedReceiver<Key>>) -> Event {
    let key = async {
        match keys {
            Some(keys) => keys.recv().await,
            None => std::future::pending().await,
        }
    };
    let key = tokio::select! {
        _ = ticks.tick() => return Event::Tick,
        _ = tokio::signal::ctrl_c() => return Event::Quit,
        key = key => key,
    };
    if key.is_none() {
        // The standard input is closed: there are no keys any more.
        *keys = None;
        return Event::Tick;
    }
    key.map_or(Event::Quit, Event::Key)
}

/// Draws the lines; says whether somebody is there to see them.
fn draw(lines: &[String]) -> bool {
    let text = format!("{HOME}{}{CLEAR_LINE}{CLEAR_BELOW}", lines.join(&format!("{CLEAR_LINE}\n")));
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

fn size() -> Size {
    match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            Size { width: usize::from(size.ws_col), height: usize::from(size.ws_row) }
        }
        _ => SIZE_USUAL,
    }
}
