//! After the handshake: requests out, answers in, for whoever owns the socket.

use crate::generator::backend::Call;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
/// Bytes of a request before its data.
pub const REQUEST_SIZE: usize = 28;
const REPLY_SIZE: usize = 16;

/// What a server says that no server may say: the connection is of no more use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the NBD server answered {0}")]
pub struct BadServer(pub String);

/// A request that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Of the request.
    pub token: u32,
    /// Bytes, or an error's number below 0.
    pub result: i32,
}

/// What is known of a request that is under way.
#[derive(Debug, Clone, Copy)]
struct Asked {
    call: Call,
    size: u32,
    /// Where the data of a read goes; nowhere when nobody looks at it.
    memory: Option<*mut u8>,
}

/// Where in the stream of answers the connection is.
#[derive(Debug, Clone, Copy)]
enum Expect {
    Header,
    Data { token: u32, at: u32 },
}

/// One connection's requests and answers. Does no I/O.
#[derive(Debug)]
pub struct Conversation {
    asked: Vec<Option<Asked>>,
    expect: Expect,
    /// The beginning of a header that is not whole yet.
    partial: Vec<u8>,
    under_way: u32,
}

impl Conversation {
    /// For tokens below `tokens`.
    pub fn new(tokens: usize) -> Conversation {
        Conversation { asked: vec![None; tokens], expect: Expect::Header, partial: Vec::new(), under_way: 0 }
    }

    /// The first bytes of a request; a write's data follows them. `memory` is where a read's data goes, if anybody wants it.
    pub fn ask(
        &mut self,
        token: u32,
        call: Call,
        offset: u64,
        size: u32,
        memory: Option<*mut u8>,
    ) -> [u8; REQUEST_SIZE] {
        let slot = &mut self.asked[token as usize];
        assert!(slot.is_none(), "a token is used once at a time");
        *slot = Some(Asked { call, size, memory });
        self.under_way += 1;
        let kind: u16 = match call {
            Call::Read => 0,
            Call::Write => 1,
            Call::Flush { .. } => 3,
            Call::Trim => 4,
        };
        let (offset, size) = if matches!(call, Call::Flush { .. }) { (0, 0) } else { (offset, size) };
        let mut bytes = [0; REQUEST_SIZE];
        bytes[0..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[6..8].copy_from_slice(&kind.to_be_bytes());
        bytes[8..16].copy_from_slice(&u64::from(token).to_be_bytes());
        bytes[16..24].copy_from_slice(&offset.to_be_bytes());
        bytes[24..28].copy_from_slice(&size.to_be_bytes());
        bytes
    }

    /// Requests that wait for their answer.
    pub fn under_way(&self) -> u32 {
        self.under_way
    }

    /// Takes bytes that came and tells each request that they answer.
    ///
    /// # Errors
    /// When they are no answer to what was asked.
    pub fn take(&mut self, mut bytes: &[u8], mut answered: impl FnMut(Answer)) -> Result<(), BadServer> {
        while !bytes.is_empty() {
            match self.expect {
                Expect::Data { token, at } => {
                    let asked = self.asked[token as usize].expect("data is awaited for a request under way");
                    let count = bytes.len().min((asked.size - at) as usize);
                    if let Some(memory) = asked.memory {
                        // SAFETY: the memory has `size` bytes and belongs to the request until it is answered.
                        unsafe {
                            std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.add(at as usize), count);
                        }
                    }
                    bytes = &bytes[count..];
                    let at = at + count as u32;
                    if at == asked.size {
                        self.expect = Expect::Header;
                        self.finish(token, at as i32, &mut answered);
                    } else {
                        self.expect = Expect::Data { token, at };
                    }
                }
                Expect::Header => bytes = self.take_header(bytes, &mut answered)?,
            }
        }
        Ok(())
    }

    fn take_header<'a>(
        &mut self,
        bytes: &'a [u8],
        answered: &mut impl FnMut(Answer),
    ) -> Result<&'a [u8], BadServer> {
        let missing = REPLY_SIZE - self.partial.len();
        let count = missing.min(bytes.len());
        self.partial.extend_from_slice(&bytes[..count]);
        if self.partial.len() < REPLY_SIZE {
            return Ok(&bytes[count..]);
        }
        let word = |at: usize| u32::from_be_bytes(self.partial[at..at + 4].try_into().expect("four bytes"));
        let (magic, error) = (word(0), word(4));
        let cookie = u64::from(word(8)) << 32 | u64::from(word(12));
        self.partial.clear();
        if magic != REPLY_MAGIC {
            return Err(BadServer(format!("with the magic number {magic:#x}")));
        }
        let token = u32::try_from(cookie).unwrap_or(u32::MAX);
        let Some(Some(asked)) = self.asked.get(token as usize).copied() else {
            return Err(BadServer(format!("for a request that was never sent (cookie {cookie})")));
        };
        if error != 0 {
            self.finish(token, -i32::try_from(error).unwrap_or(libc::EIO).max(1), answered);
        } else if asked.call == Call::Read && asked.size > 0 {
            self.expect = Expect::Data { token, at: 0 };
        } else {
            self.finish(token, asked.size as i32, answered);
        }
        Ok(&bytes[count..])
    }

    fn finish(&mut self, token: u32, result: i32, answered: &mut impl FnMut(Answer)) {
        self.asked[token as usize] = None;
        self.under_way -= 1;
        answered(Answer { token, result });
    }

    /// The connection is gone: all requests under way end with this error.
    pub fn abandon(&mut self, error: i32, mut answered: impl FnMut(Answer)) {
        for token in 0..self.asked.len() {
            if self.asked[token].is_some() {
                self.finish(token as u32, -error, &mut answered);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(error: u32, token: u64) -> Vec<u8> {
        let mut bytes = REPLY_MAGIC.to_be_bytes().to_vec();
        bytes.extend(error.to_be_bytes());
        bytes.extend(token.to_be_bytes());
        bytes
    }

    #[test]
    fn answers_are_understood_however_they_are_cut() {
        let mut stream = reply(0, 1);
        stream.extend(reply(0, 0));
        stream.extend([7; 10]);
        stream.extend(reply(5, 2));
        for cut in 1..stream.len() {
            let mut memory = [0u8; 10];
            let mut conversation = Conversation::new(3);
            conversation.ask(0, Call::Read, 512, 10, Some(memory.as_mut_ptr()));
            conversation.ask(1, Call::Write, 0, 4, None);
            conversation.ask(2, Call::Read, 0, 99, None);
            let mut answers = Vec::new();
            for part in [&stream[..cut], &stream[cut..]] {
                conversation
                    .take(part, |answer| answers.push((answer.token, answer.result)))
                    .expect("a good server");
            }
            assert_eq!(answers, [(1, 4), (0, 10), (2, -5)], "cut at {cut}");
            assert_eq!((memory, conversation.under_way()), ([7; 10], 0));
        }
    }

    #[test]
    fn a_server_that_answers_what_was_not_asked_is_refused() {
        let mut conversation = Conversation::new(1);
        for bytes in [reply(0, 0), reply(0, 9), vec![0; 16]] {
            assert!(conversation.take(&bytes, |_| panic!("nothing was asked")).is_err());
        }
    }

    #[test]
    fn a_connection_that_is_lost_ends_what_was_asked() {
        let mut conversation = Conversation::new(4);
        conversation.ask(3, Call::Trim, 0, 4096, None);
        let mut answers = Vec::new();
        conversation.abandon(libc::ECONNRESET, |answer| answers.push(answer));
        assert_eq!(answers, [Answer { token: 3, result: -libc::ECONNRESET }]);
    }
}
