//! The handshake: the client's flags, then options one after the other until one of them names the export.

use super::contexts::{Aim, Context, named};
use super::inbox::Inbox;
use super::outbox::Outbox;
use crate::limits::{NAME_MAX, OPTION_DATA_MAX, OPTION_DATA_SKIPPED_MAX, OPTIONS_MAX};
use crate::nbd::protocol::{
    self, CLIENT_FLAGS_SIZE, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, InfoRequest, OPTION_SIZE, flag, info,
    option, put_block_sizes, put_option_reply, reply,
};
use crate::nbd::{ExportName, ExportNameError};
use crate::{AttachRefusal, Event, Export, Wanted};

/// Whether a connection may, must or does use TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tls {
    Off,
    Allowed,
    Required,
    Active,
}

/// What the options so far have agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Agreed {
    pub(super) structured: bool,
    /// The contexts that were selected last, and the export for which.
    contexts: Option<(String, Vec<Context>)>,
}

#[derive(Debug)]
enum State {
    Flags,
    Option,
    Data { option: u32, len: usize },
    Skip { rest: usize },
    Waiting(Question),
}

/// What was asked of the server, and how to word its answer.
#[derive(Debug)]
enum Question {
    List,
    ExportName { name: String },
    Info { option: u32, name: String, wants: Wants },
    Contexts { aim: Aim, name: String, queries: Vec<String> },
}

impl Question {
    /// The name of the export that it is about.
    fn name(&self) -> Option<&str> {
        match self {
            Question::List => None,
            Question::ExportName { name } | Question::Info { name, .. } | Question::Contexts { name, .. } => {
                Some(name)
            }
        }
    }
}

/// What a client wants that gives this name for its export.
fn wanted_by(name: &str) -> Result<Wanted, ExportNameError> {
    let ExportName { disk, snapshot, error_after } = ExportName::parse(name)?;
    Ok(Wanted { disk: disk.to_owned(), snapshot: snapshot.map(str::to_owned), error_after })
}

#[derive(Debug, Clone, Copy)]
struct Wants {
    block_size: bool,
    name: bool,
    description: bool,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Step {
    /// More bytes or an answer of the server are needed.
    Wait,
    /// The conversation is over, once what is queued has been sent.
    Close,
    /// Once what is queued has been sent, TLS begins, and with it the negotiation anew.
    StartTls,
    /// The transmission phase begins.
    Enter { export: Export, structured: bool, contexts: Vec<Context> },
}

#[derive(Debug)]
pub(super) struct Negotiation {
    state: State,
    fixed: bool,
    no_zeroes: bool,
    agreed: Agreed,
    options: u32,
    tls: Tls,
}

impl Negotiation {
    pub(super) fn new(tls: Tls, outbox: &mut Outbox) -> Negotiation {
        outbox.put(protocol::put_greeting);
        Negotiation {
            state: State::Flags,
            fixed: false,
            no_zeroes: false,
            agreed: Agreed::default(),
            options: 0,
            tls,
        }
    }

    /// TLS is up: nothing that was agreed on before counts.
    pub(super) fn tls_started(&mut self) {
        self.tls = Tls::Active;
        self.agreed = Agreed::default();
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting(_))
    }

