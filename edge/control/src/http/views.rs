//! Handlers of tasks, series and handovers.

use crate::control::Control;
use crate::http::input::{Input, Options};
use api::types::{
    HandOver, HandoverView, HostSeriesQuery, HostSeriesView, HostTasksView, SeriesQuery, SeriesView,
    TasksView,
};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
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

/// Let one further host attach a disk for a while, so that a running guest can move there. The host that has the disk keeps it; the handover ends
/// with its last client there, or with the time.
#[utoipa::path(post, path = "/api/v1/disks/{name}/handover", params(("name" = String, Path)), request_body = HandOver, responses((status = 200, body = HandoverView), (status = "default", body = Failure)))]
pub async fn hand_over(
    State(control): Shared,
    Path(name): Path<String>,
    Input(request): Input<HandOver>,
) -> Answer<HandoverView> {
    control.hand_over(&name, &request).await.map(Json)
}

/// End the handover of a disk. Hosts that have the disk by now keep it.
#[utoipa::path(delete, path = "/api/v1/disks/{name}/handover", params(("name" = String, Path)), responses((status = 204), (status = "default", body = Failure)))]
pub async fn end_handover(State(control): Shared, Path(name): Path<String>) -> Result<StatusCode, Failure> {
    control.end_handover(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}
