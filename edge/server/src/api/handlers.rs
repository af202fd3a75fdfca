//! One function per path and method. Each asks `control` and gives back what it says.

use super::access::{Caller, Need, check, to_the_end};
use super::types::{
    AddDevices, AddedDevices, AllDevicesView, BalanceView, BeginImport, BeginMaintenance, CertificateAnswer,
    CertificateRequest, CertificatesView, ChangeDisk, ChangeSettings, ConfirmAuthority, ConfirmHost,
    CopyRequest, CopyView, CreateDisk, CreatePolicy, DeleteDisk, DeviceView, DirectoryView, DiskSummary,
    DiskView, EndImport, EvacuateDevice, EvacuationView, EventQuery, EventView, EventsView, ForecastView,
    FoundCluster, FoundedView, HealthView, HistogramsView, HostSummary, HostView, ImportView, JoinAnswer,
    JoinRequest, KeepDevice, LocalView, MaintenanceView, MakeSilence, MakeToken, NamedSilence, PersonView,
    PolicyView, RebuildDirectory, RebuildView, RemoveOptions, RemovedDevice, RemovedHost, ReplaceDevice,
    ReplacementView, ResyncsView, SilenceView, Since, SupportView, TokenView, TopView, VersionsView, WhatIf,
};
use super::{Input, Options};
use crate::control::Control;
use crate::directory::shared::record::ClusterSettings;
use crate::failure::Failure;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use std::sync::Arc;

type Answer<T> = Result<Json<T>, Failure>;
type Created<T> = Result<(StatusCode, Json<T>), Failure>;
type Shared = State<Arc<Control>>;

/// The host, its groups and devices.
#[utoipa::path(get, path = "/api/v1/host", responses((status = 200, body = HostView), (status = "default", body = Failure)))]
pub async fn host(State(control): Shared) -> Answer<HostView> {
    control.host_view().await.map(Json)
}

/// All hosts of the cluster.
#[utoipa::path(get, path = "/api/v1/hosts", responses((status = 200, body = Vec<HostSummary>), (status = "default", body = Failure)))]
pub async fn hosts(State(control): Shared) -> Answer<Vec<HostSummary>> {
    control.hosts().await.map(Json)
}

/// What this host of a cluster knows and the others do not.
#[utoipa::path(get, path = "/api/v1/cluster/local", responses((status = 200, body = LocalView), (status = "default", body = Failure)))]
pub async fn local(State(control): Shared) -> Answer<LocalView> {
    control.local().await.map(Json)
}

/// What this host and its devices know of the directory: for hosts, when it was lost.
#[utoipa::path(post, path = "/api/v1/cluster/copy", request_body = CopyRequest, responses((status = 200, body = CopyView), (status = "default", body = Failure)))]
pub async fn copy(State(control): Shared, Input(request): Input<CopyRequest>) -> Answer<CopyView> {
    control.give_copy(request.seal).await.map(Json)
}

/// Make a cluster of several hosts of this one, which stands alone: its directory moves into the etcd that its configuration names
/// now, and other hosts can join. Its disks stay, and guests go on.
#[utoipa::path(post, path = "/api/v1/cluster", request_body = FoundCluster, responses((status = 200, body = FoundedView), (status = "default", body = Failure)))]
pub async fn found_cluster(
    State(control): Shared,
    Input(request): Input<FoundCluster>,
) -> Answer<FoundedView> {
    to_the_end(async move { control.found_cluster(&request).await }).await.map(Json)
}

/// Make a new directory from what the hosts and their devices know, in the empty etcd of the configuration; or say what
/// would come of it.
#[utoipa::path(post, path = "/api/v1/cluster/rebuild-directory", request_body = RebuildDirectory, responses((status = 200, body = RebuildView), (status = "default", body = Failure)))]
pub async fn rebuild_directory(
    State(control): Shared,
    Input(request): Input<RebuildDirectory>,
) -> Answer<RebuildView> {
    control.rebuild_directory(&request).await.map(Json)
}

/// Where the directory stands, and which members etcd has.
#[utoipa::path(get, path = "/api/v1/cluster/directory", responses((status = 200, body = DirectoryView), (status = "default", body = Failure)))]
pub async fn directory(State(control): Shared) -> Answer<DirectoryView> {
    Ok(Json(control.cluster.directory_view()))
}

