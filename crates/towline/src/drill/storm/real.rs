//! `towline drill storm --real`: thousands of real handshakes with one real engine.
//!
//! Owns: the engine's process, with a service that takes its time, and the verdict. The fleet is [`towline_transfer::Fleet`]: the
//! production machines of many nodes in this process, a connection for each handshake.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use towline_transfer::{ConnectConfig, Fleet, Trust, node_id};

use crate::transfer::child::ServeChild;

use super::options::StormArgs;
use super::report::{self, Row};

const NODES: u32 = 16;
const LINKS: u32 = 64;

/// What a fleet may take at most, besides the work of the target.
const PATIENCE: Duration = Duration::from_secs(60);

/// Both ends prove this. The drill is about what handshakes cost, and tags are a part of that.
const KEY: &str = "the secret of a drill on loopback";

/// Runs it. True if every link came up and none was lost.
///
/// # Errors
/// The engine cannot be started, or the report cannot be written.
pub(super) fn execute(args: &StormArgs) -> Result<bool> {
    let (nodes, links) = (args.nodes.unwrap_or(NODES), args.endpoints.unwrap_or(LINKS));
    let total = nodes as usize * links as usize;
    crate::bench::raise_file_limit(total);
    let mut key = tempfile::NamedTempFile::new().context("cannot make a file for the key")?;
    key.write_all(KEY.as_bytes())?;
    let arguments = [
        "--service-us".to_owned(),
        args.service_us.to_string(),
        "--key-file".to_owned(),
        key.path().display().to_string(),
    ];
    let target = ServeChild::start(SocketAddr::from(([127, 0, 0, 1], 0)), 4096, &arguments)?;
    let connect = ConnectConfig::ENGINE;
    let floor = Duration::from_micros(args.service_us) * u32::try_from(total)? / connect.queue.workers;
    let fleet = Fleet {
        nodes,
        links: u16::try_from(links)?,
        target: node_id(&target.address.to_string()),
        address: target.address,
        trust: Trust::key(KEY),
        connect,
        patience: PATIENCE + floor * 2,
    };
    let row = Row::real(total, args.seed, &fleet.run()?);
    let mut out = std::io::stdout().lock();
    if args.is_json {
        report::json(&mut out, std::slice::from_ref(&row), &[])?;
    } else {
        report::table(&mut out, std::slice::from_ref(&row))?;
        writeln!(
            out,
            "{nodes} nodes with {links} links each; the engine serves {} at a time, {} us each, which takes {:.3} s at least.",
            connect.queue.workers,
            args.service_us,
            floor.as_secs_f64()
        )?;
    }
    out.flush()?;
    Ok(row.is_as_promised())
}
