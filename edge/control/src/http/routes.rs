//! The table of the API: for each route its method, path, right and handler.
//!
//! The table is all that the router serves and all that `access` asks, so a route without a right cannot be written. A
//! handler's own path stands beside it for the OpenAPI document, and both must agree.

use super::rights::{Need, Rights};
use super::{handlers, metrics, oidc, sessions, stream, views};
use crate::control::Control;
use api::types::{Changed, StreamFigures};
use axum::Json;
use axum::routing::{MethodRouter, get};
use failure::Failure;
use std::sync::{Arc, OnceLock};
use trust::Action::{self, ActAsHost, ChangeCluster, ChangeDisk, GiveCertificates, Operate, See};
use utoipa::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

/// The document's head; the paths come from the handlers.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Drystone",
        description = "Virtual disks on the local disks of Linux hosts. Errors are JSON: code, error, hint.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(Failure, Changed, StreamFigures))
)]
struct Document;

/// One route.
pub(super) struct Route {
    pub(super) method: &'static str,
    /// With names for its variable parts: `/api/v1/disks/{name}`.
    pub(super) path: &'static str,
    pub(super) need: Need,
    handler: Handler,
}

enum Handler {
    /// The OpenAPI document tells it.
    Documented(Box<UtoipaMethodRouter<Arc<Control>>>),
    Plain(Box<MethodRouter<Arc<Control>>>),
}

/// A route that needs a right.
fn right(name: &'static str, action: Action, handler: UtoipaMethodRouter<Arc<Control>>) -> Route {
    documented(name, Need::Right(action), handler)
}

/// A route of the document. Panics where the handler says another method or path of itself.
fn documented(name: &'static str, need: Need, handler: UtoipaMethodRouter<Arc<Control>>) -> Route {
    let (method, path) = split(name);
    let told: Vec<&String> = handler.1.paths.keys().collect();
    assert!(told == [path], "{name}: its handler is of {told:?}");
    assert!(methods_of(&handler.1.paths[path]) == [method], "{name}: its handler takes another method");
    Route { method, path, need, handler: Handler::Documented(Box::new(handler)) }
}

/// A route that the document does not tell, for whoever may see the cluster.
fn plain(name: &'static str, handler: MethodRouter<Arc<Control>>) -> Route {
    let (method, path) = split(name);
    Route { method, path, need: Need::Right(See), handler: Handler::Plain(Box::new(handler)) }
}

fn split(name: &'static str) -> (&'static str, &'static str) {
    name.split_once(' ').expect("a route is a method and a path")
}

/// The methods that the document tells of a path.
fn methods_of(item: &utoipa::openapi::PathItem) -> Vec<&'static str> {
    let all = [
        ("GET", &item.get),
        ("POST", &item.post),
        ("PUT", &item.put),
        ("PATCH", &item.patch),
        ("DELETE", &item.delete),
    ];
    all.into_iter().filter(|(_, operation)| operation.is_some()).map(|(method, _)| method).collect()
}

/// Every route.
pub(super) fn table() -> Vec<Route> {
    [general(), disks(), people(), snapshots(), estimates()].into_iter().flatten().collect()
}

#[rustfmt::skip]
fn estimates() -> Vec<Route> {
    vec![
        right("GET /api/v1/estimate", See, routes!(handlers::estimate)),
        right("POST /api/v1/estimate", Operate, routes!(handlers::start_estimate)),
        right("DELETE /api/v1/estimate", Operate, routes!(handlers::stop_estimate)),
        right("GET /api/v1/estimate/progress", See, routes!(handlers::estimate_progress)),
        right("GET /api/v1/estimate/host", See, routes!(handlers::host_sample)),
        right("POST /api/v1/estimate/host", ActAsHost, routes!(handlers::begin_pass)),
        right("DELETE /api/v1/estimate/host", ActAsHost, routes!(handlers::end_pass)),
        right("GET /api/v1/estimate/host/progress", See, routes!(handlers::host_pass)),
        right("GET /api/v1/disks/{name}/estimate", See, routes!(handlers::disk_estimate)),
        right("POST /api/v1/disks/{name}/rewrite", ChangeDisk, routes!(handlers::rewrite_disk)),
        right("POST /api/v1/rewrite/host", ActAsHost, routes!(handlers::rewrite_here)),
    ]
}

