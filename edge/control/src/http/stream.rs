//! `GET /stream`: what changes, and figures once a second, as server-sent events.

use super::access::check;
use super::caller::{Caller, Page};
use super::input::Options;
use super::rights::Need;
use crate::control::{Beat, Control, Of};
use crate::limits::{STREAM_FRAMES, STREAM_SIGN, STREAMS_MAX};
use api::types::{Changed, HostSamples, StreamFigures, StreamQuery, TopicWord};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use failure::Failure;
use http_body_util::channel::{Channel, Sender};
use serde::Serialize;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use trust::Action;

type Shared = State<Arc<Control>>;

/// What a client wants to be told.
struct Wanted {
    figures: BTreeSet<Of>,
    /// Nothing: all.
    topics: Option<BTreeSet<TopicWord>>,
}

impl Wanted {
    fn read(query: &StreamQuery) -> Result<Wanted, Failure> {
        let words = |text: &str| -> Vec<String> {
            text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let topic = |word: &String| {
            let found: TopicWord = serde_json::from_value(word.as_str().into())
                .map_err(|error| Failure::usage(error.to_string()))?;
            match found {
                TopicWord::Unknown => Err(Failure::usage(format!("there is no topic `{word}`"))
                    .hint("disks, hosts, devices, policies, health, events, settings, people")),
                known => Ok(known),
            }
        };
        let topics =
            query.topics.as_deref().map(|text| words(text).iter().map(topic).collect()).transpose()?;
        let figures = words(&query.figures).iter().map(|word| Of::parse(word)).collect::<Result<_, _>>()?;
        Ok(Wanted { figures, topics })
    }

    fn is_of(&self, changed: &Changed) -> bool {
        self.topics.as_ref().is_none_or(|topics| topics.contains(&changed.topic))
    }
}

/// Follow what changes, and what guests do. Events: `all` (everything may have changed: first of all, and after a gap), `changed` with a
/// `Changed`, `figures` once a second with a `StreamFigures`. Every ten seconds at least something comes.
#[utoipa::path(get, path = "/api/v1/stream", params(StreamQuery), responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = Failure)))]
pub async fn stream(
    State(control): Shared,
    Extension(caller): Extension<Caller>,
    Options(query): Options<StreamQuery>,
) -> Result<Response, Failure> {
    let wanted = Wanted::read(&query)?;
    let place = place(&control)?;
    let (sender, body) = Channel::new(STREAM_FRAMES);
    let beats = control.pulse.watch();
    let follow = Follow { control, caller, sender, _place: place };
    tokio::spawn(follow.tell(wanted, beats));
    Ok(answer(body))
}

/// Follow what the guests of this host alone do, once a second; for other hosts.
#[utoipa::path(get, path = "/api/v1/stream/host", responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = Failure)))]
pub async fn stream_host(
    State(control): Shared,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Failure> {
    let place = place(&control)?;
    let (sender, body) = Channel::new(STREAM_FRAMES);
    let follow = Follow { control, caller, sender, _place: place };
    tokio::spawn(follow.tell_host());
    Ok(answer(body))
}

fn place(control: &Control) -> Result<OwnedSemaphorePermit, Failure> {
    Arc::clone(&control.streams).try_acquire_owned().map_err(|_| {
        Failure::refused(format!("{STREAMS_MAX} streams of this host are open"))
            .hint("close some pages, or ask another host")
    })
}

fn answer(body: Channel<Bytes, Infallible>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, Body::new(body)).into_response()
}

/// One stream under way.
struct Follow {
    control: Arc<Control>,
    caller: Caller,
    sender: Sender<Bytes, Infallible>,
    _place: OwnedSemaphorePermit,
}

impl Follow {
    /// Tells until the client or the host goes, or may not ask any more.
    async fn tell(mut self, wanted: Wanted, mut beats: Receiver<Arc<Beat>>) {
        let mut stopping = self.control.stopping();
        let mut last = Instant::now();
        if self.send(&event("all", &serde_json::json!({}))).await.is_err() {
            return;
        }
        loop {
            let heard = tokio::select! {
                heard = beats.recv() => heard,
                _ = stopping.wait_for(|stopping| *stopping) => return,
            };
            let text = match heard {
                Ok(beat) => self.text_of(&wanted, &beat),
                Err(RecvError::Lagged(_)) => event("all", &serde_json::json!({})),
                Err(RecvError::Closed) => return,
            };
            let text = match text.is_empty() {
                false => text,
                true if last.elapsed() >= STREAM_SIGN => ": still here\n\n".to_owned(),
                true => continue,
            };
            last = Instant::now();
            if !self.may() || self.send(&text).await.is_err() {
                return;
            }
        }
    }

    async fn tell_host(mut self) {
        let mut stopping = self.control.stopping();
        let mut ticks = tokio::time::interval(crate::limits::PULSE_PERIOD);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stopping.wait_for(|stopping| *stopping) => return,
            }
            let samples: HostSamples = self.control.own_samples();
            if !self.may() || self.send(&event("samples", &samples)).await.is_err() {
                return;
            }
        }
    }

    async fn send(&mut self, text: &str) -> Result<(), ()> {
        let events = text.lines().filter(|line| line.starts_with("event: ")).count();
        self.sender.send_data(Bytes::from(text.to_owned())).await.map_err(drop)?;
        self.control.stream_events.fetch_add(events as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Whether whoever asked still may: certificates are revoked, and sessions end.
    fn may(&self) -> bool {
        let is_open = match &self.caller {
            Caller::Page(Page { session: Some(session), .. }) => {
                self.control.sessions.is_open(session, Instant::now())
            }
            Caller::Local | Caller::Nobody | Caller::Known { .. } | Caller::Person(_) | Caller::Page(_) => {
                true
            }
        };
        is_open && check(&self.control, &self.caller, Need::Right(Action::See)).is_ok()
    }

    fn text_of(&self, wanted: &Wanted, beat: &Beat) -> String {
        let told = beat.changed.iter().filter(|changed| wanted.is_of(changed));
        let mut text: String = told.map(|changed| event("changed", changed)).collect();
        if let Some(loads) = beat.loads.as_ref().filter(|_| !wanted.figures.is_empty()) {
            let view = self.control.cluster.view();
            let found = |of: &Of| Some((of.to_string(), loads.find(of, &view)?));
            let figures = StreamFigures {
                time_ms: loads.time_ms,
                of: wanted.figures.iter().filter_map(found).collect(),
                silent: loads.silent.clone(),
            };
            text += &event("figures", &figures);
        }
        text
    }
}

fn event(name: &str, data: &impl Serialize) -> String {
    format!("event: {name}\ndata: {}\n\n", serde_json::to_string(data).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_read_or_refused_by_name() {
        let read = |figures: &str, topics: Option<&str>| {
            Wanted::read(&StreamQuery { figures: figures.to_owned(), topics: topics.map(str::to_owned) })
        };
        let wanted = read("cluster,disk/web", Some("disks,health")).expect("both");
        assert_eq!((wanted.figures.len(), wanted.topics.expect("some").len()), (2, 2));
        assert!(read("", None).expect("all topics").topics.is_none());
        assert!(read("", Some("")).expect("no topics").topics.is_some_and(|topics| topics.is_empty()));
        for (figures, topics, word) in [("disc/web", None, "`disc/web`"), ("", Some("disk"), "`disk`")] {
            let failure = read(figures, topics).err().expect("refused");
            assert!(failure.error.contains(word), "{failure}");
        }
    }
}
