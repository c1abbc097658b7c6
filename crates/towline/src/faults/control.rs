//! The control port: rules, scripts, cuts and counters over HTTP.
//!
//! Owns paths and bodies. Does not own what they change (see [`super::shared`]). It asks for no password, which is why it
//! listens on loopback addresses only.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use super::script::{How, Script, parse_rules};
use super::shared::{Reach, Shared};

/// Longest request body: a thousand rules of usual length, or a few with much garbage.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// How long accepting rests when the process is out of file descriptors.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Serves the control port for ever.
///
/// # Errors
/// The listener failed; the environment's fault.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    let router = Router::new()
        .route("/rules", get(rules).put(set_rules))
        .route("/script", get(script).put(set_script))
        .route("/cut", post(cut))
        .route("/stats", get(stats))
        .fallback(async || fail(StatusCode::NOT_FOUND, "there are /rules, /script, /cut and /stats"))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(shared);
    axum::serve(Listener(listener), router).await
}

fn fail(status: StatusCode, error: impl ToString) -> Response {
    (status, Json(json!({ "error": error.to_string() }))).into_response()
}

/// `GET /rules`
async fn rules(State(shared): State<Arc<Shared>>) -> Response {
    Json(json!({ "seed": shared.seed, "rules": &shared.rule_texts()[..] })).into_response()
}

/// `PUT /rules`, with a JSON array of rules. Whatever its content type says, for that is how people use curl.
async fn set_rules(State(shared): State<Arc<Shared>>, uri: Uri, body: Bytes) -> Response {
    let reach = match uri.query() {
        None | Some("" | "open=false") => Reach::New,
        Some("open=true") => Reach::OpenToo,
        Some(other) => {
            return fail(StatusCode::BAD_REQUEST, format!("`{other}`: there is only open=true, or false"));
        }
    };
    let texts: Vec<String> = match serde_json::from_slice(&body) {
        Ok(texts) => texts,
        Err(error) => {
            let what = format!("the body is a JSON array of rules, such as [\"cut@s2c:100\"]: {error}");
            return fail(StatusCode::BAD_REQUEST, what);
        }
    };
    let set = parse_rules(&texts)
        .and_then(|parsed| shared.set_rules(parsed, reach).map_err(|error| error.to_string()));
    match set {
        Err(error) => fail(StatusCode::BAD_REQUEST, error),
        Ok(()) => rules(State(shared)).await,
    }
}

/// `GET /script`
async fn script(State(shared): State<Arc<Shared>>) -> Response {
    Json(shared.script().json()).into_response()
}

/// `PUT /script`: it starts now.
async fn set_script(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    match Script::parse(&body) {
        Err(error) => fail(StatusCode::BAD_REQUEST, error),
        Ok(parsed) => {
            shared.set_script(parsed);
            script(State(shared)).await
        }
    }
}

/// The body of `POST /cut`; may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CutRequest {
    /// Which connection; all without it.
    connection: Option<u64>,
    /// `fin` without it.
    #[serde(default)]
    how: How,
}

/// `POST /cut`
async fn cut(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let request = if body.is_empty() { Ok(CutRequest::default()) } else { serde_json::from_slice(&body) };
    let request = match request {
        Ok(request) => request,
        Err(error) => {
            let what =
                format!("the body is empty or like {{\"connection\": 3, \"how\": \"reset\"}}: {error}");
            return fail(StatusCode::BAD_REQUEST, what);
        }
    };
    let connections = shared.cut(request.connection, request.how);
    Json(json!({ "cut": connections })).into_response()
}

/// `GET /stats`
async fn stats(State(shared): State<Arc<Shared>>) -> Response {
    Json(shared.snapshot()).into_response()
}

/// Accepts, and rests when the process is out of descriptors instead of ending the proxy.
pub(super) struct Listener(pub(super) TcpListener);

impl axum::serve::Listener for Listener {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match self.0.accept().await {
                Ok(accepted) => return accepted,
                Err(_) => tokio::time::sleep(ACCEPT_REST).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}
