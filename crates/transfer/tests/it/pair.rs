//! Two engines that know each other.

use std::net::SocketAddr;
use std::time::Duration;

use towline_transfer::{
    Access, Engine, EngineConfig, MemoryRegion, Registered, RemoteRegion, Segment, Trust,
};

/// What the tests wait for at most: far longer than anything takes, so that a busy machine fails none of them.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const KEY: &str = "a secret for these tests only";

pub(crate) fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

pub(crate) fn config() -> EngineConfig {
    EngineConfig::new(Trust::key(KEY)).listen(loopback())
}

pub(crate) struct Pair {
    pub(crate) here: Engine,
    pub(crate) there: Engine,
    pub(crate) local: Registered,
    pub(crate) served: Registered,
    pub(crate) segment: Segment,
}

impl Pair {
    /// `here` has a region `scratch` of its own, `there` one named `kv` for everybody, both of so many bytes.
    pub(crate) fn new(bytes: usize, configure: impl Fn(&mut EngineConfig)) -> Self {
        let start = || {
            let mut config = config();
            configure(&mut config);
            Engine::start(config).unwrap()
        };
        let (here, there) = (start(), start());
        let served = register(&there, "kv", bytes, Access::ReadWrite);
        let local = register(&here, "scratch", bytes, Access::Local);
        let segment = here.open(there.name()).wait_for(PATIENCE).unwrap();
        Self { here, there, local, served, segment }
    }

    pub(crate) fn kv(&self) -> RemoteRegion {
        self.segment.region("kv").unwrap()
    }
}

pub(crate) fn register(engine: &Engine, name: &str, bytes: usize, access: Access) -> Registered {
    engine.register(name, &MemoryRegion::allocate(bytes).unwrap(), access).unwrap()
}

/// Bytes that differ from place to place and from seed to seed.
pub(crate) fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    let mut prng = towline_sansio::Prng::new(seed);
    let mut pattern = Vec::with_capacity(bytes + 8);
    while pattern.len() < bytes {
        pattern.extend_from_slice(&prng.next_u64().to_le_bytes());
    }
    pattern.truncate(bytes);
    pattern
}
