//! `towline transfer bench`.
//!
//! Owns: the load, what is measured of it, and the rows. CPU time is that of this process and of the engine that was started for
//! it; with `--to` that of this process alone.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use hdrhistogram::Histogram;
use serde::Serialize;
use towline_sansio::Prng;
use towline_transfer::{
    Access, Batch, Engine, EngineConfig, MemoryRegion, Registered, RemoteRegion, Request, Segment,
};

use crate::bench::{own_cpu_ns, process_cpu_ns};

use super::child::ServeChild;
use super::options::{BenchArgs, Operation};

/// Memory on either side at most.
const BYTES_MAX: u64 = 8 << 30;

/// How long the engine may take to answer at first.
const OPEN_MAX: Duration = Duration::from_secs(10);

/// One measurement. Field names are those of the JSON form.
#[derive(Debug, Serialize)]
struct Row {
    op: &'static str,
    block: u64,
    batch: u32,
    depth: u32,
    threads: u32,
    lanes: u16,
    seconds: f64,
    requests: u64,
    gb_per_s: f64,
    /// Of both ends, or of this one with `--to`.
    cpu_s_per_gb: Option<f64>,
    /// From submission to completion, of batches.
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
    failed: u64,
    /// Batches that were read back, and those that were not what was written.
    checked: u64,
    wrong: u64,
}

/// One combination of the options.
#[derive(Debug, Clone, Copy)]
struct Shape {
    operation: Operation,
    block: u64,
    batch: u32,
    depth: u32,
    threads: u32,
}

impl Shape {
    /// Bytes of one batch.
    fn batch_bytes(&self) -> u64 {
        self.block * u64::from(self.batch)
    }

    /// Bytes that one thread uses.
    fn thread_bytes(&self) -> u64 {
        self.batch_bytes() * u64::from(self.depth)
    }

    fn bytes(&self) -> u64 {
        self.thread_bytes() * u64::from(self.threads)
    }
}

/// Runs every combination. True if nothing failed and nothing was wrong.
///
/// # Errors
/// The engines cannot be started, or the report cannot be written.
pub(super) fn execute(args: &BenchArgs, config: &EngineConfig) -> Result<bool> {
    let shapes = shapes(args);
    let bytes = shapes.iter().map(Shape::bytes).max().unwrap_or(1);
    ensure!(bytes <= BYTES_MAX, "{bytes} bytes are under way; at most {BYTES_MAX} may be");
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let child = match &args.to {
        Some(_) => None,
        None => Some(ServeChild::start(anywhere, bytes, &arguments_of(args))?),
    };
    let engine = Engine::start(config.clone().name(format!("bench-{}", std::process::id())))?;
    let name = match (&args.to, &child) {
        (Some(name), _) => name.clone(),
        (None, Some(child)) => child.address.to_string(),
        (None, None) => String::new(),
    };
    if let Some(at) = args.at {
        engine.add_peer(&name, at)?;
    }
    let segment = engine.open(&name).wait_for(OPEN_MAX)?;
    let remote = segment.region(&args.region).with_context(|| format!("{name} offers no {}", args.region))?;
    ensure!(remote.len() >= bytes, "the region has {} bytes; {bytes} are needed", remote.len());
    let local_bytes = usize::try_from(bytes * 2).context("too much for this machine")?;
    let local = engine.register("bench", &MemoryRegion::allocate(local_bytes)?, Access::Local)?;
    local.memory().write(0, &noise(local_bytes.min(1 << 20)))?;
    let bench = Bench { args, segment, remote, local, half: bytes, pid: child.as_ref().map(ServeChild::pid) };
    let mut out = std::io::stdout().lock();
    if !args.is_json {
        writeln!(out, "{HEADER}")?;
    }
    let mut is_good = true;
    for shape in shapes {
        let row = bench.measure(shape)?;
        is_good &= row.failed == 0 && row.wrong == 0 && row.requests > 0;
        if args.is_json {
            writeln!(out, "{}", serde_json::to_string(&row)?)?;
        } else {
            writeln!(out, "{}", row.line())?;
        }
        out.flush()?;
    }
    Ok(is_good)
}

const HEADER: &str = "op               block    batch depth threads     GB/s  requests/s  cpu s/GB   p50 us   p99 us    max us";

