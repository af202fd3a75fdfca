//! One function per path and method. Each asks `control` and gives back what it says.

use super::access::{check, to_the_end, who_asks};
use crate::control::Control;
use crate::estimates::rates_of;
use crate::http::caller::Caller;
use crate::http::input::{Input, Options};
use crate::http::rights::Need;
use api::types::{
    AddDevices, AddedDevices, AllDevicesView, BalanceView, BeginImport, BeginMaintenance, CertificateAnswer,
    CertificateRequest, CertificatesView, ChangeDisk, ChangePolicy, ChangeSettings, ChangeSnapshot,
    ChangesQuery, ChangesView, CloneDisk, ConfirmAuthority, ConfirmHost, ConfirmSnapshot, CopyRequest,
    CopyView, CreateDisk, CreatePolicy, CreateSnapshot, CreateSnapshots, DeleteDisk, DeviceOrderDone,
    DeviceView, DirectoryView, DiskQuery, DiskSummary, DiskView, EndImport, EstimateProgressView,
    EstimateView, EvacuateDevice, EvacuationView, EventQuery, EventView, EventsView, ExplainPolicy,
    ExplainedPolicy, FlattenDisk, FlattenedView, ForecastView, FoundCluster, FoundedView, HealthView,
    HistogramsView, HostPassView, HostRewriteView, HostSampleView, HostSummary, HostView, ImportView,
    JoinAnswer, JoinRequest, KeepDevice, LocalView, MaintenanceView, MakeSilence, MakeToken, MeView,
    NamedSilence, OrderDevices, PersonView, PolicyView, RatesView, RebuildDirectory, RebuildView,
    RemoveOptions, RemovedDevice, RemovedHost, ReplaceDevice, ReplacementView, ResyncsView, RewriteHost,
    RewriteView, RollBack, RollbackView, SettingsView, SilenceView, Since, SnapshotView, StartEstimate,
    SupportView, TokenView, TopView, UnclaimedDevice, VersionsView, WhatIf,
};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use failure::Failure;
use std::sync::Arc;

type Answer<T> = Result<Json<T>, Failure>;
type Created<T> = Result<(StatusCode, Json<T>), Failure>;
type Shared = State<Arc<Control>>;

/// Show the host, its disk groups and devices.
#[utoipa::path(get, path = "/api/v1/host", responses((status = 200, body = HostView), (status = "default", body = Failure)))]
pub async fn host(State(control): Shared) -> Answer<HostView> {
    control.host_view().await.map(Json)
}

/// List the hosts of the cluster.
#[utoipa::path(get, path = "/api/v1/hosts", responses((status = 200, body = Vec<HostSummary>), (status = "default", body = Failure)))]
pub async fn hosts(State(control): Shared) -> Answer<Vec<HostSummary>> {
    control.hosts().await.map(Json)
}

/// Show what this host alone knows: the disks that it owns, its components, its clients, its links.
#[utoipa::path(get, path = "/api/v1/cluster/local", responses((status = 200, body = LocalView), (status = "default", body = Failure)))]
pub async fn local(State(control): Shared) -> Answer<LocalView> {
    control.local().await.map(Json)
}

/// Give what this host and its devices know of the directory. Hosts ask for it when the directory was lost.
#[utoipa::path(post, path = "/api/v1/cluster/copy", request_body = CopyRequest, responses((status = 200, body = CopyView), (status = "default", body = Failure)))]
pub async fn copy(State(control): Shared, Input(request): Input<CopyRequest>) -> Answer<CopyView> {
    control.give_copy(request.seal).await.map(Json)
}

/// Initialize a cluster of several hosts with this one, which stands alone. Its directory moves into the etcd that its configuration
/// names now, and other hosts can join. Disks and attached guests stay.
#[utoipa::path(post, path = "/api/v1/cluster", request_body = FoundCluster, responses((status = 200, body = FoundedView), (status = "default", body = Failure)))]
pub async fn found_cluster(
    State(control): Shared,
    Input(request): Input<FoundCluster>,
) -> Answer<FoundedView> {
    to_the_end(async move { control.found_cluster(&request).await }).await.map(Json)
}

/// Rebuild the directory from what the hosts and their devices know, in the empty etcd of the configuration, or show the result
/// without writing it.
#[utoipa::path(post, path = "/api/v1/cluster/rebuild-directory", request_body = RebuildDirectory, responses((status = 200, body = RebuildView), (status = "default", body = Failure)))]
pub async fn rebuild_directory(
    State(control): Shared,
    Input(request): Input<RebuildDirectory>,
) -> Answer<RebuildView> {
    control.rebuild_directory(&request).await.map(Json)
}

