//! How the console of a demo's host is opened.

use api::client::Client;
use api::types::SessionLink;
use failure::Failure;

/// A link to the console of the host behind `api`, in words; `program`: what prints another one.
///
/// # Errors
/// What the host says.
pub async fn text(api: &Client, program: &str) -> Result<String, Failure> {
    let link: SessionLink = api.post("/api/v1/sessions", &serde_json::json!({})).await?;
    Ok(format!(
        "\nConsole, once within {} seconds (another link: {program} --api {api} console):\n  {}",
        link.seconds,
        link.links.join("\n  ")
    ))
}