    /// Goes on as far as the bytes at hand allow.
    pub(super) fn step(&mut self, inbox: &mut Inbox, outbox: &mut Outbox, events: &mut Vec<Event>) -> Step {
        loop {
            match self.state {
                State::Flags => {
                    let Some(&bytes) = inbox.peek::<CLIENT_FLAGS_SIZE>() else { return Step::Wait };
                    inbox.consume(CLIENT_FLAGS_SIZE);
                    let flags = u32::from_be_bytes(bytes);
                    let known = u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
                    if flags & !known != 0 {
                        return Step::Close;
                    }
                    self.fixed = flags & u32::from(FLAG_FIXED_NEWSTYLE) != 0;
                    self.no_zeroes = flags & u32::from(FLAG_NO_ZEROES) != 0;
                    self.state = State::Option;
                }
                State::Option => {
                    let Some(bytes) = inbox.peek::<OPTION_SIZE>() else { return Step::Wait };
                    let Some((option, len)) = protocol::decode_option(bytes) else { return Step::Close };
                    inbox.consume(OPTION_SIZE);
                    if !self.begin_option(option, len, outbox) {
                        return Step::Close;
                    }
                }
                State::Skip { rest } => {
                    let part = rest.min(inbox.len());
                    inbox.consume(part);
                    if part < rest {
                        self.state = State::Skip { rest: rest - part };
                        return Step::Wait;
                    }
                    self.state = State::Option;
                }
                State::Data { option, len } => {
                    let Some(data) = inbox.bytes().get(..len) else { return Step::Wait };
                    self.state = State::Option;
                    let step = self.option(option, data, outbox, events);
                    inbox.consume(len);
                    if !matches!(step, Step::Wait) || self.is_waiting() {
                        return step;
                    }
                }
                State::Waiting(_) => return Step::Wait,
            }
        }
    }

    /// Decides by an option's length what happens to its data; false to close.
    fn begin_option(&mut self, option: u32, len: u32, outbox: &mut Outbox) -> bool {
        self.options += 1;
        if self.options > OPTIONS_MAX || len > OPTION_DATA_SKIPPED_MAX {
            return false;
        }
        // Without fixed newstyle the client understands no reply, so it may only name its export.
        if !self.fixed && option != option::EXPORT_NAME {
            return false;
        }
        let len = len as usize;
        if option == option::EXPORT_NAME && len > NAME_MAX {
            return false;
        }
        self.state = if len <= OPTION_DATA_MAX {
            State::Data { option, len }
        } else {
            refuse(outbox, option, reply::ERR_TOO_BIG, "the option's data is too long");
            State::Skip { rest: len }
        };
        true
    }

