//! Commands as ready bytes with places for key numbers.
//!
//! Owns the named workloads, custom command lines, and how a batch of commands is produced: the bytes are encoded
//! once, and each send only rewrites digits. Does not own which key numbers are drawn (`keys`) or when anything is
//! sent (`drive`).

use std::str::FromStr;

use anyhow::{Context as _, Result, bail, ensure};

use towline_sansio::Prng;

use super::keys::{KEY_DIGITS, KeyPicker, write_digits};

/// Keys per MSET, as in redis-benchmark.
const MSET_KEYS: usize = 10;

/// SET:GET shares of a mixed workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ratio {
    set: u32,
    get: u32,
}

impl FromStr for Ratio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(':').and_then(|(set, get)| Some((set.parse().ok()?, get.parse().ok()?)));
        match parts {
            Some((set, get)) if set > 0 || get > 0 => Ok(Self { set, get }),
            _ => Err("use SET:GET, two whole numbers that are not both zero, such as 1:10".to_owned()),
        }
    }
}

/// Where digits go inside a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hole {
    offset: usize,
    width: usize,
}

/// One encoded command with holes.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    holes: Vec<Hole>,
}

impl Template {
    /// Encodes `arguments`, in which `__rand__` and `__rand_int__` stand for `digits` digits of a key number, `__key__` for
    /// `key:` and those digits, and `__data__` for `data`.
    pub(crate) fn new<A: AsRef<[u8]>>(arguments: &[A], data: &[u8], digits: usize) -> Self {
        let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
        let mut holes = Vec::new();
        for argument in arguments {
            let (text, places) = expand(argument.as_ref(), data, digits);
            bytes.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
            holes.extend(places.into_iter().map(|place| Hole { offset: bytes.len() + place, width: digits }));
            bytes.extend_from_slice(&text);
            bytes.extend_from_slice(b"\r\n");
        }
        Self { bytes, holes }
    }

    /// Bytes of one command.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn patch(&self, bytes: &mut [u8], first_position: u64, keys: &KeyPicker, random: &mut Prng) {
        for (position, hole) in (first_position..).zip(&self.holes) {
            let number = keys.pick(random, position);
            write_digits(&mut bytes[hole.offset..hole.offset + hole.width], number);
        }
    }
}

/// Replaces the places in one argument; returns its bytes and where digits go.
fn expand(argument: &[u8], data: &[u8], digits: usize) -> (Vec<u8>, Vec<usize>) {
    let mut text = Vec::with_capacity(argument.len());
    let mut holes = Vec::new();
    let mut rest = argument;
    while let Some(&byte) = rest.first() {
        if let Some(after) = rest.strip_prefix(b"__rand__").or_else(|| rest.strip_prefix(b"__rand_int__")) {
            holes.push(text.len());
            text.resize(text.len() + digits, b'0');
            rest = after;
        } else if let Some(after) = rest.strip_prefix(b"__key__") {
            text.extend_from_slice(b"key:");
            holes.push(text.len());
            text.resize(text.len() + digits, b'0');
            rest = after;
        } else if let Some(after) = rest.strip_prefix(b"__data__") {
            text.extend_from_slice(data);
            rest = after;
        } else {
            text.push(byte);
            rest = &rest[1..];
        }
    }
    (text, holes)
}

/// A buffer of encoded commands, reused from send to send.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    /// Commands of a single-template workload that `bytes` already holds.
    built: usize,
}

