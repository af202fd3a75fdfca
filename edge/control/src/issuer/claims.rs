//! Who somebody is, and what they may, by what an issuer tells of them.

use crate::config::IssuerConfig;
use failure::{Code, Failure};
use serde_json::Value;
use std::collections::BTreeMap;
use trust::{Name, Role};

/// All claims of a token, by name.
pub type Claims = BTreeMap<String, Value>;

/// The name and the role of whom the claims are of: the highest role that one of their groups gives.
///
/// # Errors
/// When there is no usable name, or no group gives a role.
pub fn person_of(config: &IssuerConfig, claims: &Claims) -> Result<(Name, Role), Failure> {
    let issuer = &config.name;
    let denied = |text: String| Failure::new(Code::Denied, text);
    let name = claims.get(&config.name_claim).and_then(Value::as_str).ok_or_else(|| {
        denied(format!("{issuer} does not tell who you are: the claim `{}` is missing", config.name_claim))
            .hint("set [console.oidc] name_claim to one that it has, or have it told at the issuer")
    })?;
    let name: Name = name.parse().map_err(|error: trust::NameError| {
        denied(format!("{issuer} gives a name that cannot be one here: {error}"))
            .hint("set [console.oidc] name_claim to another claim, such as `email`")
    })?;
    let groups = groups_of(config, claims);
    let role = groups.iter().filter_map(|group| config.roles.get(*group)).max().copied();
    role.map(|role| (name.clone(), role)).ok_or_else(|| {
        let found = match groups.len() {
            0 => format!("{issuer} tells no groups of {name}"),
            1 => format!("{name} is in one group at {issuer}, and it gives no role here"),
            count => format!("{name} is in {count} groups at {issuer}, and none of them gives a role here"),
        };
        denied(found).hint(
            "ask for one of the groups that [console.oidc.roles] of the host's configuration names, or log in another way",
        )
    })
}

/// Groups as issuers tell them: a list of texts, or one text. A dot leads into an object (`realm_access.roles`), unless there is a
/// claim of the whole name.
fn groups_of<'a>(config: &IssuerConfig, claims: &'a Claims) -> Vec<&'a str> {
    let whole = claims.get(&config.groups_claim);
    let found = whole.or_else(|| {
        let mut parts = config.groups_claim.split('.');
        let first = claims.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    });
    match found {
        Some(Value::String(group)) => vec![group],
        Some(Value::Array(groups)) => groups.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(groups_claim: &str) -> IssuerConfig {
        let role = |(group, role): (&str, Role)| (group.to_owned(), role);
        IssuerConfig {
            issuer: "https://login.example".to_owned(),
            name: "login.example".to_owned(),
            client_id: "drystone".to_owned(),
            secret: "/nowhere".into(),
            url: "https://a.example:8443".to_owned(),
            name_claim: "preferred_username".to_owned(),
            groups_claim: groups_claim.to_owned(),
            scopes: Vec::new(),
            roles: [("admins", Role::Admin), ("staff", Role::Operator), ("all", Role::Viewer)]
                .map(role)
                .into_iter()
                .collect(),
            authorities: "/nowhere".into(),
        }
    }

    fn person(groups_claim: &str, claims: Value) -> Result<(String, Role), Failure> {
        let claims: Claims = serde_json::from_value(claims).expect("an object");
        person_of(&config(groups_claim), &claims).map(|(name, role)| (name.to_string(), role))
    }

    #[test]
    fn the_highest_role_of_all_groups_counts() {
        let ann = |groups: Value| person("groups", json!({ "preferred_username": "ann", "groups": groups }));
        for (groups, role) in [
            (json!(["all", "other", "staff"]), Role::Operator),
            (json!("admins"), Role::Admin),
            (json!(["all", 7, null, "all"]), Role::Viewer),
        ] {
            assert_eq!(ann(groups.clone()), Ok(("ann".to_owned(), role)), "{groups}");
        }
        for groups in
            [json!([]), json!(["Admins", "admin"]), json!({ "admins": true }), json!(null), json!("")]
        {
            let failure = ann(groups.clone()).expect_err("no role");
            assert_eq!(failure.code, Code::Denied, "{groups}");
            assert!(failure.hint.is_some_and(|hint| hint.contains("[console.oidc.roles]")), "{groups}");
        }
    }

    #[test]
    fn groups_may_stand_in_an_object_as_keycloak_has_its_roles() {
        let nested = json!({ "preferred_username": "ann", "realm_access": { "roles": ["admins"] } });
        assert_eq!(person("realm_access.roles", nested.clone()), Ok(("ann".to_owned(), Role::Admin)));
        assert!(person("realm_access.groups", nested).is_err());
        let dotted = json!({ "preferred_username": "ann", "https://x.example/roles": ["staff"] });
        assert_eq!(person("https://x.example/roles", dotted), Ok(("ann".to_owned(), Role::Operator)));
    }

    #[test]
    fn who_has_no_usable_name_is_refused_with_the_claim_to_change() {
        for claims in [
            json!({ "groups": ["admins"] }),
            json!({ "groups": ["admins"], "preferred_username": "ann smith" }),
            json!({ "groups": ["admins"], "preferred_username": "" }),
            json!({ "groups": ["admins"], "preferred_username": 7 }),
        ] {
            let failure = person("groups", claims.clone()).expect_err("no name");
            assert!(failure.hint.is_some_and(|hint| hint.contains("name_claim")), "{claims}");
        }
    }
}
