//! Why a request failed, in the one form that the API, the command line and scripts see.
//!
//! A failure says what was found and, where there is one, the way out. Its code decides the HTTP status and the exit
//! code, and means the same in all of them.

#[cfg(feature = "http")]
use axum_core::response::{IntoResponse, Response};
#[cfg(feature = "http")]
use http::{StatusCode, header::CONTENT_TYPE};
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// The kinds of failure that a caller would tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// Something broke that should not: a device, a file, this program.
    Failed,
    /// The request is not well formed.
    Usage,
    /// The request is well formed and cannot be done as things are.
    Refused,
    /// What is named does not exist.
    NotFound,
    /// What is named exists already, or changed meanwhile.
    Conflict,
    /// No host answers.
    Unreachable,
    /// Who asks is not known, or may not do this.
    Denied,
    /// A page of the console asks without a session, or with one that has ended.
    Unauthenticated,
    /// It was tried too often, or too much of it goes on: it may be tried again later.
    TooMany,
}

impl Code {
    /// All codes, for tests that go through them.
    pub const ALL: [Code; 9] = [
        Code::Failed,
        Code::Usage,
        Code::Refused,
        Code::NotFound,
        Code::Conflict,
        Code::Unreachable,
        Code::Denied,
        Code::Unauthenticated,
        Code::TooMany,
    ];

    /// The exit code of the command line.
    pub fn exit(self) -> u8 {
        match self {
            Code::Failed => 1,
            Code::Usage => 2,
            Code::Refused => 3,
            Code::NotFound => 4,
            Code::Conflict => 5,
            Code::Unreachable => 6,
            Code::Denied => 7,
            Code::Unauthenticated => 8,
            Code::TooMany => 9,
        }
    }

    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Code::Failed => 500,
            Code::Usage => 400,
            Code::Refused => 422,
            Code::NotFound => 404,
            Code::Conflict => 409,
            Code::Unreachable => 503,
            Code::Denied => 403,
            Code::Unauthenticated => 401,
            Code::TooMany => 429,
        }
    }
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// Its kind.
    pub code: Code,
    /// What was found, in one line.
    pub error: String,
    /// What can be done about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Failure {
    /// A failure with no hint.
    pub fn new(code: Code, error: impl Into<String>) -> Failure {
        Failure { code, error: error.into(), hint: None }
    }

    /// The request is not well formed.
    pub fn usage(error: impl Into<String>) -> Failure {
        Failure::new(Code::Usage, error)
    }

    /// It cannot be done as things are.
    pub fn refused(error: impl Into<String>) -> Failure {
        Failure::new(Code::Refused, error)
    }

    /// Something broke: `what` is a verb phrase, `source` what came back.
    pub fn failed(what: impl fmt::Display, source: impl fmt::Display) -> Failure {
        Failure::new(Code::Failed, format!("{what}: {source}"))
    }

    /// It cannot be done because of an error of a library of ours: `what` is a verb phrase, and all that caused it is told.
    pub fn because(what: impl fmt::Display, error: &dyn std::error::Error) -> Failure {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(deeper) = cause {
            text = format!("{text}: {deeper}");
            cause = deeper.source();
        }
        Failure::refused(format!("{what}: {text}"))
    }

    /// The same with a way out.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl std::error::Error for Failure {}

impl From<placement::Refusal> for Failure {
    fn from(refusal: placement::Refusal) -> Failure {
        let code = match refusal.cause {
            placement::Cause::Size { .. } => Code::Usage,
            _ => Code::Refused,
        };
        Failure::new(code, refusal.to_string()).hint(refusal.hint())
    }
}

/// As an answer over HTTP.
#[cfg(feature = "http")]
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let text = serde_json::to_string(&self).unwrap_or_default();
        (status, [(CONTENT_TYPE, "application/json")], text).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guide names all of them: it once lacked one.
    #[test]
    fn the_guide_names_every_exit_code() {
        let guide = include_str!("../../../docs/guide/getting-started.md");
        let (_, codes) = guide.split_once("Exit codes: 0 done").expect("the guide has them");
        let codes = codes.split_once('`').expect("the end of the list").0;
        for code in Code::ALL {
            assert!(codes.contains(&format!(" {} ", code.exit())), "{code:?} is not in the guide");
        }
    }

    #[test]
    fn every_code_has_its_own_exit_code_and_status() {
        for (index, code) in Code::ALL.into_iter().enumerate() {
            for other in &Code::ALL[index + 1..] {
                assert_ne!(code.exit(), other.exit());
                assert_ne!(code.status(), other.status());
            }
            assert_ne!(code.exit(), 0);
        }
    }
}