    fn option(&mut self, option: u32, data: &[u8], outbox: &mut Outbox, events: &mut Vec<Event>) -> Step {
        if self.tls == Tls::Required && !matches!(option, option::STARTTLS | option::ABORT) {
            if option == option::EXPORT_NAME {
                return Step::Close;
            }
            refuse(outbox, option, reply::ERR_TLS_REQD, "this server requires TLS");
            return Step::Wait;
        }
        match option {
            option::EXPORT_NAME => {
                let Some(name) = protocol::decode_name(data) else { return Step::Close };
                return self.ask(Question::ExportName { name: name.to_owned() }, outbox, events);
            }
            option::ABORT => {
                outbox.put(|out| put_option_reply(out, option, reply::ACK, &[]));
                return Step::Close;
            }
            option::LIST | option::STRUCTURED_REPLY | option::STARTTLS if !data.is_empty() => {
                refuse(outbox, option, reply::ERR_INVALID, "this option has no data");
            }
            option::LIST => return self.ask(Question::List, outbox, events),
            option::STRUCTURED_REPLY => {
                self.agreed.structured = true;
                outbox.put(|out| put_option_reply(out, option, reply::ACK, &[]));
            }
            option::STARTTLS => return self.start_tls(outbox),
            option::INFO | option::GO => match protocol::decode_info(data) {
                Some(request) => return self.ask_info(option, &request, outbox, events),
                None => refuse(outbox, option, reply::ERR_INVALID, "the option's data is malformed"),
            },
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                return self.contexts(option, data, outbox, events);
            }
            _ => refuse(outbox, option, reply::ERR_UNSUP, "this option is not known here"),
        }
        Step::Wait
    }

    fn start_tls(&mut self, outbox: &mut Outbox) -> Step {
        let (kind, text) = match self.tls {
            Tls::Off => (reply::ERR_POLICY, "TLS is switched off here"),
            Tls::Active => (reply::ERR_INVALID, "TLS is in use already"),
            Tls::Allowed | Tls::Required => {
                outbox.put(|out| put_option_reply(out, option::STARTTLS, reply::ACK, &[]));
                return Step::StartTls;
            }
        };
        refuse(outbox, option::STARTTLS, kind, text);
        Step::Wait
    }

    fn ask_info(
        &mut self,
        option: u32,
        request: &InfoRequest,
        outbox: &mut Outbox,
        events: &mut Vec<Event>,
    ) -> Step {
        let wants = Wants {
            block_size: request.wants_block_size,
            name: request.wants_name,
            description: request.wants_description,
        };
        self.ask(Question::Info { option, name: request.name.to_owned(), wants }, outbox, events)
    }

    fn contexts(&mut self, option: u32, data: &[u8], outbox: &mut Outbox, events: &mut Vec<Event>) -> Step {
        let aim = if option == option::SET_META_CONTEXT { Aim::Select } else { Aim::List };
        if aim == Aim::Select {
            // Whatever happens now, what was selected before no longer is.
            self.agreed.contexts = None;
        }
        let Some(request) = protocol::decode_meta(data) else {
            refuse(outbox, option, reply::ERR_INVALID, "the option's data is malformed");
            return Step::Wait;
        };
        if !self.agreed.structured {
            refuse(outbox, option, reply::ERR_INVALID, "structured replies must be agreed on first");
            return Step::Wait;
        }
        let name = request.name.to_owned();
        let queries = request.queries.iter().map(|query| (*query).to_owned()).collect();
        self.ask(Question::Contexts { aim, name, queries }, outbox, events)
    }

    /// Asks the server. A name whose options are not understood is answered here: the server has no part in how NBD spells them.
    fn ask(&mut self, question: Question, outbox: &mut Outbox, events: &mut Vec<Event>) -> Step {
        let wanted = question.name().map(wanted_by).transpose();
        let is_attach =
            matches!(question, Question::ExportName { .. } | Question::Info { option: option::GO, .. });
        self.state = State::Waiting(question);
        match wanted {
            Err(error) => return self.export(Err(AttachRefusal::Unavailable(error.to_string())), outbox),
            Ok(None) => events.push(Event::ListExports),
            Ok(Some(wanted)) if is_attach => events.push(Event::Attach { wanted }),
            Ok(Some(wanted)) => events.push(Event::Describe { wanted }),
        }
        Step::Wait
    }

    /// The server's answer to [`Event::ListExports`].
    pub(super) fn exports(&mut self, exports: &[Export], outbox: &mut Outbox) {
        let State::Waiting(Question::List) = std::mem::replace(&mut self.state, State::Option) else {
            panic!("a list of exports was not asked for");
        };
        outbox.put(|out| {
            for export in exports {
                let name_len = (export.name.len() as u32).to_be_bytes();
                let parts = [&name_len[..], export.name.as_bytes(), export.description.as_bytes()];
                put_option_reply(out, option::LIST, reply::SERVER, &parts);
            }
            put_option_reply(out, option::LIST, reply::ACK, &[]);
        });
    }

    /// The server's answer to [`Event::Describe`] or [`Event::Attach`].
    pub(super) fn export(&mut self, answer: Result<Export, AttachRefusal>, outbox: &mut Outbox) -> Step {
        let State::Waiting(question) = std::mem::replace(&mut self.state, State::Option) else {
            panic!("an export was not asked for");
        };
        match (question, answer) {
            (Question::List, _) => panic!("a list of exports was asked for"),
            (Question::ExportName { .. }, Err(_)) => Step::Close,
            (Question::ExportName { name }, Ok(export)) => {
                outbox.put(|out| {
                    out.extend_from_slice(&export.size.to_be_bytes());
                    out.extend_from_slice(&flags_of(&export, self.agreed.structured).to_be_bytes());
                    out.resize(out.len() + if self.no_zeroes { 0 } else { 124 }, 0);
                });
                self.enter(&name, export)
            }
            (Question::Info { option, .. }, Err(refusal)) => {
                let (kind, text) = reply_of(&refusal);
                refuse(outbox, option, kind, &text);
                Step::Wait
            }
            (Question::Info { option, name, wants }, Ok(export)) => {
                put_info(outbox, option, wants, &export, self.agreed.structured);
                if option == option::GO { self.enter(&name, export) } else { Step::Wait }
            }
            (Question::Contexts { aim, .. }, Err(refusal)) => {
                let (kind, text) = reply_of(&refusal);
                refuse(outbox, option_of(aim), kind, &text);
                Step::Wait
            }
            (Question::Contexts { aim, name, queries }, Ok(export)) => {
                let found = named(&queries, aim, &export);
                put_contexts(outbox, aim, &found);
                if aim == Aim::Select {
                    let contexts = found.into_iter().map(|(context, _)| context).collect();
                    self.agreed.contexts = Some((name, contexts));
                }
                Step::Wait
            }
        }
    }

    fn enter(&mut self, name: &str, export: Export) -> Step {
        let selected = self.agreed.contexts.take().filter(|(of, _)| of == name);
        let contexts = selected.map_or_else(Vec::new, |(_, contexts)| contexts);
        Step::Enter { export, structured: self.agreed.structured, contexts }
    }
}

