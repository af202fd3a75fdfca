//! Requests that an answer offers: remedies of findings, and stops of tasks.

use super::words::{MethodWord, RightWord};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request that a client can offer as it stands. A client draws a button from it, and knows no remedy itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionView {
    /// What it does, in a few words: `End the maintenance of host b`.
    pub label: String,
    /// Its method.
    pub method: MethodWord,
    /// Its path with its query: `/api/v1/hosts/b/maintenance`.
    pub path: String,
    /// Its body, if it has one. Confirmations are filled in: a client asks first where `is_destructive` says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub body: Option<serde_json::Value>,
    /// The command line that does the same.
    pub command: String,
    /// The right that it needs.
    pub needs: RightWord,
    /// Whether data or redundancy may be lost by it: a client asks first.
    pub is_destructive: bool,
    /// Whether the body takes `dry_run`, which shows what the request would do.
    pub has_dry_run: bool,
}
