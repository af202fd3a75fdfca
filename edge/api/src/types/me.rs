//! Who asks, as the host knows them.

use super::words::{CallerWord, RightWord, RoleWord};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who asks, and what they may.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MeView {
    /// What they are.
    pub kind: CallerWord,
    /// Their name; nothing for somebody on the host itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of a person: their role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleWord>,
    /// What they may do.
    pub rights: Vec<RightWord>,
    /// The host that answers.
    pub host: String,
}
