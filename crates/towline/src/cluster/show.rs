//! `towline cluster info`, `nodes` and `call`: what does not change anything by itself.
//!
//! Owns their tables and objects. Does not own the survey.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use bytes::Bytes;
use serde_json::{Value, json};
use towline_cluster_proto::plan;

use super::error::ClusterError;
use super::member::{Member, shown};
use super::options::{AtArgs, CallArgs};
use super::output::{Output, table, write};
use super::peer::Access;
use super::survey::{Node, Survey};
use crate::cli::{Delimiters, Style, render};

/// `info`: each primary with its slots, keys and replicas.
///
/// # Errors
/// The nodes'.
pub(super) fn info(args: &AtArgs, access: &Access, output: &Output) -> Result<bool, ClusterError> {
    let mut survey = Survey::of(&args.node, access)?;
    let followers: Vec<_> = survey.nodes.iter().filter_map(|node| node.seen.own.primary).collect();
    let mut rows = vec![["node", "id", ">slots", ">keys", ">replicas"].map(str::to_owned).to_vec()];
    let mut objects = Vec::new();
    let (mut slots, mut keys) = (0, 0);
    for node in survey.nodes.iter_mut().filter(|node| node.seen.own.is_primary()) {
        let own = &node.seen.own;
        let (owned, id) = (plan::count(&own.slots), own.id);
        let address = own.address.to_string();
        let replicas = followers.iter().filter(|followed| **followed == id).count();
        let held = node.peer.number("DBSIZE")?;
        let cells =
            [address.clone(), id.to_string(), owned.to_string(), held.to_string(), replicas.to_string()];
        rows.push(cells.to_vec());
        objects.push(json!({
            "address": address, "id": id.to_string(), "slots": owned, "keys": held, "replicas": replicas,
        }));
        slots += owned;
        keys += held;
    }
    output.json(
        &json!({"slots": slots, "keys": keys, "primaries": objects, "unreachable": survey.lost.len()}),
    )?;
    for line in table(&rows) {
        output.line(&line)?;
    }
    output.line(&format!("{keys} keys in {slots} slots"))?;
    for lost in &survey.lost {
        output.line(&format!("{} does not answer: {}", lost.member.label(), lost.reason))?;
    }
    Ok(true)
}

/// `nodes`: all nodes that the named one knows.
///
/// # Errors
/// The node's.
pub(super) fn nodes(args: &AtArgs, access: &Access, output: &Output) -> Result<bool, ClusterError> {
    let node = Node::open(args.node.clone(), access)?;
    let mut rows =
        vec![["node", "id", "flags", "follows", ">epoch", "link", "slots"].map(str::to_owned).to_vec()];
    let mut members: Vec<&Member> = node.seen.view.iter().collect();
    members.sort_by(|a, b| a.address.cmp(&b.address));
    for member in &members {
        rows.push(vec![
            member.address.to_string(),
            member.id.to_string(),
            member.flags.clone(),
            member.primary.map_or_else(|| "-".to_owned(), super::member::short),
            member.epoch.to_string(),
            if member.is_connected { "up" } else { "down" }.to_owned(),
            shown(&member.slots),
        ]);
    }
    let object = |member: &&Member| {
        json!({
            "address": member.address.to_string(),
            "id": member.id.to_string(),
            "hostname": member.hostname,
            "flags": member.flags.split(',').collect::<Vec<_>>(),
            "primary": member.primary.map(|id| id.to_string()),
            "epoch": member.epoch,
            "is_connected": member.is_connected,
            "slots": shown(&member.slots),
        })
    };
    output.json(&Value::Array(members.iter().map(object).collect()))?;
    for line in table(&rows) {
        output.line(&line)?;
    }
    Ok(true)
}

/// `call`: one command to all nodes, and what each of them says. Says whether none of it is an error.
///
/// # Errors
/// The first node does not answer; what others suffer is part of the report.
pub(super) fn call(args: &CallArgs, access: &Access, output: &Output) -> Result<bool, ClusterError> {
    let mut survey = Survey::of(&args.at.node, access)?;
    let command: Vec<Bytes> = args.command.iter().cloned().map(OsString::into_vec).map(Bytes::from).collect();
    let mut is_ok = survey.lost.is_empty();
    let mut objects = Vec::new();
    let delimiters = Delimiters::default();
    for node in &mut survey.nodes {
        let is_primary = node.seen.own.is_primary();
        if (args.only_primaries && !is_primary) || (args.only_replicas && is_primary) {
            continue;
        }
        let address = node.peer.address.to_string();
        let (text, value) = match node.peer.ask(&command) {
            Ok(frame) => {
                is_ok &= frame.as_error().is_none();
                let mut text = Vec::new();
                render(&frame, Style::Standard, &delimiters, &mut text);
                let mut json = Vec::new();
                // The form whose strings survive as ASCII: it is JSON for any bytes.
                render(&frame, Style::QuotedJson, &delimiters, &mut json);
                let value = serde_json::from_slice(&json).unwrap_or(Value::Null);
                let key = if frame.as_error().is_some() { "error" } else { "reply" };
                (String::from_utf8_lossy(&text).into_owned(), json!({"node": address, key: value}))
            }
            Err(error) => {
                is_ok = false;
                (format!("{error}\n"), json!({"node": address, "error": error.to_string()}))
            }
        };
        objects.push(value);
        if !output.is_json {
            write(&format!("{address}: {text}{}", if text.ends_with('\n') { "" } else { "\n" }))?;
        }
    }
    for lost in &survey.lost {
        let address = lost.member.address.to_string();
        output.line(&format!("{address}: {}", lost.reason))?;
        objects.push(json!({"node": address, "error": lost.reason}));
    }
    output.json(&Value::Array(objects))?;
    Ok(is_ok)
}
