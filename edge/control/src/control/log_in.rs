//! Logging in to the console: with the code of a link, with a name and a password, or at an issuer of OpenID Connect.

use super::{Control, people};
use crate::directory::shared::record::PersonRecord;
use crate::events::Kind;
use crate::http::caller::{Caller, LoggedIn, Page, Proof};
use crate::issuer::{Back, Issuer, NotLoggedIn, Sent};
use crate::log_ins::{Outcome, Refused};
use crate::sessions::{BegunBy, Session};
use api::types::{ChangeOwnPassword, LogIn, LogInChoices};
use failure::{Code, Failure};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use trust::{Identity, Name, Role};

/// A session that has begun, with its token.
pub type Begun = (String, Arc<Session<Caller>>);

impl Control {
    /// How people may log in here besides with a link.
    pub fn log_in_choices(&self) -> LogInChoices {
        let view = self.cluster.view();
        LogInChoices {
            has_passwords: view.people.keys().any(|name| view.person(name).is_some()),
            issuer: self.issuer.as_ref().map(|issuer| issuer.name().to_owned()),
        }
    }

    /// Begins a session of a browser that says who it is for.
    ///
    /// # Errors
    /// When what it says is wrong, or it was tried too often.
    pub async fn log_in(&self, request: LogIn, page: &Page) -> Result<Begun, Refused> {
        match (request.code, request.name, request.password) {
            (Some(code), None, None) => self.log_in_with_link(&code, page.from),
            (None, Some(name), Some(password)) => self.log_in_with_password(&name, password, page.from).await,
            _ => {
                Err(Failure::usage("either the `code` of a link is needed, or `name` and `password`").into())
            }
        }
    }

    fn log_in_with_link(&self, code: &str, from: IpAddr) -> Result<Begun, Refused> {
        let now = Instant::now();
        let begun = self.begin_log_in(BegunBy::Link, None, from, now)?;
        match self.sessions.redeem(code, now) {
            Ok((token, session)) => {
                self.log_ins.was_right(begun);
                let who = session.holder.text();
                self.tell_log_in(
                    BegunBy::Link,
                    format!("{who} has logged in to the console from {from} with a link"),
                );
                Ok((token, session))
            }
            Err(failure) => {
                self.tell_refused(BegunBy::Link, Outcome::Wrong, None, from);
                Err(failure.into())
            }
        }
    }

    async fn log_in_with_password(
        &self,
        name: &str,
        password: String,
        from: IpAddr,
    ) -> Result<Begun, Refused> {
        let record = self.prove(name, password, from).await?;
        let proof = Proof::Password { changed_ns: record.changed_ns };
        self.begin_session(BegunBy::Password, (record.name.clone(), record.role), proof, from)
    }

    /// The record of a person, if the password is theirs.
    async fn prove(&self, name: &str, password: String, from: IpAddr) -> Result<Arc<PersonRecord>, Refused> {
        let begun = self.begin_log_in(BegunBy::Password, Some(name), from, Instant::now())?;
        let record = self.cluster.view().person(name).cloned();
        let hash = record.as_ref().map(|record| record.password.clone());
        let is_right = match self.log_ins.compare(hash, password).await {
            Ok(is_right) => is_right,
            Err(refused) => {
                self.log_ins.was_none(begun);
                self.log_ins.count(BegunBy::Password, Outcome::Slowed);
                return Err(refused);
            }
        };
        let Some(record) = record.filter(|_| is_right) else {
            self.tell_refused(BegunBy::Password, Outcome::Wrong, Some(name), from);
            return Err(Failure::new(Code::Denied, "the name or the password is wrong")
                .hint("an admin can set another password: `drystone person password NAME`")
                .into());
        };
        self.log_ins.was_right(begun);
        Ok(record)
    }

    /// Sets another password of whoever asks. The session that is asked with goes on as a new one; all others of that person end, on all
    /// hosts.
    ///
    /// # Errors
    /// When it is asked without a session that began with a password, when the former password is wrong or was tried too often, when the
    /// new one makes no sense, or the directory does not answer.
    pub async fn change_own_password(
        &self,
        request: ChangeOwnPassword,
        page: &Page,
    ) -> Result<Begun, Refused> {
        let holder = page.session.as_ref().map(|session| &session.holder);
        let Some(Caller::Person(who @ LoggedIn { proof: Proof::Password { .. }, .. })) = holder else {
            return Err(Failure::refused("this session did not begin with a password")
                .hint("an admin can set one: `drystone person password NAME`")
                .into());
        };
        let password = people::password_of(request.password)?;
        let former = self.prove(who.name(), request.former, page.from).await?;
        let hash = self.log_ins.hash(password).await?;
        let record = self
            .cluster
            .change_person(&former.name, |found| match found {
                Some(found) if found.changed_ns == former.changed_ns => Ok((found.role, hash.clone())),
                _ => Err(Failure::new(
                    Code::Conflict,
                    "somebody else changed the password or the role just now",
                )
                .hint("log in again")),
            })
            .await?;
        self.tell_changed(&record.name, &format!("{} has another password", record.name));
        let proof = Proof::Password { changed_ns: record.changed_ns };
        self.begin_session(BegunBy::Password, (record.name.clone(), record.role), proof, page.from)
    }

