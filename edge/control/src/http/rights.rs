//! What each route of the API needs.

use axum::http::Method;
use std::collections::BTreeMap;
use trust::Action::{self, ChangeCluster, See};

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A join token, which the request carries itself.
    Token,
    /// A code of a link or a password, which the request carries itself: for browsers alone.
    Login,
    /// A session of the console, whatever its right: for browsers alone.
    Session,
    /// A right.
    Right(Action),
}

/// What each route needs.
#[derive(Debug, Default)]
pub struct Rights(pub(super) BTreeMap<(&'static str, &'static str), Need>);

impl Rights {
    /// What a request needs, by the path of its route. What is not served is answered to those alone who could be answered
    /// anything: to whoever may see where it would only be read, else to whoever changes the cluster.
    pub fn need(&self, method: &Method, path: Option<&str>) -> Need {
        let is_read = [Method::GET, Method::HEAD].contains(method);
        let method = if is_read { "GET" } else { method.as_str() };
        let known = path.and_then(|path| self.0.get(&(method, path)));
        match known {
            Some(need) => *need,
            None => Need::Right(if is_read { See } else { ChangeCluster }),
        }
    }
}
