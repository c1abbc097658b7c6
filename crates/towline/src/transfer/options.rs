//! The command line of `towline transfer`.
//!
//! Owns flag names, defaults, their bounds and their forms.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use towline_transfer::{Access, EngineConfig, Trust};

/// Options of `towline transfer`.
#[derive(Debug, Args)]
pub(crate) struct TransferArgs {
    /// What to do.
    #[command(subcommand)]
    pub(super) job: TransferJob,
}

/// What `towline transfer` can do.
#[derive(Debug, Subcommand)]
pub(super) enum TransferJob {
    /// Offer memory to other engines, until SIGTERM or SIGINT; one line for each notification that comes.
    Serve(ServeArgs),
    /// Measure transfers to an engine, by default one that is started for it.
    Bench(BenchArgs),
    /// Copy a file into a region of another engine, or a part of a region into a file.
    Copy(CopyArgs),
}

/// Who is trusted, and how bytes go.
#[derive(Debug, Clone, Args)]
pub(crate) struct EngineArgs {
    /// A file whose content, without the line end, is the secret that both engines have; at least 16 bytes.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(super) key_file: Option<PathBuf>,
    /// Anybody who reaches the port may read and write what is offered.
    #[arg(long)]
    pub(super) insecure: bool,
    /// TCP connections of a link.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(super) lanes: u16,
    /// Threads that move bytes.
    #[arg(long = "io-threads", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) io_threads: Option<u16>,
    /// CRC-32C over each slice.
    #[arg(long)]
    pub(super) checksums: bool,
    /// Bytes of a slice.
    #[arg(long, value_name = "SIZE", default_value = "256kb")]
    pub(super) slice: Size,
}

impl EngineArgs {
    /// The configuration that these options ask for.
    ///
    /// # Errors
    /// One line on what is wrong; the caller's mistake.
    pub(crate) fn config(&self) -> Result<EngineConfig, String> {
        let trust = match (&self.key_file, self.insecure) {
            (Some(path), _) => {
                let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
                Trust::key(bytes.trim_ascii_end())
            }
            (None, true) => Trust::Insecure,
            (None, false) => return Err("give --key-file FILE, or --insecure".to_owned()),
        };
        let mut config = EngineConfig::new(trust);
        config.lanes = self.lanes;
        config.checksums = self.checksums;
        config.transfer.slice = self.slice.0;
        if let Some(threads) = self.io_threads {
            config.io_threads = usize::from(threads);
        }
        Ok(config)
    }
}

/// Options of `towline transfer serve`.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Where others connect; port 0 takes a free one, which the first line of output names.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7100")]
    pub(super) listen: SocketAddr,
    /// What others call it; by default the address.
    #[arg(long)]
    pub(super) name: Option<String>,
    /// Memory to offer, as NAME=SIZE, or NAME=SIZE:ro for reading only; may be given several times.
    #[arg(long = "region", value_name = "NAME=SIZE", default_value = "kv=64mb")]
    pub(super) regions: Vec<RegionSpec>,
    /// JSON lines.
    #[arg(long = "json")]
    pub(super) is_json: bool,
    /// For tests: end when standard input does, so that nothing is left of a parent that was killed.
    #[arg(long, hide = true)]
    pub(super) while_stdin: bool,
    /// For drills: each handshake takes so many microseconds to serve.
    #[arg(long, hide = true, default_value_t = 0)]
    pub(super) service_us: u64,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Operation {
    /// From here to there.
    Write,
    /// From there to here.
    Read,
    /// Both in turn.
    Mix,
    /// No engine: a block there and one byte back, on a plain socket.
    RawPingPong,
}

/// Options of `towline transfer bench`.
#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// The engine to measure, by its name; by default one is started in a process of its own.
    #[arg(long, value_name = "NAME")]
    pub(super) to: Option<String>,
    /// Where that is, if the name is no address.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "to")]
    pub(super) at: Option<SocketAddr>,
    /// Its region.
    #[arg(long, default_value = "kv")]
    pub(super) region: String,
    /// Which ways.
    #[arg(long = "op", value_enum, value_delimiter = ',', default_value = "write,read", value_name = "LIST")]
    pub(super) operations: Vec<Operation>,
    /// Bytes of a request.
    #[arg(long = "block", value_delimiter = ',', default_value = "4kb,64kb,1mb", value_name = "LIST")]
    pub(super) blocks: Vec<Size>,
    /// Requests of a batch.
    #[arg(long = "batch", value_delimiter = ',', default_value = "16", value_name = "LIST",
        value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(super) batches: Vec<u32>,
    /// Batches that each thread has under way.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(super) depth: u32,
    /// Threads that submit.
    #[arg(long = "threads", value_delimiter = ',', default_value = "1", value_name = "LIST",
        value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) threads: Vec<u32>,
    /// How long each is measured.
    #[arg(long, default_value_t = 2.0)]
    pub(super) seconds: f64,
    /// How long each runs before.
    #[arg(long, default_value_t = 0.3)]
    pub(super) warm_up: f64,
    /// Read back what was written, and compare.
    #[arg(long)]
    pub(super) check: bool,
    /// JSON lines.
    #[arg(long = "json")]
    pub(super) is_json: bool,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
}

