//! Handlers of what runs and of what was: tasks and series.

use crate::control::Control;
use crate::http::input::Options;
use api::types::{HostSeriesQuery, HostSeriesView, HostTasksView, SeriesQuery, SeriesView, TasksView};
use axum::Json;
use axum::extract::State;
use failure::Failure;
use std::sync::Arc;

type Answer<T> = Result<Json<T>, Failure>;
type Shared = State<Arc<Control>>;

/// List what runs: maintenance, evacuations, moves, copies, imports, rollbacks. Each with its progress, who asked for it, and how to stop it.
#[utoipa::path(get, path = "/api/v1/tasks", responses((status = 200, body = TasksView), (status = "default", body = Failure)))]
pub async fn tasks(State(control): Shared) -> Answer<TasksView> {
    control.tasks().await.map(Json)
}

/// Show what this host alone knows of tasks. Hosts ask each other for it.
#[utoipa::path(get, path = "/api/v1/tasks/host", responses((status = 200, body = HostTasksView), (status = "default", body = Failure)))]
pub async fn host_tasks(State(control): Shared) -> Answer<HostTasksView> {
    control.host_tasks().await.map(Json)
}

/// Show what guests or a device did over time: rates, latencies, and requests by latency, in steps. The last hour is known by the second, 90
/// days by five minutes.
#[utoipa::path(get, path = "/api/v1/series", params(SeriesQuery), responses((status = 200, body = SeriesView), (status = "default", body = Failure)))]
pub async fn series(State(control): Shared, Options(query): Options<SeriesQuery>) -> Answer<SeriesView> {
    control.series(&query).await.map(Json)
}

/// Show what this host alone knows of a series. Hosts ask each other for it.
#[utoipa::path(get, path = "/api/v1/series/host", params(HostSeriesQuery), responses((status = 200, body = HostSeriesView), (status = "default", body = Failure)))]
pub async fn host_series(
    State(control): Shared,
    Options(query): Options<HostSeriesQuery>,
) -> Answer<HostSeriesView> {
    control.host_series(&query).await.map(Json)
}
