//! `towline transfer serve`.
//!
//! Owns: what the process prints, and when it ends. The first line says where it listens, so that whoever started it can read it.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use towline_transfer::{Engine, EngineConfig, MemoryRegion, Notification};

use super::options::ServeArgs;

/// How often the end is looked for while no notification comes.
const LOOK: Duration = Duration::from_millis(100);

/// Runs until a signal.
///
/// # Errors
/// The engine cannot be started, or nobody reads the output.
pub(super) fn execute(args: &ServeArgs, config: EngineConfig) -> Result<()> {
    let mut config = config.listen(args.listen);
    config.name.clone_from(&args.name);
    config.service_time = Duration::from_micros(args.service_us);
    // One descriptor for each link, and as many links as the system allows.
    crate::bench::raise_file_limit(usize::from(u16::MAX));
    let engine = Engine::start(config)?;
    for spec in &args.regions {
        let bytes = usize::try_from(spec.bytes).context("a region does not fit this machine's memory")?;
        let memory = MemoryRegion::allocate(bytes).with_context(|| format!("region {}", spec.name))?;
        engine.register(&spec.name, &memory, spec.access)?;
    }
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, is_over.clone()).context("cannot wait for signals")?;
    }
    if args.while_stdin {
        let is_over = is_over.clone();
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
    say_where(args, &engine)?;
    while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
        if let Some(notification) = engine.wait_notification(LOOK) {
            say(args, &notification)?;
        }
    }
    engine.shutdown();
    Ok(())
}

fn say_where(args: &ServeArgs, engine: &Engine) -> Result<()> {
    let address = engine.address().map(|at| at.to_string()).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    if args.is_json {
        let life = engine.me().incarnation.0;
        let line = json!({"event": "listening", "address": address, "name": engine.name(), "life": life});
        writeln!(out, "{line}")?;
    } else {
        let names: Vec<_> = args.regions.iter().map(|spec| spec.name.as_str()).collect();
        writeln!(out, "{} listens at {address} and offers {}", engine.name(), names.join(", "))?;
    }
    Ok(out.flush()?)
}

fn say(args: &ServeArgs, notification: &Notification) -> Result<()> {
    let text = String::from_utf8_lossy(&notification.payload);
    let from = notification.from.node.to_string();
    let mut out = std::io::stdout().lock();
    if args.is_json {
        writeln!(out, "{}", json!({"event": "notification", "from": from, "text": text}))?;
    } else {
        writeln!(out, "{from}: {text}")?;
    }
    Ok(out.flush()?)
}