#[rustfmt::skip]
fn snapshots() -> Vec<Route> {
    vec![
        right("POST /api/v1/disks/{name}/clones", ChangeDisk, routes!(handlers::clone_disk)),
        right("POST /api/v1/disks/{name}/flatten", ChangeDisk, routes!(handlers::flatten_disk)),
        right("GET /api/v1/disks/{name}/snapshots", See, routes!(handlers::snapshots)),
        right("POST /api/v1/disks/{name}/snapshots", ChangeDisk, routes!(handlers::create_snapshot)),
        right("POST /api/v1/snapshots", ChangeDisk, routes!(handlers::create_snapshots)),
        right("GET /api/v1/disks/{name}/snapshots/{snapshot}", See, routes!(handlers::snapshot)),
        right("GET /api/v1/disks/{name}/snapshots/{snapshot}/changes", See, routes!(handlers::changes)),
        right("POST /api/v1/disks/{name}/snapshots/{snapshot}/rollback", ChangeDisk, routes!(handlers::roll_back)),
        right("GET /api/v1/disks/{name}/rollback", See, routes!(handlers::rollback)),
        right("PATCH /api/v1/disks/{name}/snapshots/{snapshot}", ChangeDisk, routes!(handlers::change_snapshot)),
        right("DELETE /api/v1/disks/{name}/snapshots/{snapshot}", ChangeDisk, routes!(handlers::delete_snapshot)),
    ]
}

/// Who may come in, and how.
#[rustfmt::skip]
fn people() -> Vec<Route> {
    vec![
        right("POST /api/v1/sessions", See, routes!(sessions::make_link)),
        documented("GET /api/v1/session", Need::Login, routes!(sessions::choices)),
        documented("POST /api/v1/session", Need::Login, routes!(sessions::log_in)),
        documented("GET /api/v1/session/oidc", Need::Login, routes!(oidc::begin)),
        documented("GET /api/v1/session/oidc/callback", Need::Login, routes!(oidc::end)),
        documented("DELETE /api/v1/session", Need::Session, routes!(sessions::log_out)),
        right("POST /api/v1/tokens", GiveCertificates, routes!(handlers::make_token)),
        documented("POST /api/v1/join", Need::Token, routes!(handlers::join)),
        right("GET /api/v1/people", See, routes!(handlers::people)),
        right("POST /api/v1/people", GiveCertificates, routes!(handlers::add_person)),
        right("PATCH /api/v1/people/{name}", GiveCertificates, routes!(handlers::change_person)),
        right("DELETE /api/v1/people/{name}", GiveCertificates, routes!(handlers::remove_person)),
    ]
}

#[rustfmt::skip]
fn disks() -> Vec<Route> {
    vec![
        right("GET /api/v1/disks", See, routes!(handlers::disks)),
        right("POST /api/v1/disks", ChangeDisk, routes!(handlers::create_disk)),
        right("GET /api/v1/disks/{name}", See, routes!(handlers::disk)),
        // To say who may attach needs `ChangeCluster` besides: the handler looks at the body.
        right("PATCH /api/v1/disks/{name}", ChangeDisk, routes!(handlers::change_disk)),
        right("DELETE /api/v1/disks/{name}", ChangeDisk, routes!(handlers::delete_disk)),
        right("POST /api/v1/disks/{name}/import", ChangeDisk, routes!(handlers::begin_import)),
        right("POST /api/v1/disks/{name}/import/end", ChangeDisk, routes!(handlers::end_import)),
        right("POST /api/v1/disks/{name}/handover", ChangeDisk, routes!(views::hand_over)),
        right("DELETE /api/v1/disks/{name}/handover", ChangeDisk, routes!(views::end_handover)),
        right("GET /api/v1/disks/{name}/histograms", See, routes!(handlers::histograms)),
    ]
}

