//! The directory over HTTP, for the other processes of this machine: on a unix socket of its owner alone.

use super::{Attendees, Beat, Change, Changes, Entry, Outcome, Store};
use crate::http::input::Options;
use crate::limits::SHARED_BODY_BYTES_MAX;
use crate::system::blocking;
use axum::extract::{DefaultBodyLimit, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use failure::Failure;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which record.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    key: String,
}

/// From where a watch goes on.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct After {
    after: Option<u64>,
}

/// What the directory answers.
pub fn router(store: Arc<Store>) -> Router {
    Router::new()
        .route("/directory/v1/record", get(record))
        .route("/directory/v1/changes", get(changes))
        .route("/directory/v1/commit", post(commit))
        .route("/directory/v1/beat", post(beat))
        .layer(DefaultBodyLimit::max(SHARED_BODY_BYTES_MAX))
        .with_state(store)
}

async fn record(State(store): State<Arc<Store>>, Options(key): Options<Key>) -> Json<Option<Entry>> {
    Json(store.get(&key.key))
}

async fn changes(State(store): State<Arc<Store>>, Options(after): Options<After>) -> Json<Changes> {
    Json(store.watch(after.after).await)
}

async fn commit(
    State(store): State<Arc<Store>>,
    Json(changes): Json<Vec<Change>>,
) -> Result<Json<Outcome>, Failure> {
    blocking(|| store.commit(&changes)).map(Json)
}

async fn beat(State(store): State<Arc<Store>>, Json(beat): Json<Beat>) -> Json<Attendees> {
    Json(store.beat(beat))
}