impl Batch {
    /// The encoded commands; only as many bytes are meaningful as [`Workload::fill`] said.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A named stream of commands: one template, or several drawn by weight.
#[derive(Debug)]
pub(crate) struct Workload {
    name: String,
    /// With the sum of the weights up to and including each template.
    templates: Vec<(u64, Template)>,
    weight_total: u64,
    /// Holes of the template that has most; keeps sequential positions of different commands apart.
    holes_max: u64,
    bytes_max: usize,
}

impl Workload {
    /// The workload called `name`, with values of `data` and `ratio` for `mixed`.
    ///
    /// # Errors
    /// When no workload has that name.
    pub(crate) fn named(name: &str, data: &[u8], ratio: Ratio) -> Result<Self> {
        if let Some((base, shares)) = name.split_once(':') {
            ensure!(base == "mixed", "unknown workload {name:?}; {NAMES}");
            let ratio = shares
                .parse::<Ratio>()
                .map_err(anyhow::Error::msg)
                .with_context(|| format!("workload {name:?}"))?;
            return Ok(Self::mixed(name, data, ratio));
        }
        let line: &[&str] = match name {
            "ping" => &["PING"],
            "get" => &["GET", "__key__"],
            "set" => &["SET", "__key__", "__data__"],
            "incr" => &["INCR", "counter:__rand__"],
            "lpush" => &["LPUSH", "mylist", "__data__"],
            "rpush" => &["RPUSH", "mylist", "__data__"],
            "lpop" => &["LPOP", "mylist"],
            "rpop" => &["RPOP", "mylist"],
            "sadd" => &["SADD", "myset", "element:__rand__"],
            "spop" => &["SPOP", "myset"],
            "hset" => &["HSET", "myhash", "element:__rand__", "__data__"],
            "zadd" => &["ZADD", "myzset", "0", "element:__rand__"],
            "mset" => {
                let mut line = vec!["MSET"];
                line.extend(["__key__", "__data__"].repeat(MSET_KEYS));
                return Ok(Self::single(name, Template::new(&line, data, KEY_DIGITS)));
            }
            "mixed" => return Ok(Self::mixed(name, data, ratio)),
            _ => bail!("unknown workload {name:?}; {NAMES}"),
        };
        Ok(Self::single(name, Template::new(line, data, KEY_DIGITS)))
    }

    /// A workload of one command line of the caller's.
    pub(crate) fn custom<A: AsRef<[u8]>>(arguments: &[A], data: &[u8]) -> Self {
        let name: Vec<_> =
            arguments.iter().map(|argument| String::from_utf8_lossy(argument.as_ref())).collect();
        Self::single(&name.join(" "), Template::new(arguments, data, KEY_DIGITS))
    }

    /// A workload of one template.
    pub(crate) fn single(name: &str, template: Template) -> Self {
        Self::weighted(name, vec![(1, template)])
    }

    fn mixed(name: &str, data: &[u8], ratio: Ratio) -> Self {
        let set = Template::new(&["SET", "__key__", "__data__"], data, KEY_DIGITS);
        let get = Template::new(&["GET", "__key__"], data, KEY_DIGITS);
        let shares = [(ratio.set, set), (ratio.get, get)];
        Self::weighted(name, shares.into_iter().filter(|(weight, _)| *weight > 0).collect())
    }

    fn weighted(name: &str, shares: Vec<(u32, Template)>) -> Self {
        let mut weight_total = 0;
        let mut templates = Vec::with_capacity(shares.len());
        for (weight, template) in shares {
            weight_total += u64::from(weight);
            templates.push((weight_total, template));
        }
        let holes_max = templates.iter().map(|(_, template)| template.holes.len() as u64).max().unwrap_or(0);
        let bytes_max = templates.iter().map(|(_, template)| template.len()).max().unwrap_or(0);
        Self { name: name.to_owned(), templates, weight_total, holes_max, bytes_max }
    }

