//! Keys of a terminal: reading them one by one, and what the bytes mean.

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::io::{Read, stdin};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Backspace,
    Escape,
}

/// The terminal gives keys at once and does not show them. Dropped, it is as before.
pub(super) struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    /// Changes the terminal of the standard input; `None` if that is none.
    pub(super) fn enter() -> Option<RawTerminal> {
        let before = tcgetattr(stdin()).ok()?;
        let mut raw = before.clone();
        // Ctrl-C stays a signal.
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin(), OptionalActions::Now, &raw).ok()?;
        Some(RawTerminal { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // Nothing can be done if the terminal is gone.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

/// Keys as they are pressed, read by a thread that ends with the process.
pub(super) fn read_keys() -> UnboundedReceiver<Key> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while let Ok(count @ 1..) = stdin().lock().read(&mut bytes) {
            for key in keys_of(&bytes[..count]) {
                if sender.send(key).is_err() {
                    return;
                }
            }
        }
    });
    receiver
}

/// The keys in what a terminal sent at once. A terminal sends a key's sequence in one piece; an escape alone is the key.
fn keys_of(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let Some((&first, rest)) = bytes.split_first() {
        let (key, rest) = match (first, rest) {
            (0x1b, [b'[' | b'O', rest @ ..]) => sequence(rest),
            (0x1b, _) => (Some(Key::Escape), rest),
            (b'\r' | b'\n', _) => (Some(Key::Enter), rest),
            (0x7f | 0x08, _) => (Some(Key::Backspace), rest),
            (b' '..=b'~', _) => (Some(Key::Char(char::from(first))), rest),
            // Names of disks have no other characters.
            _ => (None, rest),
        };
        keys.extend(key);
        bytes = rest;
    }
    keys
}

/// What follows the introducer of a control sequence: parameters, and a last byte.
fn sequence(bytes: &[u8]) -> (Option<Key>, &[u8]) {
    let Some(end) = bytes.iter().position(|byte| (0x40..=0x7e).contains(byte)) else { return (None, &[]) };
    let key = match (&bytes[..end], bytes[end]) {
        (_, b'A') => Some(Key::Up),
        (_, b'B') => Some(Key::Down),
        (_, b'H') | (b"1" | b"7", b'~') => Some(Key::Home),
        (_, b'F') | (b"4" | b"8", b'~') => Some(Key::End),
        (b"5", b'~') => Some(Key::PageUp),
        (b"6", b'~') => Some(Key::PageDown),
        _ => None,
    };
    (key, &bytes[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_terminal_are_keys() {
        for (bytes, expected) in [
            (&b"q"[..], vec![Key::Char('q')]),
            (b"\x1b[A\x1b[B", vec![Key::Up, Key::Down]),
            (b"\x1bOA", vec![Key::Up]),
            (b"\x1b[1;5A", vec![Key::Up]),
            (b"\x1b[5~\x1b[6~", vec![Key::PageUp, Key::PageDown]),
            (b"\x1b[H\x1b[4~", vec![Key::Home, Key::End]),
            (b"\x1b", vec![Key::Escape]),
            (b"a\x7f\r", vec![Key::Char('a'), Key::Backspace, Key::Enter]),
            (b"\x1b[24~j", vec![Key::Char('j')]),
            (b"\x1b[99", vec![]),
            (b"\xc3\xa4", vec![]),
        ] {
            assert_eq!(keys_of(bytes), expected, "{bytes:?}");
        }
    }
}