impl Row {
    fn line(&self) -> String {
        let cpu = self.cpu_s_per_gb.map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.3}"));
        let rate = self.requests as f64 / self.seconds;
        let mut line = format!(
            "{:<14} {:>7} {:>8} {:>5} {:>7} {:>8.3} {rate:>11.0} {cpu:>9} {:>8.1} {:>8.1} {:>9.1}",
            self.op,
            self.block,
            self.batch,
            self.depth,
            self.threads,
            self.gb_per_s,
            self.p50_us,
            self.p99_us,
            self.max_us
        );
        if self.checked + self.failed > 0 {
            line.push_str(&format!(
                "  {} checked, {} wrong, {} failed",
                self.checked, self.wrong, self.failed
            ));
        }
        line
    }
}

fn shapes(args: &BenchArgs) -> Vec<Shape> {
    let mut shapes = Vec::new();
    for operation in &args.operations {
        for block in &args.blocks {
            for batch in &args.batches {
                for threads in &args.threads {
                    let depth = args.depth;
                    shapes.push(Shape {
                        operation: *operation,
                        block: block.0,
                        batch: *batch,
                        depth,
                        threads: *threads,
                    });
                }
            }
        }
    }
    shapes
}

/// What the engine at the other end has to be started with.
fn arguments_of(args: &BenchArgs) -> Vec<String> {
    let engine = &args.engine;
    let mut arguments = vec!["--lanes".to_owned(), engine.lanes.to_string()];
    match &engine.key_file {
        Some(path) => arguments.extend(["--key-file".to_owned(), path.display().to_string()]),
        None => arguments.push("--insecure".to_owned()),
    }
    if let Some(threads) = engine.io_threads {
        arguments.extend(["--io-threads".to_owned(), threads.to_string()]);
    }
    if engine.checksums {
        arguments.push("--checksums".to_owned());
    }
    arguments
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut prng = Prng::new(1);
    std::iter::repeat_with(|| prng.next_u64().to_le_bytes()).flatten().take(bytes).collect()
}

/// What one thread has measured.
struct Tally {
    requests: u64,
    failed: u64,
    checked: u64,
    wrong: u64,
    latency: Histogram<u64>,
}

impl Tally {
    fn new() -> Result<Self> {
        // Nanoseconds up to a minute, three digits.
        let latency = Histogram::new_with_bounds(1, 60_000_000_000, 3)?;
        Ok(Self { requests: 0, failed: 0, checked: 0, wrong: 0, latency })
    }
}

struct Bench<'a> {
    args: &'a BenchArgs,
    segment: Segment,
    remote: RemoteRegion,
    local: Registered,
    /// The second half of the local memory is for reading back.
    half: u64,
    pid: Option<u32>,
}