/// Show where the directory is, and which members etcd has.
#[utoipa::path(get, path = "/api/v1/cluster/directory", responses((status = 200, body = DirectoryView), (status = "default", body = Failure)))]
pub async fn directory(State(control): Shared) -> Answer<DirectoryView> {
    Ok(Json(control.cluster.directory_view()))
}

/// Show the releases that the hosts run, and the level of the records.
#[utoipa::path(get, path = "/api/v1/cluster/versions", responses((status = 200, body = VersionsView), (status = "default", body = Failure)))]
pub async fn versions(State(control): Shared) -> Json<VersionsView> {
    Json(control.versions())
}

/// Raise the level of the records to the next, if all hosts understand it.
#[utoipa::path(post, path = "/api/v1/cluster/upgrade", responses((status = 200, body = VersionsView), (status = "default", body = Failure)))]
pub async fn upgrade(State(control): Shared) -> Answer<VersionsView> {
    control.upgrade().await.map(Json)
}

/// Show the settings of the cluster.
#[utoipa::path(get, path = "/api/v1/cluster/settings", responses((status = 200, body = SettingsView), (status = "default", body = Failure)))]
pub async fn settings(State(control): Shared) -> Answer<SettingsView> {
    Ok(Json(control.settings()?.into()))
}

/// Change settings of the cluster.
#[utoipa::path(patch, path = "/api/v1/cluster/settings", request_body = ChangeSettings, responses((status = 200, body = SettingsView), (status = "default", body = Failure)))]
pub async fn change_settings(
    State(control): Shared,
    Input(request): Input<ChangeSettings>,
) -> Answer<SettingsView> {
    Ok(Json(control.change_settings(request).await?.into()))
}

/// Show how evenly the devices of the cluster are used, and what is moved to even them out.
#[utoipa::path(get, path = "/api/v1/cluster/balance", responses((status = 200, body = BalanceView), (status = "default", body = Failure)))]
pub async fn balance(State(control): Shared) -> Answer<BalanceView> {
    control.balance().await.map(Json)
}

/// Show what is wrong and what to do about it.
#[utoipa::path(get, path = "/api/v1/health", responses((status = 200, body = HealthView), (status = "default", body = Failure)))]
pub async fn health(State(control): Shared) -> Answer<HealthView> {
    control.health().await.map(Json)
}

/// List the silences of findings.
#[utoipa::path(get, path = "/api/v1/health/silences", responses((status = 200, body = Vec<SilenceView>), (status = "default", body = Failure)))]
pub async fn silences(State(control): Shared) -> Answer<Vec<SilenceView>> {
    Ok(Json(control.silences()))
}

/// Silence findings for a while: they are listed separately and do not count.
#[utoipa::path(post, path = "/api/v1/health/silences", request_body = MakeSilence, responses((status = 201, body = SilenceView), (status = "default", body = Failure)))]
pub async fn silence(State(control): Shared, Input(request): Input<MakeSilence>) -> Created<SilenceView> {
    Ok((StatusCode::CREATED, Json(control.silence(request).await?)))
}