/// Options of `towline transfer copy`.
#[derive(Debug, Args)]
pub(super) struct CopyArgs {
    /// A file, or `ENGINE/REGION[@OFFSET]`.
    #[arg(value_name = "FROM")]
    pub(super) from: Place,
    /// A file, or `ENGINE/REGION[@OFFSET]`.
    #[arg(value_name = "TO")]
    pub(super) to: Place,
    /// Bytes to copy out of a region; by default all from the offset on.
    #[arg(long)]
    pub(super) length: Option<Size>,
    /// Where the engine is, if its name is no address.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) at: Option<SocketAddr>,
    /// Tell the engine when all of it is there.
    #[arg(long, value_name = "TEXT")]
    pub(super) notify: Option<String>,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
}

/// A number of bytes: 4096, 64kb, 1mb, 2gb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size(pub(super) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let units = [("kb", 10), ("mb", 20), ("gb", 30), ("b", 0), ("", 0)];
        let (digits, shift) = units
            .into_iter()
            .find_map(|(unit, shift)| Some((lower.strip_suffix(unit)?, shift)))
            .unwrap_or((&lower, 0));
        let number = digits.parse().ok().and_then(|number: u64| number.checked_mul(1 << shift));
        number
            .filter(|bytes| (1..=1 << 40).contains(bytes))
            .map(Self)
            .ok_or_else(|| format!("{text} is no size; 4096, 64kb, 1mb and 2gb are, up to 1024gb"))
    }
}

/// What `--region` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RegionSpec {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) access: Access,
}

impl FromStr for RegionSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, size) = text.split_once('=').ok_or("a region is NAME=SIZE")?;
        let (size, access) = match size.strip_suffix(":ro") {
            Some(size) => (size, Access::Read),
            None => (size, Access::ReadWrite),
        };
        Ok(Self { name: name.to_owned(), bytes: size.parse::<Size>()?.0, access })
    }
}

/// An end of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A file here.
    File(PathBuf),
    /// A part of a region of an engine.
    Region {
        /// Its name.
        engine: String,
        /// The region's.
        region: String,
        /// From here on.
        offset: u64,
    },
}

impl FromStr for Place {
    type Err = String;

    /// What has a port before its only slash is an engine; `./` makes anything a file.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((engine, rest)) = text.split_once('/').filter(|(engine, _)| engine.contains(':')) else {
            return Ok(Self::File(text.into()));
        };
        let (region, offset) = match rest.split_once('@') {
            Some((region, offset)) => (region, offset.parse().map_err(|_| format!("{offset} is no offset"))?),
            None => (rest, 0),
        };
        Ok(Self::Region { engine: engine.to_owned(), region: region.to_owned(), offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_regions_and_places_have_their_forms() {
        let size = |text: &str| text.parse::<Size>().map(|size| size.0);
        assert_eq!(
            (size("4096"), size("64kb"), size("1MB"), size("2gb")),
            (Ok(4096), Ok(65_536), Ok(1 << 20), Ok(2 << 30))
        );
        for wrong in ["", "kb", "0", "-1", "1tb", "99999999999gb", "1.5mb"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        let region: RegionSpec = "model=1kb:ro".parse().unwrap();
        assert_eq!((region.bytes, region.access), (1024, Access::Read));
        assert!("model".parse::<RegionSpec>().is_err());
        let place = |text: &str| text.parse::<Place>().unwrap();
        let far = |offset| Place::Region { engine: "10.0.0.2:7100".into(), region: "kv".into(), offset };
        assert_eq!((place("10.0.0.2:7100/kv"), place("10.0.0.2:7100/kv@4096")), (far(0), far(4096)));
        assert_eq!(place("./odd:name/file"), Place::File("./odd:name/file".into()));
        assert_eq!(place("/tmp/file"), Place::File("/tmp/file".into()));
    }
}