/// Which releases the hosts run, and the level of the records.
#[utoipa::path(get, path = "/api/v1/cluster/versions", responses((status = 200, body = VersionsView), (status = "default", body = Failure)))]
pub async fn versions(State(control): Shared) -> Json<VersionsView> {
    Json(control.versions())
}

/// Raises the level of the records to the next, if all hosts understand it.
#[utoipa::path(post, path = "/api/v1/cluster/upgrade", responses((status = 200, body = VersionsView), (status = "default", body = Failure)))]
pub async fn upgrade(State(control): Shared) -> Answer<VersionsView> {
    control.upgrade().await.map(Json)
}

/// The cluster's settings.
#[utoipa::path(get, path = "/api/v1/cluster/settings", responses((status = 200, body = ClusterSettings), (status = "default", body = Failure)))]
pub async fn settings(State(control): Shared) -> Answer<ClusterSettings> {
    control.settings().map(Json)
}

/// Changes the cluster's settings.
#[utoipa::path(patch, path = "/api/v1/cluster/settings", request_body = ChangeSettings, responses((status = 200, body = ClusterSettings), (status = "default", body = Failure)))]
pub async fn change_settings(
    State(control): Shared,
    Input(request): Input<ChangeSettings>,
) -> Answer<ClusterSettings> {
    control.change_settings(request).await.map(Json)
}

/// How even the devices of the cluster are.
#[utoipa::path(get, path = "/api/v1/cluster/balance", responses((status = 200, body = BalanceView), (status = "default", body = Failure)))]
pub async fn balance(State(control): Shared) -> Answer<BalanceView> {
    control.balance().await.map(Json)
}

/// What is wrong, and what to do about it.
#[utoipa::path(get, path = "/api/v1/health", responses((status = 200, body = HealthView), (status = "default", body = Failure)))]
pub async fn health(State(control): Shared) -> Answer<HealthView> {
    control.health().await.map(Json)
}

/// What people do not want to be told again for a while.
#[utoipa::path(get, path = "/api/v1/health/silences", responses((status = 200, body = Vec<SilenceView>), (status = "default", body = Failure)))]
pub async fn silences(State(control): Shared) -> Answer<Vec<SilenceView>> {
    Ok(Json(control.silences()))
}

/// Silences findings for a while: they are told apart, and do not count.
#[utoipa::path(post, path = "/api/v1/health/silences", request_body = MakeSilence, responses((status = 201, body = SilenceView), (status = "default", body = Failure)))]
pub async fn silence(State(control): Shared, Input(request): Input<MakeSilence>) -> Created<SilenceView> {
    Ok((StatusCode::CREATED, Json(control.silence(request).await?)))
}