    /// The name in reports.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the longest command.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Puts `count` commands into `batch`, the run's numbers `first`, `first + step`, and so on; returns their bytes.
    #[inline]
    pub(crate) fn fill(
        &self,
        batch: &mut Batch,
        numbers: CommandNumbers,
        keys: &KeyPicker,
        random: &mut Prng,
    ) -> usize {
        let CommandNumbers { first, step, count } = numbers;
        let positions = (0..count as u64).map(|index| (first + index * step) * self.holes_max);
        if let [(_, template)] = &self.templates[..] {
            let length = template.len();
            while batch.built < count {
                batch.bytes.extend_from_slice(&template.bytes);
                batch.built += 1;
            }
            if !template.holes.is_empty() {
                for (command, position) in batch.bytes.chunks_exact_mut(length).zip(positions) {
                    template.patch(command, position, keys, random);
                }
            }
            return length * count;
        }
        batch.bytes.clear();
        for position in positions {
            let share = random.below(self.weight_total);
            let index = self.templates.iter().position(|(upto, _)| share < *upto).unwrap_or(0);
            let template = &self.templates[index].1;
            let start = batch.bytes.len();
            batch.bytes.extend_from_slice(&template.bytes);
            template.patch(&mut batch.bytes[start..], position, keys, random);
        }
        batch.bytes.len()
    }
}

/// Which commands of the run a batch holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandNumbers {
    /// Number of the first.
    pub(crate) first: u64,
    /// Distance between two.
    pub(crate) step: u64,
    /// How many.
    pub(crate) count: usize,
}

const NAMES: &str = "use ping, get, set, incr, mset, lpush, rpush, lpop, rpop, sadd, spop, hset, zadd, mixed or mixed:SET:GET";

#[cfg(test)]
mod tests {
    use super::super::keys::{Distribution, random_stream};
    use super::*;

    fn filled(workload: &Workload, batch: &mut Batch, first: u64, count: usize) -> String {
        let keys = KeyPicker::new(Distribution::Sequential, 1_000_000);
        let numbers = CommandNumbers { first, step: 1, count };
        let length = workload.fill(batch, numbers, &keys, &mut random_stream(1, 0));
        String::from_utf8(batch.bytes()[..length].to_vec()).unwrap()
    }

    const RATIO: Ratio = Ratio { set: 1, get: 1 };

    #[test]
    fn a_batch_is_patched_in_place() {
        let workload = Workload::named("set", b"xyz", RATIO).unwrap();
        let mut batch = Batch::default();
        let command = |key: u64| format!("*3\r\n$3\r\nSET\r\n$16\r\nkey:{key:012}\r\n$3\r\nxyz\r\n");
        assert_eq!(filled(&workload, &mut batch, 5, 2), command(5) + &command(6));
        assert_eq!(filled(&workload, &mut batch, 9, 1), command(9));
        assert_eq!(filled(&workload, &mut batch, 10, 3), command(10) + &command(11) + &command(12));
    }

    #[test]
    fn custom_commands_fill_every_place() {
        let workload = Workload::custom(&["hset", "h:__rand_int__:__rand__", "f", "<__data__>"], b"abc");
        let text = filled(&workload, &mut Batch::default(), 3, 1);
        let expected = "*4\r\n$4\r\nhset\r\n$27\r\nh:000000000006:000000000007\r\n$1\r\nf\r\n$5\r\n<abc>\r\n";
        assert_eq!(text, expected);
        assert_eq!(workload.name(), "hset h:__rand_int__:__rand__ f <__data__>");
    }

    #[test]
    fn a_mix_keeps_its_ratio() {
        let workload = Workload::named("mixed:1:9", b"v", RATIO).unwrap();
        let text = filled(&workload, &mut Batch::default(), 0, 10_000);
        let sets = text.matches("SET").count();
        assert!((800..1200).contains(&sets), "{sets}");
        assert_eq!(sets + text.matches("GET").count(), 10_000);
    }

    #[test]
    fn every_name_in_the_help_exists_and_others_do_not() {
        for name in
            "ping get set incr mset lpush rpush lpop rpop sadd spop hset zadd mixed mixed:2:3".split(' ')
        {
            assert!(Workload::named(name, b"v", RATIO).is_ok(), "{name}");
        }
        for name in ["fly", "mixed:0:0", "get:1:2", ""] {
            assert!(Workload::named(name, b"v", RATIO).is_err(), "{name}");
        }
    }
}