#[rustfmt::skip]
fn general() -> Vec<Route> {
    vec![
        right("GET /api/v1/host", See, routes!(handlers::host)),
        right("GET /api/v1/hosts", See, routes!(handlers::hosts)),
        right("DELETE /api/v1/hosts/{name}", ChangeCluster, routes!(handlers::remove_host)),
        right("POST /api/v1/hosts/{name}/maintenance", ChangeCluster, routes!(handlers::begin_maintenance)),
        right("DELETE /api/v1/hosts/{name}/maintenance", ChangeCluster, routes!(handlers::end_maintenance)),
        right("GET /api/v1/health", See, routes!(handlers::health)),
        right("GET /api/v1/health/silences", See, routes!(handlers::silences)),
        right("POST /api/v1/health/silences", Operate, routes!(handlers::silence)),
        right("DELETE /api/v1/health/silences", Operate, routes!(handlers::unsilence)),
        right("GET /api/v1/cluster/local", See, routes!(handlers::local)),
        right("POST /api/v1/cluster", ChangeCluster, routes!(handlers::found_cluster)),
        right("POST /api/v1/cluster/copy", ActAsHost, routes!(handlers::copy)),
        right("POST /api/v1/cluster/rebuild-directory", ChangeCluster, routes!(handlers::rebuild_directory)),
        right("GET /api/v1/cluster/directory", See, routes!(handlers::directory)),
        right("GET /api/v1/cluster/versions", See, routes!(handlers::versions)),
        right("POST /api/v1/cluster/upgrade", ChangeCluster, routes!(handlers::upgrade)),
        right("GET /api/v1/cluster/settings", See, routes!(handlers::settings)),
        right("PATCH /api/v1/cluster/settings", ChangeCluster, routes!(handlers::change_settings)),
        right("GET /api/v1/cluster/balance", See, routes!(handlers::balance)),
        right("GET /api/v1/events", See, routes!(handlers::events)),
        right("GET /api/v1/cluster/events", See, routes!(handlers::all_events)),
        right("POST /api/v1/what-if", See, routes!(handlers::what_if)),
        right("GET /api/v1/resync", See, routes!(handlers::resync)),
        right("GET /api/v1/series", See, routes!(views::series)),
        right("GET /api/v1/series/host", See, routes!(views::host_series)),
        right("GET /api/v1/tasks", See, routes!(views::tasks)),
        right("GET /api/v1/tasks/host", See, routes!(views::host_tasks)),
        right("GET /api/v1/support", Operate, routes!(handlers::support)),
        right("GET /api/v1/support/hosts/{name}", Operate, routes!(handlers::support_of)),
        right("GET /api/v1/cluster/devices", See, routes!(handlers::all_devices)),
        right("GET /api/v1/devices", See, routes!(handlers::devices)),
        right("GET /api/v1/devices/unclaimed", See, routes!(handlers::unclaimed)),
        right("POST /api/v1/devices", ChangeCluster, routes!(handlers::add_devices)),
        right("DELETE /api/v1/devices/{id}", ChangeCluster, routes!(handlers::remove_device)),
        right("POST /api/v1/devices/replace", ChangeCluster, routes!(handlers::replace_device)),
        right("POST /api/v1/devices/host", ActAsHost, routes!(handlers::devices_ordered)),
        right("POST /api/v1/devices/evacuate", ChangeCluster, routes!(handlers::evacuate_device)),
        right("POST /api/v1/devices/keep", ChangeCluster, routes!(handlers::keep_device)),
        right("GET /api/v1/me", See, routes!(handlers::me)),
        documented("PUT /api/v1/me/password", Need::Session, routes!(sessions::change_own_password)),
        right("GET /api/v1/stream", See, routes!(stream::stream)),
        right("GET /api/v1/stream/host", See, routes!(stream::stream_host)),
        right("POST /api/v1/policies/explain", See, routes!(handlers::explain_policy)),
        right("GET /api/v1/policies", See, routes!(handlers::policies)),
        right("POST /api/v1/policies", ChangeDisk, routes!(handlers::create_policy)),
        right("GET /api/v1/policies/{name}", See, routes!(handlers::policy)),
        right("PATCH /api/v1/policies/{name}", ChangeDisk, routes!(handlers::change_policy)),
        right("DELETE /api/v1/policies/{name}", ChangeDisk, routes!(handlers::delete_policy)),
        right("GET /api/v1/top", See, routes!(handlers::top)),
        right("GET /api/v1/certificates", See, routes!(handlers::certificates)),
        right("POST /api/v1/certificates/renew", GiveCertificates, routes!(handlers::renew_all)),
        right("POST /api/v1/certificates/host", ActAsHost, routes!(handlers::renew_host)),
        right("POST /api/v1/authorities", GiveCertificates, routes!(handlers::add_authority)),
        right("DELETE /api/v1/authorities/{fingerprint}", GiveCertificates, routes!(handlers::drop_authority)),
        plain("GET /api/v1/openapi.json", get(openapi)),
        plain("GET /metrics", get(metrics::metrics)),
    ]
}

/// The router of the table, what each route needs, and the document.
pub(super) fn assemble() -> (OpenApiRouter<Arc<Control>>, Rights) {
    let mut router = OpenApiRouter::with_openapi(Document::openapi());
    let mut rights = Rights::default();
    for Route { method, path, need, handler } in table() {
        let former = rights.0.insert((method, path), need);
        assert!(former.is_none(), "{method} {path} is in the table twice");
        router = match handler {
            Handler::Documented(handler) => router.routes(*handler),
            Handler::Plain(handler) => router.route(path, *handler),
        };
    }
    (router, rights)
}