/// End a silence.
#[utoipa::path(delete, path = "/api/v1/health/silences", params(NamedSilence), responses((status = 204), (status = "default", body = Failure)))]
pub async fn unsilence(
    State(control): Shared,
    Options(named): Options<NamedSilence>,
) -> Result<StatusCode, Failure> {
    control.unsilence(&named).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Start the maintenance of a host, or show what it would do to every disk.
#[utoipa::path(post, path = "/api/v1/hosts/{name}/maintenance", params(("name" = String, Path)), request_body = BeginMaintenance, responses((status = 200, body = MaintenanceView), (status = "default", body = Failure)))]
pub async fn begin_maintenance(
    State(control): Shared,
    Path(name): Path<String>,
    Input(request): Input<BeginMaintenance>,
) -> Answer<MaintenanceView> {
    control.begin_maintenance(&name, request).await.map(Json)
}

/// End the maintenance of a host.
#[utoipa::path(delete, path = "/api/v1/hosts/{name}/maintenance", params(("name" = String, Path)), responses((status = 204), (status = "default", body = Failure)))]
pub async fn end_maintenance(
    State(control): Shared,
    Path(name): Path<String>,
) -> Result<StatusCode, Failure> {
    control.end_maintenance(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Remove a host from the cluster that is lost for good; `confirm` must be its name.
#[utoipa::path(delete, path = "/api/v1/hosts/{name}", params(("name" = String, Path), ConfirmHost), responses((status = 200, body = RemovedHost), (status = "default", body = Failure)))]
pub async fn remove_host(
    State(control): Shared,
    Path(name): Path<String>,
    Options(confirm): Options<ConfirmHost>,
) -> Answer<RemovedHost> {
    control.remove_host(&name, confirm.confirm.as_deref()).await.map(Json)
}

/// List events of this host and of the disks that it owned, oldest first.
#[utoipa::path(get, path = "/api/v1/events", params(EventQuery), responses((status = 200, body = Vec<EventView>), (status = "default", body = Failure)))]
pub async fn events(State(control): Shared, Options(query): Options<EventQuery>) -> Answer<Vec<EventView>> {
    control.events(&query).map(Json)
}

/// List events of all hosts that answer, oldest first.
#[utoipa::path(get, path = "/api/v1/cluster/events", params(EventQuery), responses((status = 200, body = EventsView), (status = "default", body = Failure)))]
pub async fn all_events(State(control): Shared, Options(query): Options<EventQuery>) -> Answer<EventsView> {
    control.all_events(&query).await.map(Json)
}

/// Forecast a change of the cluster. Nothing is changed.
#[utoipa::path(post, path = "/api/v1/what-if", request_body = WhatIf, responses((status = 200, body = ForecastView), (status = "default", body = Failure)))]
pub async fn what_if(State(control): Shared, Input(request): Input<WhatIf>) -> Answer<ForecastView> {
    control.what_if(request).await.map(Json)
}

/// Estimate what compression and deduplication would save, by the samples that hosts have.
#[utoipa::path(get, path = "/api/v1/estimate", responses((status = 200, body = EstimateView), (status = "default", body = Failure)))]
pub async fn estimate(State(control): Shared) -> Answer<EstimateView> {
    control.estimate(None).await.map(Json)
}

/// Estimate what compression and deduplication would save of a disk, by the samples that hosts have.
#[utoipa::path(get, path = "/api/v1/disks/{name}/estimate", params(("name" = String, Path, description = "Name or id")), responses((status = 200, body = EstimateView), (status = "default", body = Failure)))]
pub async fn disk_estimate(State(control): Shared, Path(name): Path<String>) -> Answer<EstimateView> {
    control.estimate(Some(&name)).await.map(Json)
}

/// Begin to write a compressed disk anew, so that what was written before takes less space, too.
#[utoipa::path(post, path = "/api/v1/disks/{name}/rewrite", params(("name" = String, Path, description = "Name or id")), responses((status = 200, body = RewriteView), (status = "default", body = Failure)))]
pub async fn rewrite_disk(State(control): Shared, Path(name): Path<String>) -> Answer<RewriteView> {
    control.rewrite_disk(&name).await.map(Json)
}

/// Begin to write the components of a disk on this host anew. Hosts ask for it.
#[utoipa::path(post, path = "/api/v1/rewrite/host", request_body = RewriteHost, responses((status = 200, body = HostRewriteView), (status = "default", body = Failure)))]
pub async fn rewrite_here(
    State(control): Shared,
    Input(order): Input<RewriteHost>,
) -> Answer<HostRewriteView> {
    control.rewrite_here(&order).await.map(Json)
}

/// Begin a pass on all hosts that samples their data for an estimate.
#[utoipa::path(post, path = "/api/v1/estimate", request_body = StartEstimate, responses((status = 200, body = EstimateProgressView), (status = "default", body = Failure)))]
pub async fn start_estimate(
    State(control): Shared,
    Input(request): Input<StartEstimate>,
) -> Answer<EstimateProgressView> {
    control.start_estimate(request).await.map(Json)
}

/// End the pass on all hosts. The samples of earlier passes stay.
#[utoipa::path(delete, path = "/api/v1/estimate", responses((status = 200, body = EstimateProgressView), (status = "default", body = Failure)))]
pub async fn stop_estimate(State(control): Shared) -> Answer<EstimateProgressView> {
    control.stop_estimate().await.map(Json)
}

/// Show the progress of the pass on each host.
#[utoipa::path(get, path = "/api/v1/estimate/progress", responses((status = 200, body = EstimateProgressView), (status = "default", body = Failure)))]
pub async fn estimate_progress(State(control): Shared) -> Answer<EstimateProgressView> {
    control.estimate_progress().await.map(Json)
}

/// Show the sample of this host. Hosts ask for it.
#[utoipa::path(get, path = "/api/v1/estimate/host", responses((status = 200, body = HostSampleView), (status = "default", body = Failure)))]
pub async fn host_sample(State(control): Shared) -> Answer<HostSampleView> {
    control.host_sample().await.map(Json)
}

/// Begin a pass on this host alone. Hosts ask for it.
#[utoipa::path(post, path = "/api/v1/estimate/host", request_body = RatesView, responses((status = 200, body = HostPassView), (status = "default", body = Failure)))]
pub async fn begin_pass(State(control): Shared, Input(rates): Input<RatesView>) -> Answer<HostPassView> {
    control.begin_pass(rates_of(rates)).await.map(Json)
}

/// End the pass on this host alone. Hosts ask for it.
#[utoipa::path(delete, path = "/api/v1/estimate/host", responses((status = 200, body = HostPassView), (status = "default", body = Failure)))]
pub async fn end_pass(State(control): Shared) -> Answer<HostPassView> {
    control.end_pass().await.map(Json)
}

/// Show the progress of the pass on this host. Hosts ask for it.
#[utoipa::path(get, path = "/api/v1/estimate/host/progress", responses((status = 200, body = HostPassView), (status = "default", body = Failure)))]
pub async fn host_pass(State(control): Shared) -> Answer<HostPassView> {
    control.host_pass().await.map(Json)
}

/// Show the resync of disks: what is copied, how much is left, and what waits for what.
#[utoipa::path(get, path = "/api/v1/resync", responses((status = 200, body = ResyncsView), (status = "default", body = Failure)))]
pub async fn resync(State(control): Shared) -> Answer<ResyncsView> {
    control.resync().await.map(Json)
}

/// Give this host's part of a support bundle, without secrets.
#[utoipa::path(get, path = "/api/v1/support", responses((status = 200, body = SupportView), (status = "default", body = Failure)))]
pub async fn support(State(control): Shared) -> Answer<SupportView> {
    control.support().await.map(Json)
}

/// Give the part of a support bundle of a host of the cluster, without secrets.
#[utoipa::path(get, path = "/api/v1/support/hosts/{name}", params(("name" = String, Path)), responses((status = 200, body = SupportView), (status = "default", body = Failure)))]
pub async fn support_of(State(control): Shared, Path(name): Path<String>) -> Answer<SupportView> {
    control.support_of(&name).await.map(Json)
}

/// List the devices of this host.
#[utoipa::path(get, path = "/api/v1/devices", responses((status = 200, body = Vec<DeviceView>), (status = "default", body = Failure)))]
pub async fn devices(State(control): Shared) -> Answer<Vec<DeviceView>> {
    control.devices().await.map(Json)
}

/// List block devices of this host that no disk group uses, with what holds them.
#[utoipa::path(get, path = "/api/v1/devices/unclaimed", responses((status = 200, body = Vec<UnclaimedDevice>), (status = "default", body = Failure)))]
pub async fn unclaimed(State(control): Shared) -> Answer<Vec<UnclaimedDevice>> {
    control.unclaimed().await.map(Json)
}

/// List the devices of all hosts that answer.
#[utoipa::path(get, path = "/api/v1/cluster/devices", responses((status = 200, body = AllDevicesView), (status = "default", body = Failure)))]
pub async fn all_devices(State(control): Shared) -> Answer<AllDevicesView> {
    control.all_devices().await.map(Json)
}

/// Create a disk group of devices, or add capacity devices to a group.
#[utoipa::path(post, path = "/api/v1/devices", request_body = AddDevices, responses((status = 201, body = AddedDevices), (status = "default", body = Failure)))]
pub async fn add_devices(State(control): Shared, Input(request): Input<AddDevices>) -> Created<AddedDevices> {
    Ok((StatusCode::CREATED, Json(control.add_devices_at(request).await?)))
}

/// Replace a failed device with a new one. For a failed log device, a new group is created.
#[utoipa::path(post, path = "/api/v1/devices/replace", request_body = ReplaceDevice, responses((status = 200, body = ReplacementView), (status = "default", body = Failure)))]
pub async fn replace_device(
    State(control): Shared,
    Input(request): Input<ReplaceDevice>,
) -> Answer<ReplacementView> {
    control.replace_device_at(request).await.map(Json)
}

/// Remove an empty device, or with `group=true` the empty group of a log device.
#[utoipa::path(delete, path = "/api/v1/devices/{id}", params(("id" = String, Path), RemoveOptions), responses((status = 200, body = RemovedDevice), (status = "default", body = Failure)))]
pub async fn remove_device(
    State(control): Shared,
    Path(id): Path<String>,
    Options(options): Options<RemoveOptions>,
) -> Answer<RemovedDevice> {
    control.remove_device_at(&id, options).await.map(Json)
}

/// Do with devices of this host what another host hands on.
#[utoipa::path(post, path = "/api/v1/devices/host", request_body = OrderDevices, responses((status = 200, body = DeviceOrderDone), (status = "default", body = Failure)))]
pub async fn devices_ordered(
    State(control): Shared,
    Input(request): Input<OrderDevices>,
) -> Answer<DeviceOrderDone> {
    control.devices_ordered(request).await.map(Json)
}

/// Empty a capacity device, or show what that would do. The device keeps serving its components and takes no new ones.
#[utoipa::path(post, path = "/api/v1/devices/evacuate", request_body = EvacuateDevice, responses((status = 200, body = EvacuationView), (status = "default", body = Failure)))]
pub async fn evacuate_device(
    State(control): Shared,
    Input(request): Input<EvacuateDevice>,
) -> Answer<EvacuationView> {
    control.evacuate_device(request).await.map(Json)
}

/// Cancel the evacuation of a device.
#[utoipa::path(post, path = "/api/v1/devices/keep", request_body = KeepDevice, responses((status = 204), (status = "default", body = Failure)))]
pub async fn keep_device(
    State(control): Shared,
    Input(request): Input<KeepDevice>,
) -> Result<StatusCode, Failure> {
    control.keep_device(&request.device).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List disks by name: all, or those that the query asks for.
#[utoipa::path(get, path = "/api/v1/disks", params(DiskQuery), responses((status = 200, body = Vec<DiskSummary>, headers(("link" = String, description = "With `limit`: where the next page is, if there is one."))), (status = "default", body = Failure)))]
pub async fn disks(State(control): Shared, Options(query): Options<DiskQuery>) -> Result<Response, Failure> {
    if query.limit == Some(0) {
        return Err(Failure::usage("limit=0 lists nothing: it is at least 1"));
    }
    let (disks, has_more) = control.disks_of(&query).await?;
    let next = disks.last().filter(|_| has_more).map(|last| {
        let rest = DiskQuery { after: Some(last.name.clone()), ..query };
        [(header::LINK, format!("<{}>; rel=\"next\"", rest.path()))]
    });
    Ok((next, Json(disks)).into_response())
}

/// Create a disk. With `dry_run` the answer is where it would stand and what it would cost, and nothing is created; with `unless_there`, a disk that an
/// earlier request like this one created is the answer.
#[utoipa::path(post, path = "/api/v1/disks", request_body = CreateDisk, responses((status = 201, body = DiskView), (status = 200, description = "It was there, or would be created so", body = CreateDiskAnswer), (status = "default", body = Failure)))]
pub async fn create_disk(
    State(control): Shared,
    Input(request): Input<CreateDisk>,
) -> Result<Response, Failure> {
    if let Some(made) = control.made_before(&request).await? {
        return Ok(Json(made).into_response());
    }
    if request.dry_run {
        return Ok(Json(control.plan_disk(&request).await?).into_response());
    }
    Ok((StatusCode::CREATED, Json(control.create_disk(request).await?)).into_response())
}

/// What a request to create a disk is answered with that creates none.
#[derive(utoipa::ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "a schema of the document")]
pub enum CreateDiskAnswer {
    /// With `unless_there`: the disk that was there.
    There(Box<DiskView>),
    /// With `dry_run`: the plan.
    Planned(Box<ExplainedPolicy>),
}

/// Show a disk, by name or id.
#[utoipa::path(get, path = "/api/v1/disks/{name}", params(("name" = String, Path)), responses((status = 200, body = DiskView), (status = "default", body = Failure)))]
pub async fn disk(State(control): Shared, Path(name): Path<String>) -> Answer<DiskView> {
    control.disk_view(&name).await.map(Json)
}

/// Change a disk: its name, its size, its rules, whether it is read-only or shared, and who may attach to it.
#[utoipa::path(patch, path = "/api/v1/disks/{name}", params(("name" = String, Path)), request_body = ChangeDisk, responses((status = 200, body = DiskView), (status = "default", body = Failure)))]
pub async fn change_disk(
    State(control): Shared,
    Path(name): Path<String>,
    Extension(caller): Extension<Caller>,
    Input(request): Input<ChangeDisk>,
) -> Answer<DiskView> {
    // Whoever is kept out may change disks, too.
    if request.allowed.is_some() {
        check(&control, &caller, Need::Right(trust::Action::ChangeCluster))?;
    }
    to_the_end(async move { control.change_disk(&name, request).await }).await.map(Json)
}

/// Delete a disk; `confirm` must be its name.
#[utoipa::path(delete, path = "/api/v1/disks/{name}", params(("name" = String, Path), DeleteDisk), responses((status = 204), (status = "default", body = Failure)))]
pub async fn delete_disk(
    State(control): Shared,
    Path(name): Path<String>,
    Options(request): Options<DeleteDisk>,
) -> Result<StatusCode, Failure> {
    to_the_end(async move { control.delete_disk(&name, &request).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Begin an import: give an export of the disk that nobody else can attach to. `confirm` must be the disk's name.
#[utoipa::path(post, path = "/api/v1/disks/{name}/import", params(("name" = String, Path)), request_body = BeginImport, responses((status = 201, body = ImportView), (status = "default", body = Failure)))]
pub async fn begin_import(
    State(control): Shared,
    Path(name): Path<String>,
    Input(request): Input<BeginImport>,
) -> Created<ImportView> {
    let begun = to_the_end(async move { control.begin_import(&name, request).await }).await?;
    Ok((StatusCode::CREATED, Json(begun)))
}

/// End an import: others may attach to the disk again.
#[utoipa::path(post, path = "/api/v1/disks/{name}/import/end", params(("name" = String, Path)), request_body = EndImport, responses((status = 200, body = DiskView), (status = "default", body = Failure)))]
pub async fn end_import(
    State(control): Shared,
    Path(name): Path<String>,
    Input(request): Input<EndImport>,
) -> Answer<DiskView> {
    to_the_end(async move { control.end_import(&name, request).await }).await.map(Json)
}

/// Create a disk as a clone of a snapshot of another one: it shows what the snapshot holds until it is written.
#[utoipa::path(post, path = "/api/v1/disks/{name}/clones", params(("name" = String, Path)), request_body = CloneDisk, responses((status = 201, body = DiskView), (status = "default", body = Failure)))]
pub async fn clone_disk(
    State(control): Shared,
    Path(name): Path<String>,
    Input(request): Input<CloneDisk>,
) -> Created<DiskView> {
    Ok((StatusCode::CREATED, Json(control.clone_disk(&name, request).await?)))
}

/// Have a clone copy what it shares with its origin, for a second; call it again from `next` on until that is null.
#[utoipa::path(post, path = "/api/v1/disks/{name}/flatten", params(("name" = String, Path)), request_body = FlattenDisk, responses((status = 200, body = FlattenedView), (status = "default", body = Failure)))]
pub async fn flatten_disk(
    State(control): Shared,
    Path(name): Path<String>,
    Input(request): Input<FlattenDisk>,
) -> Answer<FlattenedView> {
    control.flatten(&name, &request).await.map(Json)
}

/// List the snapshots of a disk, the oldest first.
#[utoipa::path(get, path = "/api/v1/disks/{name}/snapshots", params(("name" = String, Path)), responses((status = 200, body = Vec<SnapshotView>), (status = "default", body = Failure)))]
pub async fn snapshots(State(control): Shared, Path(name): Path<String>) -> Answer<Vec<SnapshotView>> {
    control.snapshots(&name).await.map(Json)
}

/// Take a snapshot of a disk while guests use it. It is crash-consistent.
#[utoipa::path(post, path = "/api/v1/disks/{name}/snapshots", params(("name" = String, Path)), request_body = CreateSnapshot, responses((status = 201, body = SnapshotView), (status = "default", body = Failure)))]
pub async fn create_snapshot(
    State(control): Shared,
    Path(name): Path<String>,
    Input(request): Input<CreateSnapshot>,
) -> Created<SnapshotView> {
    let made = to_the_end(async move { control.create_snapshot(&name, &request).await }).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Take a snapshot of several disks at one moment while guests use them: of all, or of none.
#[utoipa::path(post, path = "/api/v1/snapshots", request_body = CreateSnapshots, responses((status = 201, body = Vec<SnapshotView>), (status = "default", body = Failure)))]
pub async fn create_snapshots(
    State(control): Shared,
    Input(request): Input<CreateSnapshots>,
) -> Created<Vec<SnapshotView>> {
    let made = to_the_end(async move { control.create_snapshots(&request).await }).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Show a snapshot of a disk.
#[utoipa::path(get, path = "/api/v1/disks/{name}/snapshots/{snapshot}", params(("name" = String, Path), ("snapshot" = String, Path)), responses((status = 200, body = SnapshotView), (status = "default", body = Failure)))]
pub async fn snapshot(
    State(control): Shared,
    Path((name, snapshot)): Path<(String, String)>,
) -> Answer<SnapshotView> {
    control.snapshot(&name, &snapshot).await.map(Json)
}

/// List what differs between a snapshot and an older one, or what it holds, page by page.
#[utoipa::path(get, path = "/api/v1/disks/{name}/snapshots/{snapshot}/changes", params(("name" = String, Path), ("snapshot" = String, Path), ChangesQuery), responses((status = 200, body = ChangesView), (status = "default", body = Failure)))]
pub async fn changes(
    State(control): Shared,
    Path((name, snapshot)): Path<(String, String)>,
    Options(query): Options<ChangesQuery>,
) -> Answer<ChangesView> {
    control.changes((&name, &snapshot), query.since.as_deref(), query.from.unwrap_or(0)).await.map(Json)
}

/// Rename a snapshot of a disk, or pin it, so that its schedule never deletes it.
#[utoipa::path(patch, path = "/api/v1/disks/{name}/snapshots/{snapshot}", params(("name" = String, Path), ("snapshot" = String, Path)), request_body = ChangeSnapshot, responses((status = 200, body = SnapshotView), (status = "default", body = Failure)))]
pub async fn change_snapshot(
    State(control): Shared,
    Path((name, snapshot)): Path<(String, String)>,
    Input(request): Input<ChangeSnapshot>,
) -> Answer<SnapshotView> {
    to_the_end(async move { control.change_snapshot(&name, &snapshot, &request).await }).await.map(Json)
}

/// Roll a disk back to a snapshot: begin to copy back what changed since, while no client has the disk; `confirm` must be the disk's name. Another
/// snapshot is taken first. `GET /api/v1/disks/{name}/rollback` tells how far it is.
#[utoipa::path(post, path = "/api/v1/disks/{name}/snapshots/{snapshot}/rollback", params(("name" = String, Path), ("snapshot" = String, Path)), request_body = RollBack, responses((status = 202, body = RollbackView), (status = "default", body = Failure)))]
pub async fn roll_back(
    State(control): Shared,
    Path((name, snapshot)): Path<(String, String)>,
    Input(request): Input<RollBack>,
) -> Created<RollbackView> {
    let begun = to_the_end(async move { control.roll_back(&name, &snapshot, request).await }).await?;
    Ok((StatusCode::ACCEPTED, Json(begun)))
}

/// Show how far the rollback of a disk is, or how the last one ended that was begun at this host.
#[utoipa::path(get, path = "/api/v1/disks/{name}/rollback", params(("name" = String, Path)), responses((status = 200, body = RollbackView), (status = "default", body = Failure)))]
pub async fn rollback(State(control): Shared, Path(name): Path<String>) -> Answer<RollbackView> {
    control.rollback(&name).await.map(Json)
}

/// Delete a snapshot of a disk; `confirm` must be its name. Its space is given back in the background.
#[utoipa::path(delete, path = "/api/v1/disks/{name}/snapshots/{snapshot}", params(("name" = String, Path), ("snapshot" = String, Path), ConfirmSnapshot), responses((status = 204), (status = "default", body = Failure)))]
pub async fn delete_snapshot(
    State(control): Shared,
    Path((name, snapshot)): Path<(String, String)>,
    Options(confirm): Options<ConfirmSnapshot>,
) -> Result<StatusCode, Failure> {
    let confirm = confirm.confirm;
    to_the_end(async move { control.delete_snapshot(&name, &snapshot, confirm.as_deref()).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Show all histograms of a disk.
#[utoipa::path(get, path = "/api/v1/disks/{name}/histograms", params(("name" = String, Path), Since), responses((status = 200, body = HistogramsView), (status = "default", body = Failure)))]
pub async fn histograms(
    State(control): Shared,
    Path(name): Path<String>,
    Options(since): Options<Since>,
) -> Answer<HistogramsView> {
    control.histograms(&name, since.since).await.map(Json)
}

/// List all policies.
#[utoipa::path(get, path = "/api/v1/policies", responses((status = 200, body = Vec<PolicyView>), (status = "default", body = Failure)))]
pub async fn policies(State(control): Shared) -> Answer<Vec<PolicyView>> {
    Ok(Json(control.policies()))
}

/// Explain a policy: what it gives and costs, how much disks of it can take now, and where a disk would stand. Nothing is changed.
#[utoipa::path(post, path = "/api/v1/policies/explain", request_body = ExplainPolicy, responses((status = 200, body = ExplainedPolicy), (status = "default", body = Failure)))]
pub async fn explain_policy(
    State(control): Shared,
    Input(request): Input<ExplainPolicy>,
) -> Answer<ExplainedPolicy> {
    control.explain_policy(&request).await.map(Json)
}

/// Show who asks, and what they may do.
#[utoipa::path(get, path = "/api/v1/me", responses((status = 200, body = MeView), (status = "default", body = Failure)))]
pub async fn me(State(control): Shared, Extension(caller): Extension<Caller>) -> Json<MeView> {
    Json(who_asks(&control, &caller))
}

/// Create a policy.
#[utoipa::path(post, path = "/api/v1/policies", request_body = CreatePolicy, responses((status = 201, body = PolicyView), (status = "default", body = Failure)))]
pub async fn create_policy(
    State(control): Shared,
    Input(request): Input<CreatePolicy>,
) -> Created<PolicyView> {
    Ok((StatusCode::CREATED, Json(control.create_policy(request).await?)))
}

/// Show a policy.
#[utoipa::path(get, path = "/api/v1/policies/{name}", params(("name" = String, Path)), responses((status = 200, body = PolicyView), (status = "default", body = Failure)))]
pub async fn policy(State(control): Shared, Path(name): Path<String>) -> Answer<PolicyView> {
    control.policy(&name).map(Json)
}

/// Change rules of a policy, and with it the disks that follow it.
#[utoipa::path(patch, path = "/api/v1/policies/{name}", params(("name" = String, Path)), request_body = ChangePolicy, responses((status = 200, body = PolicyView), (status = "default", body = Failure)))]
pub async fn change_policy(
    State(control): Shared,
    Path(name): Path<String>,
    Input(request): Input<ChangePolicy>,
) -> Answer<PolicyView> {
    to_the_end(async move { control.change_policy(&name, &request).await }).await.map(Json)
}

/// Delete a policy. Disks keep the rules that they were created with.
#[utoipa::path(delete, path = "/api/v1/policies/{name}", params(("name" = String, Path)), responses((status = 204), (status = "default", body = Failure)))]
pub async fn delete_policy(State(control): Shared, Path(name): Path<String>) -> Result<StatusCode, Failure> {
    control.delete_policy(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Show the load of all disks now.
#[utoipa::path(get, path = "/api/v1/top", responses((status = 200, body = TopView), (status = "default", body = Failure)))]
pub async fn top(State(control): Shared) -> Answer<TopView> {
    control.top().await.map(Json)
}

/// Create a join token for a host or a person. It is shown once.
#[utoipa::path(post, path = "/api/v1/tokens", request_body = MakeToken, responses((status = 201, body = TokenView), (status = "default", body = Failure)))]
pub async fn make_token(State(control): Shared, Input(request): Input<MakeToken>) -> Created<TokenView> {
    Ok((StatusCode::CREATED, Json(control.make_token(request).await?)))
}

/// Give a host or a person a certificate in exchange for a join token. The caller needs no certificate.
#[utoipa::path(post, path = "/api/v1/join", request_body = JoinRequest, responses((status = 200, body = JoinAnswer), (status = "default", body = Failure)))]
pub async fn join(State(control): Shared, Input(request): Input<JoinRequest>) -> Answer<JoinAnswer> {
    control.join(request).await.map(Json)
}

/// List authorities, certificates of hosts, and revoked certificates.
#[utoipa::path(get, path = "/api/v1/certificates", responses((status = 200, body = CertificatesView), (status = "default", body = Failure)))]
pub async fn certificates(State(control): Shared) -> Answer<CertificatesView> {
    control.certificates().map(Json)
}

/// Renew the certificates of all hosts now.
#[utoipa::path(post, path = "/api/v1/certificates/renew", responses((status = 204), (status = "default", body = Failure)))]
pub async fn renew_all(State(control): Shared) -> Result<StatusCode, Failure> {
    control.renew_all().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Give the calling host its next certificate.
#[utoipa::path(post, path = "/api/v1/certificates/host", request_body = CertificateRequest, responses((status = 200, body = CertificateAnswer), (status = "default", body = Failure)))]
pub async fn renew_host(
    State(control): Shared,
    Extension(caller): Extension<Caller>,
    Input(request): Input<CertificateRequest>,
) -> Answer<CertificateAnswer> {
    control.renew_host(&caller, &request).map(Json)
}

/// Create an authority, which signs from now on, with its key on this host. Returns its fingerprint.
#[utoipa::path(post, path = "/api/v1/authorities", responses((status = 201, body = String), (status = "default", body = Failure)))]
pub async fn add_authority(State(control): Shared) -> Created<String> {
    Ok((StatusCode::CREATED, Json(control.add_authority().await?)))
}

/// Drop an authority.
#[utoipa::path(delete, path = "/api/v1/authorities/{fingerprint}", params(("fingerprint" = String, Path), ConfirmAuthority), responses((status = 204), (status = "default", body = Failure)))]
pub async fn drop_authority(
    State(control): Shared,
    Path(fingerprint): Path<String>,
    Options(confirm): Options<ConfirmAuthority>,
) -> Result<StatusCode, Failure> {
    control.drop_authority(&fingerprint, confirm.confirm.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List the people who have a certificate, by name.
#[utoipa::path(get, path = "/api/v1/people", responses((status = 200, body = Vec<PersonView>), (status = "default", body = Failure)))]
pub async fn people(State(control): Shared) -> Answer<Vec<PersonView>> {
    control.people().map(Json)
}

/// Remove a person: the certificates of the person are revoked.
#[utoipa::path(delete, path = "/api/v1/people/{name}", params(("name" = String, Path)), responses((status = 204), (status = "default", body = Failure)))]
pub async fn remove_person(State(control): Shared, Path(name): Path<String>) -> Result<StatusCode, Failure> {
    control.remove_person(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}