/// Ends a silence.
#[utoipa::path(delete, path = "/api/v1/health/silences", params(NamedSilence), responses((status = 204), (status = "default", body = Failure)))]
pub async fn unsilence(
    State(control): Shared,
    Options(named): Options<NamedSilence>,
) -> Result<StatusCode, Failure> {
    control.unsilence(&named).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Begins to service a host, or tells what that would do.
#[utoipa::path(post, path = "/api/v1/hosts/{name}/maintenance", params(("name" = String, Path)), request_body = BeginMaintenance, responses((status = 200, body = MaintenanceView), (status = "default", body = Failure)))]
pub async fn begin_maintenance(
    State(control): Shared,
    Path(name): Path<String>,
    Input(request): Input<BeginMaintenance>,
) -> Answer<MaintenanceView> {
    control.begin_maintenance(&name, request).await.map(Json)
}

/// A host is not serviced any more.
#[utoipa::path(delete, path = "/api/v1/hosts/{name}/maintenance", params(("name" = String, Path)), responses((status = 204), (status = "default", body = Failure)))]
pub async fn end_maintenance(
    State(control): Shared,
    Path(name): Path<String>,
) -> Result<StatusCode, Failure> {
    control.end_maintenance(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a host out of the cluster that does not come back; `confirm` must be its name.
#[utoipa::path(delete, path = "/api/v1/hosts/{name}", params(("name" = String, Path), ConfirmHost), responses((status = 200, body = RemovedHost), (status = "default", body = Failure)))]
pub async fn remove_host(
    State(control): Shared,
    Path(name): Path<String>,
    Options(confirm): Options<ConfirmHost>,
) -> Answer<RemovedHost> {
    control.remove_host(&name, confirm.confirm.as_deref()).await.map(Json)
}

/// What happened on this host, and to the disks that it owned, oldest first.
#[utoipa::path(get, path = "/api/v1/events", params(EventQuery), responses((status = 200, body = Vec<EventView>), (status = "default", body = Failure)))]
pub async fn events(State(control): Shared, Options(query): Options<EventQuery>) -> Answer<Vec<EventView>> {
    control.events(&query).map(Json)
}

/// What happened on all hosts that answer, oldest first.
#[utoipa::path(get, path = "/api/v1/cluster/events", params(EventQuery), responses((status = 200, body = EventsView), (status = "default", body = Failure)))]
pub async fn all_events(State(control): Shared, Options(query): Options<EventQuery>) -> Answer<EventsView> {
    control.all_events(&query).await.map(Json)
}

/// What would become of the cluster; nothing is changed by asking.
#[utoipa::path(post, path = "/api/v1/what-if", request_body = WhatIf, responses((status = 200, body = ForecastView), (status = "default", body = Failure)))]
pub async fn what_if(State(control): Shared, Input(request): Input<WhatIf>) -> Answer<ForecastView> {
    control.what_if(request).await.map(Json)
}

/// What is copied for disks, how much is left, and what waits for what.
#[utoipa::path(get, path = "/api/v1/resync", responses((status = 200, body = ResyncsView), (status = "default", body = Failure)))]
pub async fn resync(State(control): Shared) -> Answer<ResyncsView> {
    control.resync().await.map(Json)
}

/// What supporters need of this host, without secrets.
#[utoipa::path(get, path = "/api/v1/support", responses((status = 200, body = SupportView), (status = "default", body = Failure)))]
pub async fn support(State(control): Shared) -> Answer<SupportView> {
    control.support().await.map(Json)
}

/// What supporters need of a host of the cluster, without secrets.
#[utoipa::path(get, path = "/api/v1/support/hosts/{name}", params(("name" = String, Path)), responses((status = 200, body = SupportView), (status = "default", body = Failure)))]
pub async fn support_of(State(control): Shared, Path(name): Path<String>) -> Answer<SupportView> {
    control.support_of(&name).await.map(Json)
}

/// All devices.
#[utoipa::path(get, path = "/api/v1/devices", responses((status = 200, body = Vec<DeviceView>), (status = "default", body = Failure)))]
pub async fn devices(State(control): Shared) -> Answer<Vec<DeviceView>> {
    control.devices().await.map(Json)
}

/// The devices of all hosts that answer.
#[utoipa::path(get, path = "/api/v1/cluster/devices", responses((status = 200, body = AllDevicesView), (status = "default", body = Failure)))]
pub async fn all_devices(State(control): Shared) -> Answer<AllDevicesView> {
    control.all_devices().await.map(Json)
}

/// Makes a disk group of devices, or gives one more capacity devices.
#[utoipa::path(post, path = "/api/v1/devices", request_body = AddDevices, responses((status = 201, body = AddedDevices), (status = "default", body = Failure)))]
pub async fn add_devices(State(control): Shared, Input(request): Input<AddDevices>) -> Created<AddedDevices> {
    Ok((StatusCode::CREATED, Json(control.add_devices(request).await?)))
}

/// Puts a new device in the place of one that failed. Of a failed log device: makes its group anew.
#[utoipa::path(post, path = "/api/v1/devices/replace", request_body = ReplaceDevice, responses((status = 200, body = ReplacementView), (status = "default", body = Failure)))]
pub async fn replace_device(
    State(control): Shared,
    Input(request): Input<ReplaceDevice>,
) -> Answer<ReplacementView> {
    control.replace_device(request).await.map(Json)
}

/// Removes an empty device; named by its log device and with `group=true`, an empty group.
#[utoipa::path(delete, path = "/api/v1/devices/{id}", params(("id" = String, Path), RemoveOptions), responses((status = 200, body = RemovedDevice), (status = "default", body = Failure)))]
pub async fn remove_device(
    State(control): Shared,
    Path(id): Path<String>,
    Options(options): Options<RemoveOptions>,
) -> Answer<RemovedDevice> {
    let advice = control.remove_device(&id, options.group).await?;
    Ok(Json(RemovedDevice { advice }))
}

/// Lets a capacity device be emptied, or tells what that would do. It goes on serving what stands on it, and takes nothing new.
#[utoipa::path(post, path = "/api/v1/devices/evacuate", request_body = EvacuateDevice, responses((status = 200, body = EvacuationView), (status = "default", body = Failure)))]
pub async fn evacuate_device(
    State(control): Shared,
    Input(request): Input<EvacuateDevice>,
) -> Answer<EvacuationView> {
    control.evacuate_device(request).await.map(Json)
}

/// A device is not to be emptied any more.
#[utoipa::path(post, path = "/api/v1/devices/keep", request_body = KeepDevice, responses((status = 204), (status = "default", body = Failure)))]
pub async fn keep_device(
    State(control): Shared,
    Input(request): Input<KeepDevice>,
) -> Result<StatusCode, Failure> {
    control.keep_device(&request.device).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// All disks by name.
#[utoipa::path(get, path = "/api/v1/disks", responses((status = 200, body = Vec<DiskSummary>), (status = "default", body = Failure)))]
pub async fn disks(State(control): Shared) -> Answer<Vec<DiskSummary>> {
    control.disk_list().await.map(Json)
}

/// Makes a disk.
#[utoipa::path(post, path = "/api/v1/disks", request_body = CreateDisk, responses((status = 201, body = DiskView), (status = "default", body = Failure)))]
pub async fn create_disk(State(control): Shared, Input(request): Input<CreateDisk>) -> Created<DiskView> {
    Ok((StatusCode::CREATED, Json(control.create_disk(request).await?)))
}

/// One disk, by name or id.
#[utoipa::path(get, path = "/api/v1/disks/{name}", params(("name" = String, Path)), responses((status = 200, body = DiskView), (status = "default", body = Failure)))]
pub async fn disk(State(control): Shared, Path(name): Path<String>) -> Answer<DiskView> {
    control.disk_view(&name).await.map(Json)
}

/// Renames, resizes or protects a disk, or says where and by whom it may be attached.
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

/// Deletes a disk; `confirm` must be its name.
#[utoipa::path(delete, path = "/api/v1/disks/{name}", params(("name" = String, Path), DeleteDisk), responses((status = 204), (status = "default", body = Failure)))]
pub async fn delete_disk(
    State(control): Shared,
    Path(name): Path<String>,
    Options(request): Options<DeleteDisk>,
) -> Result<StatusCode, Failure> {
    to_the_end(async move { control.delete_disk(&name, &request).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Begins to replace the content of a disk: gives an export that nobody else can attach to; `confirm` must be the disk's name.
#[utoipa::path(post, path = "/api/v1/disks/{name}/import", params(("name" = String, Path)), request_body = BeginImport, responses((status = 201, body = ImportView), (status = "default", body = Failure)))]
pub async fn begin_import(
    State(control): Shared,
    Path(name): Path<String>,
    Input(request): Input<BeginImport>,
) -> Created<ImportView> {
    let begun = to_the_end(async move { control.begin_import(&name, request).await }).await?;
    Ok((StatusCode::CREATED, Json(begun)))
}

/// Ends an import: others may attach to the disk again.
#[utoipa::path(post, path = "/api/v1/disks/{name}/import/end", params(("name" = String, Path)), request_body = EndImport, responses((status = 200, body = DiskView), (status = "default", body = Failure)))]
pub async fn end_import(
    State(control): Shared,
    Path(name): Path<String>,
    Input(request): Input<EndImport>,
) -> Answer<DiskView> {
    to_the_end(async move { control.end_import(&name, request).await }).await.map(Json)
}

/// All histograms of a disk.
#[utoipa::path(get, path = "/api/v1/disks/{name}/histograms", params(("name" = String, Path), Since), responses((status = 200, body = HistogramsView), (status = "default", body = Failure)))]
pub async fn histograms(
    State(control): Shared,
    Path(name): Path<String>,
    Options(since): Options<Since>,
) -> Answer<HistogramsView> {
    control.histograms(&name, since.since).await.map(Json)
}

/// All policies.
#[utoipa::path(get, path = "/api/v1/policies", responses((status = 200, body = Vec<PolicyView>), (status = "default", body = Failure)))]
pub async fn policies(State(control): Shared) -> Answer<Vec<PolicyView>> {
    Ok(Json(control.policies()))
}

/// Makes a policy.
#[utoipa::path(post, path = "/api/v1/policies", request_body = CreatePolicy, responses((status = 201, body = PolicyView), (status = "default", body = Failure)))]
pub async fn create_policy(
    State(control): Shared,
    Input(request): Input<CreatePolicy>,
) -> Created<PolicyView> {
    Ok((StatusCode::CREATED, Json(control.create_policy(request).await?)))
}

/// One policy.
#[utoipa::path(get, path = "/api/v1/policies/{name}", params(("name" = String, Path)), responses((status = 200, body = PolicyView), (status = "default", body = Failure)))]
pub async fn policy(State(control): Shared, Path(name): Path<String>) -> Answer<PolicyView> {
    control.policy(&name).map(Json)
}

/// Deletes a policy. Disks keep the rules that they were made with.
#[utoipa::path(delete, path = "/api/v1/policies/{name}", params(("name" = String, Path)), responses((status = 204), (status = "default", body = Failure)))]
pub async fn delete_policy(State(control): Shared, Path(name): Path<String>) -> Result<StatusCode, Failure> {
    control.delete_policy(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What all disks do now.
#[utoipa::path(get, path = "/api/v1/top", responses((status = 200, body = TopView), (status = "default", body = Failure)))]
pub async fn top(State(control): Shared) -> Answer<TopView> {
    control.top().await.map(Json)
}

/// Makes a join token for a host or a person. It is shown once.
#[utoipa::path(post, path = "/api/v1/tokens", request_body = MakeToken, responses((status = 201, body = TokenView), (status = "default", body = Failure)))]
pub async fn make_token(State(control): Shared, Input(request): Input<MakeToken>) -> Created<TokenView> {
    Ok((StatusCode::CREATED, Json(control.make_token(request).await?)))
}

/// Gives somebody a certificate who comes with a join token; no other certificate is needed for it.
#[utoipa::path(post, path = "/api/v1/join", request_body = JoinRequest, responses((status = 200, body = JoinAnswer), (status = "default", body = Failure)))]
pub async fn join(State(control): Shared, Input(request): Input<JoinRequest>) -> Answer<JoinAnswer> {
    control.join(request).await.map(Json)
}

/// Authorities, the certificates of hosts, and whose count no more.
#[utoipa::path(get, path = "/api/v1/certificates", responses((status = 200, body = CertificatesView), (status = "default", body = Failure)))]
pub async fn certificates(State(control): Shared) -> Answer<CertificatesView> {
    control.certificates().map(Json)
}

/// Has all hosts take another certificate now.
#[utoipa::path(post, path = "/api/v1/certificates/renew", responses((status = 204), (status = "default", body = Failure)))]
pub async fn renew_all(State(control): Shared) -> Result<StatusCode, Failure> {
    control.renew_all().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives the host that asks its next certificate.
#[utoipa::path(post, path = "/api/v1/certificates/host", request_body = CertificateRequest, responses((status = 200, body = CertificateAnswer), (status = "default", body = Failure)))]
pub async fn renew_host(
    State(control): Shared,
    Extension(caller): Extension<Caller>,
    Input(request): Input<CertificateRequest>,
) -> Answer<CertificateAnswer> {
    control.renew_host(&caller, &request).map(Json)
}

/// Makes this host the keeper of a new authority, which signs from now on; its fingerprint.
#[utoipa::path(post, path = "/api/v1/authorities", responses((status = 201, body = String), (status = "default", body = Failure)))]
pub async fn add_authority(State(control): Shared) -> Created<String> {
    Ok((StatusCode::CREATED, Json(control.add_authority().await?)))
}

/// Believes an authority no more.
#[utoipa::path(delete, path = "/api/v1/authorities/{fingerprint}", params(("fingerprint" = String, Path), ConfirmAuthority), responses((status = 204), (status = "default", body = Failure)))]
pub async fn drop_authority(
    State(control): Shared,
    Path(fingerprint): Path<String>,
    Options(confirm): Options<ConfirmAuthority>,
) -> Result<StatusCode, Failure> {
    control.drop_authority(&fingerprint, confirm.confirm.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// People who have a certificate, by name.
#[utoipa::path(get, path = "/api/v1/people", responses((status = 200, body = Vec<PersonView>), (status = "default", body = Failure)))]
pub async fn people(State(control): Shared) -> Answer<Vec<PersonView>> {
    control.people().map(Json)
}

/// A person's certificates count no more.
#[utoipa::path(delete, path = "/api/v1/people/{name}", params(("name" = String, Path)), responses((status = 204), (status = "default", body = Failure)))]
pub async fn remove_person(State(control): Shared, Path(name): Path<String>) -> Result<StatusCode, Failure> {
    control.remove_person(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}
