//! `towline transfer copy`.
//!
//! Owns: reading and writing the file in pieces, while the piece before is on its way.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use towline_transfer::{
    Access, Batch, Engine, EngineConfig, MemoryRegion, Registered, RemoteRegion, Request, Segment,
};

use super::options::{CopyArgs, Place};

/// Bytes of one piece. Several are under way.
const PIECE: usize = 4 << 20;

/// Pieces under way.
const PIECES: usize = 4;

/// How long the engine may take to answer at first.
const OPEN_MAX: Duration = Duration::from_secs(10);

/// Copies.
///
/// # Errors
/// Neither or both ends are files, the file or the region cannot be used, or the transfer failed.
pub(super) fn execute(args: &CopyArgs, config: EngineConfig) -> Result<()> {
    let (path, engine_name, region, offset, is_upload) = match (&args.from, &args.to) {
        (Place::File(path), Place::Region { engine, region, offset }) => {
            (path, engine, region, *offset, true)
        }
        (Place::Region { engine, region, offset }, Place::File(path)) => {
            (path, engine, region, *offset, false)
        }
        _ => bail!("one of the two is a file, the other ENGINE/REGION"),
    };
    let engine = Engine::start(config.name(format!("copy-{}", std::process::id())))?;
    if let Some(at) = args.at {
        engine.add_peer(engine_name, at)?;
    }
    let segment = engine.open(engine_name).wait_for(OPEN_MAX)?;
    let region =
        segment.region(region).with_context(|| format!("{engine_name} offers no region {region}"))?;
    let memory = MemoryRegion::allocate(PIECE * PIECES)?;
    let local = engine.register("copy", &memory, Access::Local)?;
    let copy = Copy { segment: &segment, region: &region, local: &local };
    let began = Instant::now();
    let bytes = if is_upload {
        copy.upload(path, offset)?
    } else {
        let length = args.length.map_or_else(|| region.len().saturating_sub(offset), |size| size.0);
        copy.download(path, offset, length)?
    };
    if let Some(text) = &args.notify {
        segment.notify(text.as_bytes())?;
    }
    // What is told has to arrive before this process ends.
    engine.shutdown();
    let seconds = began.elapsed().as_secs_f64().max(1e-9);
    let rate = bytes as f64 / 1e9 / seconds;
    writeln!(std::io::stdout(), "{bytes} bytes in {seconds:.3} s, {rate:.2} GB/s")?;
    Ok(())
}

struct Copy<'a> {
    segment: &'a Segment,
    region: &'a RemoteRegion,
    local: &'a Registered,
}

impl Copy<'_> {
    fn upload(&self, path: &Path, offset: u64) -> Result<u64> {
        let name = || path.display().to_string();
        let mut file = File::open(path).with_context(name)?;
        let length = file.metadata().with_context(name)?.len();
        ensure!(
            offset.checked_add(length).is_some_and(|end| end <= self.region.len()),
            "{length} bytes at {offset} do not fit a region of {}",
            self.region.len()
        );
        let mut buffer = vec![0; PIECE];
        let mut under_way = VecDeque::new();
        let mut done = 0;
        for slot in (0..PIECES).cycle() {
            if under_way.len() == PIECES {
                finish(under_way.pop_front())?;
            }
            let read = fill(&mut file, &mut buffer).with_context(name)?;
            if read == 0 {
                break;
            }
            let at = (slot * PIECE) as u64;
            self.local.memory().write(slot * PIECE, &buffer[..read])?;
            let request = Request::write(self.local, at, self.region, offset + done, read as u64);
            under_way.push_back(self.segment.submit(&[request])?);
            done += read as u64;
        }
        under_way.into_iter().try_for_each(|batch| finish(Some(batch)))?;
        Ok(done)
    }

    fn download(&self, path: &Path, offset: u64, length: u64) -> Result<u64> {
        let mut file = File::create(path).with_context(|| path.display().to_string())?;
        let mut under_way: VecDeque<(Batch, usize, usize)> = VecDeque::new();
        let mut asked = 0;
        let mut slots = (0..PIECES).cycle();
        while asked < length || !under_way.is_empty() {
            if asked < length && under_way.len() < PIECES {
                let slot = slots.next().unwrap_or_default();
                let part = (length - asked).min(PIECE as u64);
                let at = (slot * PIECE) as u64;
                let request = Request::read(self.local, at, self.region, offset + asked, part);
                under_way.push_back((self.segment.submit(&[request])?, slot * PIECE, part as usize));
                asked += part;
            } else if let Some((batch, at, part)) = under_way.pop_front() {
                finish(Some(batch))?;
                file.write_all(&self.local.memory().to_vec(at, part)?)?;
            }
        }
        file.sync_all()?;
        Ok(length)
    }
}

/// Reads until the buffer is full or the file is over.
fn fill(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

fn finish(batch: Option<Batch>) -> Result<()> {
    let Some(result) = batch.map(|batch| batch.wait()) else { return Ok(()) };
    ensure!(result.is_complete(), "a transfer failed: {:?}", result.statuses);
    Ok(())
}
