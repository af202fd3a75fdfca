//! People who may log in, as the API shows them: those with a certificate, and those with a password.

use super::Control;
use crate::cluster::members::Person;
use crate::directory::shared::record::PersonRecord;
use crate::events::Kind;
use crate::http::caller::{LoggedIn, Proof};
use crate::limits::PASSWORDS_MAX;
use crate::security;
use crate::words;
use api::types::{AddPerson, ChangePerson, PersonView, ProofWord};
use failure::{Code, Failure};
use trust::{Name, Password, Role};

impl Control {
    /// People who may log in, by name; the newest certificate of each last.
    pub fn people(&self) -> Vec<PersonView> {
        let view = self.cluster.view();
        let passwords = view.people.keys().filter_map(|name| view.person(name));
        let certificates = self.cluster.people().into_iter().map(with_certificate);
        let mut all: Vec<PersonView> = certificates.chain(passwords.map(|one| with_password(one))).collect();
        all.sort_by(|a, b| (&a.name, &a.issued).cmp(&(&b.name, &b.issued)));
        all
    }

    /// Lets a person log in to the console with a password.
    ///
    /// # Errors
    /// When something of it makes no sense, there is one of that name, or the directory does not answer.
    pub async fn add_person(&self, request: AddPerson) -> Result<PersonView, Failure> {
        let (name, role) = (security::name(&request.name)?, role_of(&request.role)?);
        let view = self.cluster.view();
        if view.people.len() >= PASSWORDS_MAX {
            return Err(Failure::refused(format!("{PASSWORDS_MAX} people have a password, the most possible"))
                .hint("remove some: `drystone person remove NAME`; or let people log in at an issuer of OpenID Connect"));
        }
        let hash = self.log_ins.hash(password_of(request.password)?).await?;
        let record = self
            .cluster
            .change_person(&name, |former| match former {
                None => Ok((role, hash.clone())),
                Some(_) => Err(Failure::new(Code::Conflict, format!("{name} has a password already"))
                    .hint(format!("change it: `drystone person password {name}`"))),
            })
            .await?;
        self.events.other(
            Kind::PersonAdded,
            subject(&name),
            format!("{name} may log in with a password, as {role}"),
        );
        Ok(with_password(&record))
    }

    /// Sets another password or another role of a person who has a password. All sessions that began with the former password end,
    /// on all hosts.
    ///
    /// # Errors
    /// When something of it makes no sense, there is nobody of that name with a password, or the directory does not answer.
    pub async fn change_person(&self, name: &str, request: ChangePerson) -> Result<PersonView, Failure> {
        let name = security::name(name)?;
        let role = request.role.as_deref().map(role_of).transpose()?;
        if role.is_none() && request.password.is_none() {
            return Err(Failure::usage("neither a role nor a password is given"));
        }
        let password = request.password.map(password_of).transpose()?;
        let is_password = password.is_some();
        let hash = match password {
            Some(password) => Some(self.log_ins.hash(password).await?),
            None => None,
        };
        let record = self
            .cluster
            .change_person(&name, |former| {
                let former = former.ok_or_else(|| {
                    Failure::new(Code::NotFound, format!("{name} has no password"))
                        .hint(format!("give one: `drystone person add {name} --role ROLE`"))
                })?;
                Ok((role.unwrap_or(former.role), hash.clone().unwrap_or_else(|| former.password.clone())))
            })
            .await?;
        let what = match (is_password, role) {
            (true, Some(role)) => format!("{name} has another password, and the role {role}"),
            (true, None) => format!("{name} has another password"),
            (false, _) => format!("{name} has the role {}", record.role),
        };
        self.tell_changed(&name, &what);
        Ok(with_password(&record))
    }

    pub(super) fn tell_changed(&self, name: &Name, what: &str) {
        let text = format!("{what}; sessions of before have ended");
        self.events.other(Kind::PersonChanged, subject(name), text);
    }

    /// Removes a person: certificates, password and sessions.
    ///
    /// # Errors
    /// When the name is none, or the directory does not answer.
    pub async fn remove_person(&self, name: &str) -> Result<(), Failure> {
        let name = security::name(name)?;
        self.cluster.remove_person(&name).await?;
        let text = format!("certificates, the password and sessions of {name} count no more");
        self.events.other(Kind::PersonRemoved, subject(&name), text);
        Ok(())
    }

    /// Why somebody who logged in without a certificate may not go on, if so.
    pub fn why_logged_out(&self, who: &LoggedIn) -> Option<String> {
        let (view, name) = (self.cluster.view(), who.name());
        match who.proof {
            Proof::Password { changed_ns } => match view.person(name) {
                None => Some(format!("{name} was removed")),
                Some(record) if record.changed_ns != changed_ns => {
                    Some(format!("the password or the role of {name} is another one now"))
                }
                Some(_) => None,
            },
            Proof::Issuer { removed_ns } => {
                (view.removed_ns(name) != removed_ns).then(|| format!("{name} was removed"))
            }
        }
    }
}

fn subject(name: &Name) -> String {
    format!("person {name}")
}

fn role_of(text: &str) -> Result<Role, Failure> {
    text.parse().map_err(|error: trust::RoleError| Failure::usage(error.to_string()))
}

pub(super) fn password_of(text: String) -> Result<Password, Failure> {
    Password::new(text).map_err(|error| {
        Failure::usage(error.to_string())
            .hint("a sentence is long enough, and easier to remember than a riddle")
    })
}

fn with_password(record: &PersonRecord) -> PersonView {
    PersonView {
        name: record.name.to_string(),
        role: words::role_word(record.role),
        proof: ProofWord::Password,
        issued: trust::text_of_nanoseconds(record.changed_ns),
        expires: None,
        authorities: Vec::new(),
    }
}

fn with_certificate(one: Person) -> PersonView {
    PersonView {
        name: one.name,
        role: words::role_word(one.role),
        proof: ProofWord::Certificate,
        issued: trust::text_of_nanoseconds(one.issued_ns),
        expires: Some(trust::text_of_nanoseconds(one.expires_ns)),
        authorities: one.signers,
    }
}