/// The OpenAPI document.
pub fn document() -> &'static utoipa::openapi::OpenApi {
    static DOCUMENT: OnceLock<utoipa::openapi::OpenApi> = OnceLock::new();
    DOCUMENT.get_or_init(|| assemble().0.split_for_parts().1)
}

async fn openapi() -> Json<&'static utoipa::openapi::OpenApi> {
    Json(document())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Method;

    #[test]
    fn every_route_of_the_document_is_in_the_table_and_the_other_way_round() {
        let mut told: Vec<(&str, &str)> = Vec::new();
        for (path, item) in &document().paths.paths {
            told.extend(methods_of(item).into_iter().map(|method| (method, path.as_str())));
        }
        told.extend([("GET", "/api/v1/openapi.json"), ("GET", "/metrics")]);
        told.sort_unstable();
        let rights = assemble().1;
        let table: Vec<(&str, &str)> = rights.0.keys().copied().collect();
        let mut sorted = table.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, told);
    }

    #[test]
    fn who_only_sees_changes_nothing() {
        for Route { method, path, need, .. } in table() {
            // What is asked for with a body, and changes nothing.
            let changes_nothing = ["/api/v1/what-if", "/api/v1/policies/explain", "/api/v1/sessions"];
            let is_read = method == "GET" || changes_nothing.contains(&path);
            assert!(is_read || need != Need::Right(See), "{method} {path}");
            let is_for_all = [Need::Right(See), Need::Right(Operate), Need::Login].contains(&need);
            assert!(!is_read || is_for_all, "{method} {path}");
        }
        let is_open = |need| !matches!(need, Need::Right(_) | Need::Session);
        let open = table().into_iter().filter(|route| is_open(route.need));
        assert_eq!(
            open.map(|route| (route.need, route.path)).collect::<Vec<_>>(),
            [
                (Need::Login, "/api/v1/session"),
                (Need::Login, "/api/v1/session"),
                (Need::Login, "/api/v1/session/oidc"),
                (Need::Login, "/api/v1/session/oidc/callback"),
                (Need::Token, "/api/v1/join")
            ],
            "without a certificate there is no other way in"
        );
    }

    /// Whether a path, without its query, is of a route.
    fn is_of(path: &str, route: &str) -> bool {
        let parts =
            |path: &str| path.split('?').next().map(|path| path.split('/').map(str::to_owned).collect());
        let (asked, named): (Vec<String>, Vec<String>) =
            (parts(path).unwrap_or_default(), parts(route).unwrap_or_default());
        let is_same = |(one, other): (&String, &String)| one == other || other.starts_with('{');
        asked.len() == named.len() && asked.iter().zip(&named).all(is_same)
    }

    #[test]
    fn what_answers_offer_is_served_and_needs_the_right_that_they_name() {
        let offered = crate::control::sample_actions();
        assert!(offered.len() > 10, "{offered:?}");
        let table = table();
        for action in offered {
            let found = table.iter().filter(|route| route.method == action.method.as_str());
            // A word of the path may look like a name: what has fewer variable parts is meant.
            let route = found
                .filter(|route| is_of(&action.path, route.path))
                .min_by_key(|route| route.path.matches('{').count());
            let route = route.unwrap_or_else(|| panic!("nothing serves {action:?}"));
            let Need::Right(needed) = route.need else { panic!("{action:?}") };
            assert_eq!(crate::words::right_word(needed), action.needs, "{action:?}");
            assert!(action.command.starts_with("drystone "), "{action:?}");
        }
    }

    #[test]
    fn a_head_needs_what_its_get_does_and_what_is_not_served_stays_closed() {
        let rights = assemble().1;
        let need = |method: Method, path: Option<&str>| rights.need(&method, path);
        assert_eq!(need(Method::HEAD, Some("/api/v1/support")), Need::Right(Operate));
        assert_eq!(need(Method::GET, None), Need::Right(See));
        assert_eq!(need(Method::POST, None), Need::Right(ChangeCluster));
        assert_eq!(need(Method::PUT, Some("/api/v1/disks")), Need::Right(ChangeCluster));
        assert_eq!(need(Method::POST, Some("/api/v1/join/more")), Need::Right(ChangeCluster));
    }
}