impl Bench<'_> {
    fn measure(&self, shape: Shape) -> Result<Row> {
        let warm = Duration::from_secs_f64(self.args.warm_up);
        let length = Duration::from_secs_f64(self.args.seconds);
        let run = |length| -> Result<Vec<Tally>> {
            if shape.operation == Operation::RawPingPong {
                return Ok(vec![raw_ping_pong(shape.block as usize, length)?]);
            }
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..shape.threads)
                    .map(|index| scope.spawn(move || self.load(shape, index, length)))
                    .collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().expect("invariant: the load does not panic"))
                    .collect()
            })
        };
        run(warm)?;
        let (before, began) = (self.cpu_ns(), Instant::now());
        let tallies = run(length)?;
        let (seconds, after) = (began.elapsed().as_secs_f64(), self.cpu_ns());
        let mut all = Tally::new()?;
        for tally in tallies {
            all.requests += tally.requests;
            all.failed += tally.failed;
            all.checked += tally.checked;
            all.wrong += tally.wrong;
            all.latency.add(&tally.latency)?;
        }
        let gigabytes = (all.requests * shape.block) as f64 / 1e9;
        let cpu =
            before.zip(after).map(|(before, after)| after.saturating_sub(before) as f64 / 1e9 / gigabytes);
        let micros = |percent: f64| all.latency.value_at_quantile(percent / 100.0) as f64 / 1e3;
        let name = match shape.operation {
            Operation::Write => "write",
            Operation::Read => "read",
            Operation::Mix => "mix",
            Operation::RawPingPong => "raw-ping-pong",
        };
        Ok(Row {
            op: name,
            block: shape.block,
            batch: shape.batch,
            depth: shape.depth,
            threads: shape.threads,
            lanes: self.args.engine.lanes,
            seconds,
            requests: all.requests,
            gb_per_s: gigabytes / seconds,
            cpu_s_per_gb: cpu.filter(|cpu| cpu.is_finite()),
            p50_us: micros(50.0),
            p99_us: micros(99.0),
            max_us: micros(100.0),
            failed: all.failed,
            checked: all.checked,
            wrong: all.wrong,
        })
    }

    fn cpu_ns(&self) -> Option<u64> {
        let theirs = self.pid.map_or(Some(0), process_cpu_ns);
        Some(own_cpu_ns()? + theirs?)
    }

    /// One thread's load: keeps `depth` batches under way.
    fn load(&self, shape: Shape, thread: u32, length: Duration) -> Result<Tally> {
        let mut tally = Tally::new()?;
        let mut under_way: VecDeque<(Batch, Instant, u64, bool)> = VecDeque::new();
        let base = shape.thread_bytes() * u64::from(thread);
        let until = Instant::now() + length;
        let mut number = 0_u64;
        while Instant::now() < until || !under_way.is_empty() {
            let is_over = Instant::now() >= until;
            if !is_over && under_way.len() < shape.depth as usize {
                let at = base + (number % u64::from(shape.depth)) * shape.batch_bytes();
                let is_write = match shape.operation {
                    Operation::Write | Operation::RawPingPong => true,
                    Operation::Read => false,
                    Operation::Mix => number.is_multiple_of(2),
                };
                let began = Instant::now();
                let batch = self.segment.submit(&self.requests(shape, at, at, is_write))?;
                under_way.push_back((batch, began, at, is_write));
                number += 1;
            } else if let Some((batch, began, at, is_write)) = under_way.pop_front() {
                let result = batch.wait();
                let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                tally.latency.saturating_record(nanos);
                tally.requests += u64::from(shape.batch);
                tally.failed += u64::from(!result.is_complete());
                if self.args.check && is_write {
                    self.check(shape, at, &mut tally)?;
                }
            }
        }
        Ok(tally)
    }

    fn requests(&self, shape: Shape, local: u64, remote: u64, is_write: bool) -> Vec<Request> {
        let request = |index: u32| {
            let step = u64::from(index) * shape.block;
            if is_write {
                Request::write(&self.local, local + step, &self.remote, remote + step, shape.block)
            } else {
                Request::read(&self.local, local + step, &self.remote, remote + step, shape.block)
            }
        };
        (0..shape.batch).map(request).collect()
    }

    /// Reads a batch back and compares; then changes what the next one writes.
    fn check(&self, shape: Shape, at: u64, tally: &mut Tally) -> Result<()> {
        let (here, copy) = (at as usize, (self.half + at) as usize);
        let back = self.segment.submit(&self.requests(shape, self.half + at, at, false))?.wait();
        let bytes = shape.batch_bytes() as usize;
        let memory = self.local.memory();
        let is_same = memory.crc32c(here, bytes)? == memory.crc32c(copy, bytes)?;
        tally.checked += 1;
        tally.failed += u64::from(!back.is_complete());
        tally.wrong += u64::from(!is_same);
        let mut first = [0; 8];
        let part = first.len().min(bytes);
        memory.read(here, &mut first[..part])?;
        first = (u64::from_le_bytes(first).wrapping_add(1)).to_le_bytes();
        memory.write(here, &first[..part])?;
        Ok(())
    }
}

/// What the sockets themselves take: a block there, a byte back, between two threads that wait in the kernel.
fn raw_ping_pong(block: usize, length: Duration) -> Result<Tally> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let address = listener.local_addr()?;
    let server = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        let mut buffer = vec![0; block];
        // Ends with the other side.
        while socket.read_exact(&mut buffer).is_ok() {
            socket.write_all(&[1])?;
        }
        Ok(())
    });
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    let mut tally = Tally::new()?;
    let buffer = vec![7; block];
    let until = Instant::now() + length;
    while Instant::now() < until {
        let began = Instant::now();
        socket.write_all(&buffer)?;
        socket.read_exact(&mut [0])?;
        tally.latency.saturating_record(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        tally.requests += 1;
    }
    drop(socket);
    server.join().expect("invariant: the echo does not panic")?;
    Ok(tally)
}
