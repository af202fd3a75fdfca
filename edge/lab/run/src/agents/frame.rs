//! Messages on a connection: four bytes of length, then JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};

/// A message is not longer than this: a stage of a day with its histograms is about 100 MB.
pub const MESSAGE_MAX: usize = 1 << 30;
/// Before it is known who speaks.
pub const STRANGER_MAX: usize = 4 << 10;

/// Messages over a stream whose reads give up after a while.
pub struct Frames<S> {
    stream: S,
    received: Vec<u8>,
    /// Longest message that is taken.
    pub longest: usize,
}

impl<S: Read + Write> Frames<S> {
    /// Over a stream, for somebody who is not known yet.
    pub fn new(stream: S) -> Frames<S> {
        Frames { stream, received: Vec::new(), longest: STRANGER_MAX }
    }

    /// Sends one.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let body = serde_json::to_vec(message)?;
        let length = u32::try_from(body.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        self.stream.write_all(&length.to_be_bytes())?;
        self.stream.write_all(&body)?;
        self.stream.flush()
    }

    /// The next message, or nothing when none came before the stream gave up waiting.
    ///
    /// # Errors
    /// When the connection is gone, or what comes is no message.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut buffer = [0; 16 << 10];
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some(length) = self.received.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.longest {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {length} bytes")));
        }
        if self.received.len() < 4 + length {
            return Ok(None);
        }
        let message = serde_json::from_slice(&self.received[4..4 + length])?;
        self.received.drain(..4 + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A stream that gives what was written to it, a few bytes at a time, and then gives up.
    #[derive(Default)]
    struct Echo(VecDeque<u8>, usize);

    impl Read for Echo {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(bytes.len()).min(self.0.len());
            if count == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            bytes.iter_mut().zip(self.0.drain(..count)).for_each(|(to, from)| *to = from);
            Ok(count)
        }
    }

    impl Write for Echo {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn messages_come_whole_however_the_stream_cuts_them() {
        for size in [1, 3, 1000] {
            let mut frames = Frames::new(Echo(VecDeque::new(), size));
            frames.send(&"one").expect("an echo takes all");
            frames.send(&vec![2, 3]).expect("an echo takes all");
            assert_eq!(frames.receive::<String>().expect("a message"), Some("one".to_owned()));
            assert_eq!(frames.receive::<Vec<u32>>().expect("a message"), Some(vec![2, 3]));
            assert_eq!(frames.receive::<String>().expect("no error"), None);
        }
    }

    #[test]
    fn a_stranger_with_a_long_message_or_garbage_is_refused() {
        let mut frames = Frames::new(Echo(VecDeque::from(vec![0xff; 64]), 64));
        assert!(frames.receive::<String>().is_err());
        let mut frames = Frames::new(Echo(VecDeque::from(vec![0, 0, 0, 2, b'{', b'{']), 64));
        assert!(frames.receive::<String>().is_err());
    }
}
