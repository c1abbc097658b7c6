//! The HTTP API: paths, bodies and statuses.
//!
//! Owns what is said over HTTP. Does not own what it means (see [`super::action`]). It asks for no password, which is why it
//! listens on loopback addresses only.

use std::io;
use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use super::action::{self, Action, Known as _, Parsed};
use super::cluster::Cluster;
use super::database::locked;
use crate::faults::control::Listener;

/// Longest request body: far above any action.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// What is said to whoever asks for something else.
const PATHS: &str = "there are /action, /slot-migrate, /topology-change-standalone, /rladmin and /health";

/// Serves the API for ever.
///
/// # Errors
/// The listener failed; the environment's fault.
pub(super) async fn serve(listener: TcpListener, cluster: Arc<Cluster>) -> io::Result<()> {
    let router = Router::new()
        .route("/health", get(async || Json(json!({ "status": "ok" }))))
        .route("/action", get(list).post(submit))
        .route("/action/{id}", get(show))
        .route("/slot-migrate", get(describe).post(slot_migrate))
        .route("/topology-change-standalone", get(describe).post(topology_change))
        .route("/rladmin", post(rladmin))
        .fallback(async || fail(StatusCode::NOT_FOUND, PATHS))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(cluster);
    axum::serve(Listener(listener), router).await
}

fn fail(status: StatusCode, error: impl ToString) -> Response {
    (status, Json(json!({ "error": error.to_string() }))).into_response()
}

/// What was asked for cannot be understood, or cannot be.
fn invalid(error: impl ToString) -> Response {
    fail(StatusCode::UNPROCESSABLE_ENTITY, error)
}

/// Starts an action and says its number.
fn start(cluster: &Arc<Cluster>, parsed: Result<Parsed, String>) -> Response {
    match parsed.and_then(|parsed| cluster.submit(parsed)) {
        Ok(id) => Json(json!({ "action_id": id.to_string(), "status": "pending" })).into_response(),
        Err(error) => invalid(error),
    }
}

/// The body of `POST /action`. Whatever its content type says, for that is how people use curl.
#[derive(Debug, Deserialize)]
struct Request {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    parameters: Value,
}

async fn submit(State(cluster): State<Arc<Cluster>>, body: Bytes) -> Response {
    match serde_json::from_slice::<Request>(&body) {
        Ok(request) => start(&cluster, action::parse(&request.kind, &request.parameters, cluster.as_ref())),
        Err(error) => invalid(format!(
            "the body is like {{\"type\": \"bind\", \"parameters\": {{\"bdb_id\": 1}}}}: {error}"
        )),
    }
}

async fn list(State(cluster): State<Arc<Cluster>>) -> Response {
    Json(locked(&cluster.jobs).list()).into_response()
}

async fn show(State(cluster): State<Arc<Cluster>>, Path(id): Path<String>) -> Response {
    let shown = locked(&cluster.jobs).show(&id);
    shown.map_or_else(
        || fail(StatusCode::NOT_FOUND, format!("there is no action {id}, or it was long ago")),
        |shown| Json(shown).into_response(),
    )
}

/// `GET` on an effect's path
async fn describe(State(cluster): State<Arc<Cluster>>, uri: Uri) -> Response {
    let query = query(&uri);
    let Some(effect) = query.get("effect").and_then(Value::as_str) else {
        return invalid("effect is missing");
    };
    match action::describe_effect(uri.path().trim_matches('/'), effect, cluster.node_count()) {
        Ok(described) => Json(described).into_response(),
        Err(error) => invalid(error),
    }
}

/// `POST /slot-migrate`: the action's parameters are in the query.
async fn slot_migrate(State(cluster): State<Arc<Cluster>>, uri: Uri) -> Response {
    start(&cluster, action::parse("slot_migrate", &query(&uri).into(), cluster.as_ref()))
}

/// `POST /topology-change-standalone`, in the same way
async fn topology_change(State(cluster): State<Arc<Cluster>>, uri: Uri) -> Response {
    start(&cluster, action::parse("topology_change_standalone", &query(&uri).into(), cluster.as_ref()))
}

/// `POST /rladmin`, with a command line. `status` is answered at once; anything else is an action.
async fn rladmin(State(cluster): State<Arc<Cluster>>, body: Bytes) -> Response {
    let Ok(text) = std::str::from_utf8(&body) else { return invalid("the body is no text") };
    let only = || cluster.only_database().ok_or_else(|| "which database? -b comes first".to_owned());
    match action::rladmin_action(text, only, cluster.as_ref()) {
        Ok(Action::Status) => Json(json!({ "output": cluster.status() })).into_response(),
        parsed => start(&cluster, parsed.map(|action| ("execute_rladmin_command", action))),
    }
}

/// The pairs of a query, as texts.
fn query(uri: &Uri) -> Map<String, Value> {
    let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (decode(name), decode(value).into()))
        .collect()
}

/// Percent signs and pluses undone; what is not UTF-8 then is replaced.
fn decode(text: &str) -> String {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        let coded = (byte == b'%').then(|| behind.get(..2)).flatten();
        let coded = coded.and_then(|digits| std::str::from_utf8(digits).ok());
        match coded.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                rest = &behind[2..];
            }
            None => out.push(if byte == b'+' { b' ' } else { byte }),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let uri: Uri = "/slot-migrate?effect=slot%2Dshuffle&bdb_id=1&trigger=&x&a=b+c%zz%2".parse().unwrap();
        let expected = json!({"effect": "slot-shuffle", "bdb_id": "1", "a": "b c%zz%2"});
        assert_eq!(Value::Object(query(&uri)), expected);
        assert!(query(&"/x".parse().unwrap()).is_empty());
    }
}