/// Transmission flags of an export.
fn flags_of(export: &Export, structured: bool) -> u16 {
    // Every answered write is stable and every connection sees the same disk: flush, force-unit-access and several
    // connections cost nothing.
    let mut flags =
        flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_FUA | flag::CAN_MULTI_CONN | flag::SEND_CACHE;
    flags |= match export.read_only {
        true => flag::READ_ONLY,
        false => flag::SEND_TRIM | flag::SEND_WRITE_ZEROES | flag::SEND_FAST_ZERO,
    };
    flags | if structured { flag::SEND_DF } else { 0 }
}

/// Type and text of the reply to an option that asks for a disk which the client does not get.
fn reply_of(refusal: &AttachRefusal) -> (u32, String) {
    let kind = match refusal {
        AttachRefusal::Unknown | AttachRefusal::Unavailable(_) => reply::ERR_UNKNOWN,
        AttachRefusal::Forbidden(_) => reply::ERR_POLICY,
        AttachRefusal::Stopping => reply::ERR_SHUTDOWN,
    };
    let mut text = refusal.to_string();
    text.truncate(text.floor_char_boundary(NAME_MAX));
    (kind, text)
}

fn refuse(outbox: &mut Outbox, option: u32, kind: u32, text: &str) {
    outbox.put(|out| put_option_reply(out, option, kind, &[text.as_bytes()]));
}

fn put_info(outbox: &mut Outbox, option: u32, wants: Wants, export: &Export, structured: bool) {
    let kind = |kind: u16| kind.to_be_bytes();
    outbox.put(|out| {
        let (size, flags) = (export.size.to_be_bytes(), flags_of(export, structured).to_be_bytes());
        put_option_reply(out, option, reply::INFO, &[&kind(info::EXPORT), &size, &flags]);
        if wants.block_size {
            put_block_sizes(out, option);
        }
        if wants.name {
            put_option_reply(out, option, reply::INFO, &[&kind(info::NAME), export.name.as_bytes()]);
        }
        if wants.description && !export.description.is_empty() {
            let text = export.description.as_bytes();
            put_option_reply(out, option, reply::INFO, &[&kind(info::DESCRIPTION), text]);
        }
        put_option_reply(out, option, reply::ACK, &[]);
    });
}

fn option_of(aim: Aim) -> u32 {
    match aim {
        Aim::List => option::LIST_META_CONTEXT,
        Aim::Select => option::SET_META_CONTEXT,
    }
}

fn put_contexts(outbox: &mut Outbox, aim: Aim, found: &[(Context, String)]) {
    let option = option_of(aim);
    outbox.put(|out| {
        for (context, name) in found {
            // What is only listed has no number yet.
            let id = if aim == Aim::Select { context.id() } else { 0 };
            put_option_reply(out, option, reply::META_CONTEXT, &[&id.to_be_bytes()[..], name.as_bytes()]);
        }
        put_option_reply(out, option, reply::ACK, &[]);
    });
}
