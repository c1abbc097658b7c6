//! A service that shortens links: axum in front, redis-rs behind.
//!
//! `REDIS_URL=redis://127.0.0.1:6379 LISTEN=127.0.0.1:8080 cargo run`, then
//! `curl -d '{"url":"https://example.com"}' -H 'content-type: application/json' 127.0.0.1:8080/links`
#![expect(clippy::print_stdout, reason = "a service says where it listens")]

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use redis::aio::ConnectionManager;
use redis::{AsyncCommands, RedisError};
use serde::{Deserialize, Serialize};
use towline_client::redis;

/// Links that one owner may make in a minute.
const LINKS_PER_MINUTE: u64 = 5;

#[derive(Clone)]
struct Service {
    redis: ConnectionManager,
}

#[derive(Deserialize)]
struct NewLink {
    owner: String,
    url: String,
}

#[derive(Serialize)]
struct Link {
    id: u64,
    url: String,
    hits: u64,
}

enum Failure {
    NotFound,
    TooMany,
    Redis(RedisError),
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::NotFound => (StatusCode::NOT_FOUND, "no such link".to_owned()),
            Self::TooMany => (StatusCode::TOO_MANY_REQUESTS, "slow down".to_owned()),
            Self::Redis(error) if error.is_timeout() || error.is_connection_dropped() => {
                (StatusCode::SERVICE_UNAVAILABLE, "try again".to_owned())
            }
            Self::Redis(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
        .into_response()
    }
}

/// Makes a link, unless its owner has made too many.
async fn create(State(service): State<Service>, Json(new): Json<NewLink>) -> Result<Json<Link>, Failure> {
    let mut con = service.redis.clone();
    let recent = format!("made:{}", new.owner);
    let (made,): (u64,) = redis::pipe()
        .atomic()
        .incr(&recent, 1)
        .cmd("EXPIRE")
        .arg(&[&recent, "60", "NX"])
        .ignore()
        .query_async(&mut con)
        .await?;
    if made > LINKS_PER_MINUTE {
        return Err(Failure::TooMany);
    }
    let id: u64 = con.incr("links:last", 1).await?;
    redis::pipe()
        .atomic()
        .hset_multiple(format!("link:{id}"), &[("url", &new.url), ("owner", &new.owner)])
        .ignore()
        .zadd("links:hits", id, 0)
        .ignore()
        .exec_async(&mut con)
        .await?;
    let _: i64 = con.publish("links", &new.url).await?;
    Ok(Json(Link { id, url: new.url, hits: 0 }))
}

/// Counts a visit, and says where it leads.
async fn visit(State(service): State<Service>, Path(id): Path<u64>) -> Result<Json<Link>, Failure> {
    let mut con = service.redis.clone();
    let url: Option<String> = con.hget(format!("link:{id}"), "url").await?;
    let url = url.ok_or(Failure::NotFound)?;
    let hits: f64 = con.zincr("links:hits", id, 1).await?;
    Ok(Json(Link { id, url, hits: hits as u64 }))
}

/// The links that are visited most.
async fn top(State(service): State<Service>) -> Result<Json<Vec<Link>>, Failure> {
    let mut con = service.redis.clone();
    let ranking: Vec<(u64, f64)> = con.zrevrange_withscores("links:hits", 0, 9).await?;
    let mut links = Vec::with_capacity(ranking.len());
    for (id, hits) in ranking {
        let url: Option<String> = con.hget(format!("link:{id}"), "url").await?;
        links.extend(url.map(|url| Link { id, url, hits: hits as u64 }));
    }
    Ok(Json(links))
}

async fn health(State(service): State<Service>) -> Result<String, Failure> {
    Ok(redis::cmd("PING").query_async(&mut service.redis.clone()).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
    let listen = std::env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:8080".to_owned());
    let redis = redis::Client::open(url)?.get_connection_manager().await?;
    let router = Router::new()
        .route("/links", post(create))
        .route("/links/{id}", get(visit))
        .route("/top", get(top))
        .route("/health", get(health))
        .with_state(Service { redis });
    let listener = tokio::net::TcpListener::bind(listen).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, router).await?;
    Ok(())
}