    /// Sends a browser to the issuer to log in there.
    ///
    /// # Errors
    /// When there is no issuer, or it does not answer.
    pub async fn begin_at_issuer(&self, browser: Option<String>, page: &Page) -> Result<Sent, Failure> {
        self.issuer()?.begin(browser, page.from).await
    }

    /// Begins a session of somebody whom the issuer sends back.
    ///
    /// # Errors
    /// When the issuer's word is not as it must be, gives no role, or does not come.
    pub async fn end_at_issuer(
        &self,
        back: &Back,
        browser: Option<&str>,
        page: &Page,
    ) -> Result<Begun, Refused> {
        let issuer = self.issuer()?;
        let begun = self.begin_log_in(BegunBy::Issuer, None, page.from, Instant::now())?;
        // As it is before the issuer is asked: whoever is removed meanwhile is out.
        let view = self.cluster.view();
        match issuer.end(back, browser).await {
            Ok((name, role)) => {
                self.log_ins.was_right(begun);
                let proof = Proof::Issuer { removed_ns: view.removed_ns(name.as_str()) };
                self.begin_session(BegunBy::Issuer, (name, role), proof, page.from)
            }
            Err(NotLoggedIn { failure, outcome }) => {
                if outcome != Outcome::Wrong || failure.code == Code::Unreachable {
                    self.log_ins.was_none(begun);
                }
                self.tell_refused(BegunBy::Issuer, outcome, None, page.from);
                tracing::warn!("a log-in at the issuer from {} was refused: {failure}", page.from);
                Err(failure.into())
            }
        }
    }

    fn issuer(&self) -> Result<&Issuer, Failure> {
        self.issuer.as_ref().ok_or_else(|| {
            Failure::refused("the configuration of this host names no issuer of OpenID Connect")
                .hint("log in another way; an admin can set [console.oidc]")
        })
    }

    /// Begins a try, or tells that it came too soon.
    fn begin_log_in(
        &self,
        begun_by: BegunBy,
        name: Option<&str>,
        from: IpAddr,
        now: Instant,
    ) -> Result<trust::Try, Refused> {
        self.log_ins.begin(name, from, now).inspect_err(|_| {
            self.tell_refused(begun_by, Outcome::Slowed, name, from);
        })
    }

    /// Begins a session of a person who has proved who they are.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub(super) fn begin_session(
        &self,
        begun_by: BegunBy,
        (name, role): (Name, Role),
        proof: Proof,
        from: IpAddr,
    ) -> Result<Begun, Refused> {
        let now = Instant::now();
        let before = self.log_ins.succeeded(name.as_str(), from, now);
        let identity = Identity::Person { cluster: self.cluster.id(), name, role };
        let holder = Caller::Person(LoggedIn { identity, proof });
        let how = match begun_by {
            BegunBy::Link => "with a link",
            BegunBy::Password => "with a password",
            BegunBy::Issuer => "at the issuer",
        };
        let mut text = format!("{} has logged in to the console from {from} {how}", holder.text());
        if before > 0 {
            text += &format!(", after {before} log-ins that failed");
        }
        let begun = self.sessions.begin(holder, begun_by, now)?;
        self.tell_log_in(begun_by, text);
        Ok(begun)
    }

    fn tell_log_in(&self, begun_by: BegunBy, text: String) {
        self.log_ins.count(begun_by, Outcome::Done);
        self.events.here(Kind::SessionBegun, text);
    }

    /// Tells of a log-in that was refused; of many that are alike, now and then. A name is told only if somebody has it: what people
    /// type there by mistake may be their password.
    pub(super) fn tell_refused(&self, begun_by: BegunBy, outcome: Outcome, name: Option<&str>, from: IpAddr) {
        self.log_ins.count(begun_by, outcome);
        let view = self.cluster.view();
        let somebody = name.filter(|name| view.person(name).is_some());
        let Some(count) = self.log_ins.failed(somebody, from, Instant::now()) else { return };
        let whose = match (begun_by, somebody) {
            (_, Some(name)) => format!(" as {name}"),
            (BegunBy::Link, None) => " with a link".to_owned(),
            (BegunBy::Password, None) => " with a name that nobody has".to_owned(),
            (BegunBy::Issuer, None) => " at the issuer".to_owned(),
        };
        let text = match count {
            1 => format!("a log-in to the console{whose} from {from} was refused"),
            _ => {
                format!("{count} log-ins to the console{whose} from {from} were refused within a short time")
            }
        };
        self.events.here(Kind::SessionRefused, text);
    }
}
