//! Searching positions: `GEOSEARCH` and its older relatives, replied or stored.
//!
//! Owns: their arguments, order and limits of the result. Does **not** own the geometry: which scores an area may hold, and
//! which of them it does, is the store's.

use super::geo::{position_arg, reply_position, unit_arg};
use super::zset_ranges::store;
use crate::command::{Args, CommandError, CommandResult, Ctx, Handler, Locks, Row, keys};
use towline_resp::writer::Writer;
use towline_store::geo::{Position, Search, Shape, Unit, distance_text};
use towline_store::number::{parse_f64, parse_i64};
use towline_store::zset::Zset;

/// What the command's name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Search,
    SearchStore,
    Radius(MayStore),
    RadiusByMember(MayStore),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MayStore {
    Yes,
    No,
}

impl Form {
    fn is_search(self) -> bool {
        matches!(self, Self::Search | Self::SearchStore)
    }

    fn takes_store(self) -> bool {
        matches!(self, Self::Radius(MayStore::Yes) | Self::RadiusByMember(MayStore::Yes))
    }

    /// Index of the key that is searched.
    fn source(self) -> usize {
        if self == Self::SearchStore { 2 } else { 1 }
    }

    fn event(self) -> &'static str {
        if self.is_search() { "geosearchstore" } else { "georadiusstore" }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Nearest,
    Farthest,
}

/// Where the searched area lies.
#[derive(Debug, Clone, Copy)]
enum Centre {
    At(Position),
    /// At a member of a key that is not there.
    Nowhere,
}

/// How the centre was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Member,
    Coordinates,
    /// A polygon has its own.
    Polygon,
}

/// The arguments of one command.
#[derive(Debug)]
struct Query<'a> {
    centre: Option<(Origin, Centre)>,
    shape: Option<Shape>,
    unit: Unit,
    with_distance: bool,
    with_hash: bool,
    with_position: bool,
    order: Option<Order>,
    count: Option<usize>,
    /// Whichever are found first will do.
    is_any: bool,
    destination: Option<&'a [u8]>,
    /// Scores of the stored set are distances.
    stores_distance: bool,
}

fn centre_at_member(zset: Option<&Zset>, member: &[u8]) -> Result<(Origin, Centre), CommandError> {
    let Some(zset) = zset else { return Ok((Origin::Member, Centre::Nowhere)) };
    let score = zset.score(member).ok_or(CommandError::Text("ERR could not decode requested zset member"))?;
    Ok((Origin::Member, Centre::At(Position::of_score(score))))
}

impl<'a> Query<'a> {
    fn new() -> Self {
        Self {
            centre: None,
            shape: None,
            unit: Unit::Metre,
            with_distance: false,
            with_hash: false,
            with_position: false,
            order: None,
            count: None,
            is_any: false,
            destination: None,
            stores_distance: false,
        }
    }

    /// Reads the arguments; `zset` is what the searched key holds.
    fn parse(args: Args<'a>, form: Form, zset: Option<&Zset>) -> Result<Self, CommandError> {
        let mut query = Self::new();
        let first = match form {
            Form::Search => 2,
            Form::SearchStore => {
                query.destination = Some(args.get(1));
                3
            }
            Form::Radius(_) => {
                query.centre = Some((Origin::Coordinates, Centre::At(position_arg(args, 2)?)));
                query.take_radius(args, 4)?;
                6
            }
            Form::RadiusByMember(_) => {
                query.centre = Some(centre_at_member(zset, args.get(2))?);
                // Without a key Redis does not look at the radius.
                if zset.is_some() {
                    query.take_radius(args, 3)?;
                }
                5
            }
        };
        let options = args.from(first);
        let mut index = 0;
        while index < options.len() {
            index += 1 + query.take(options.from(index), form, zset)?;
        }
        query.check(args.get(0), form)?;
        Ok(query)
    }

    /// Takes the option that `rest` begins with, and says how many operands it had.
    fn take(&mut self, rest: Args<'a>, form: Form, zset: Option<&Zset>) -> Result<usize, CommandError> {
        let operands = rest.len() - 1;
        match () {
            () if rest.is(0, "withdist") => self.with_distance = true,
            () if rest.is(0, "withhash") => self.with_hash = true,
            () if rest.is(0, "withcoord") => self.with_position = true,
            () if rest.is(0, "any") => self.is_any = true,
            () if rest.is(0, "asc") => self.order = Some(Order::Nearest),
            () if rest.is(0, "desc") => self.order = Some(Order::Farthest),
            () if rest.is(0, "count") && operands >= 1 => {
                let count = usize::try_from(rest.int(1)?).ok().filter(|&count| count > 0);
                self.count = Some(count.ok_or(CommandError::Text("ERR COUNT must be > 0"))?);
                return Ok(1);
            }
            () if form.takes_store() && operands >= 1 && rest.is(0, "store") => {
                (self.destination, self.stores_distance) = (Some(rest.get(1)), false);
                return Ok(1);
            }
            () if form.takes_store() && operands >= 1 && rest.is(0, "storedist") => {
                (self.destination, self.stores_distance) = (Some(rest.get(1)), true);
                return Ok(1);
            }
            () if form == Form::SearchStore && rest.is(0, "storedist") => self.stores_distance = true,
            () if form.is_search() => return self.take_area(rest, zset),
            () => return Err(CommandError::Syntax),
        }
        Ok(0)
    }

    /// As [`Query::take`], for the options that say where to search.
    fn take_area(&mut self, rest: Args<'a>, zset: Option<&Zset>) -> Result<usize, CommandError> {
        let operands = rest.len() - 1;
        let origin = self.centre.map(|(origin, _)| origin);
        let is_box = matches!(self.shape, Some(Shape::Box { .. }));
        let is_circle = matches!(self.shape, Some(Shape::Radius(_)));
        let is_from = |own: Origin| origin.is_none_or(|origin| origin == own);
        if rest.is(0, "frommember") && operands >= 1 && is_from(Origin::Member) {
            self.centre = Some(centre_at_member(zset, rest.get(1))?);
            Ok(1)
        } else if rest.is(0, "fromlonlat") && operands >= 2 && is_from(Origin::Coordinates) {
            self.centre = Some((Origin::Coordinates, Centre::At(position_arg(rest, 1)?)));
            Ok(2)
        } else if rest.is(0, "bypolygon")
            && operands >= 2
            && !is_box
            && !is_circle
            && is_from(Origin::Polygon)
        {
            self.take_polygon(rest)
        } else if origin == Some(Origin::Polygon) {
            Err(CommandError::Syntax)
        } else if rest.is(0, "byradius") && operands >= 2 && !is_box {
            self.take_radius(rest, 1)?;
            Ok(2)
        } else if rest.is(0, "bybox") && operands >= 3 && !is_circle {
            self.take_box(rest, 1)?;
            Ok(3)
        } else {
            Err(CommandError::Syntax)
        }
    }

    /// Arguments `index` and the next one as a radius and its unit.
    fn take_radius(&mut self, args: Args<'_>, index: usize) -> Result<(), CommandError> {
        let radius = parse_f64(args.get(index)).ok_or(CommandError::Text("ERR need numeric radius"))?;
        if radius < 0.0 {
            return Err(CommandError::Text("ERR radius cannot be negative"));
        }
        self.unit = unit_arg(args, index + 1)?;
        self.shape = Some(Shape::Radius(radius * self.unit.metres()));
        Ok(())
    }

    /// Arguments `index` and the next two as width, height and their unit.
    fn take_box(&mut self, args: Args<'_>, index: usize) -> Result<(), CommandError> {
        let width = parse_f64(args.get(index)).ok_or(CommandError::Text("ERR need numeric width"))?;
        let height = parse_f64(args.get(index + 1)).ok_or(CommandError::Text("ERR need numeric height"))?;
        if width < 0.0 || height < 0.0 {
            return Err(CommandError::Text("ERR height or width cannot be negative"));
        }
        self.unit = unit_arg(args, index + 2)?;
        let metres = self.unit.metres();
        self.shape = Some(Shape::Box { width_m: width * metres, height_m: height * metres });
        Ok(())
    }

    /// `BYPOLYGON` with its number of corners and their coordinates; says how many operands these are.
    fn take_polygon(&mut self, args: Args<'_>) -> Result<usize, CommandError> {
        const CORNERS_MIN: usize = 3;
        let count = parse_i64(args.get(1)).and_then(|count| i32::try_from(count).ok());
        let count = count.ok_or(CommandError::Text("ERR invalid number of vertices"))?;
        let given = (args.len() - 2) / 2;
        let count = usize::try_from(count).ok().filter(|count| (CORNERS_MIN..=given).contains(count));
        let count =
            count.ok_or(CommandError::Text("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices"))?;
        let corners =
            (0..count).map(|corner| position_arg(args, 2 + 2 * corner)).collect::<Result<_, _>>()?;
        let Search { centre, shape } = Search::of_polygon(corners);
        (self.centre, self.shape) = (Some((Origin::Polygon, Centre::At(centre))), Some(shape));
        Ok(1 + 2 * count)
    }

    /// What the options together must not be.
    fn check(&self, name: &[u8], form: Form) -> Result<(), CommandError> {
        if self.destination.is_some() && (self.with_distance || self.with_hash || self.with_position) {
            return Err(CommandError::Text(if form == Form::SearchStore {
                "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            } else {
                "ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            }));
        }
        let name = String::from_utf8_lossy(name);
        if form.is_search() && self.centre.is_none() {
            return Err(CommandError::message(format!(
                "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}"
            )));
        }
        if form.is_search() && self.shape.is_none() {
            return Err(CommandError::message(format!(
                "ERR exactly one of BYRADIUS and BYBOX can be specified for {name}"
            )));
        }
        if self.is_any && self.count.is_none() {
            return Err(CommandError::Text("ERR the ANY argument requires COUNT argument"));
        }
        Ok(())
    }

    /// What is found in the set, in order and up to the count.
    fn find<'z>(&self, zset: &'z Zset) -> Vec<Found<'z>> {
        let (Some((_, Centre::At(centre))), Some(shape)) = (self.centre, self.shape.clone()) else {
            return Vec::new();
        };
        let enough = self.count.filter(|_| self.is_any).unwrap_or(usize::MAX);
        let mut found = search(zset, &Search { centre, shape }, enough);
        // The nearest are what a count means, unless any will do.
        let order = self.order.or_else(|| (self.count.is_some() && !self.is_any).then_some(Order::Nearest));
        match order {
            Some(Order::Nearest) => found.sort_by(|a, b| a.distance_m.total_cmp(&b.distance_m)),
            Some(Order::Farthest) => found.sort_by(|a, b| b.distance_m.total_cmp(&a.distance_m)),
            None => {}
        }
        found.truncate(self.count.unwrap_or(usize::MAX));
        found
    }

    fn reply(&self, out: &mut Writer, found: &[Found<'_>]) {
        let extras = [self.with_distance, self.with_hash, self.with_position];
        let extras = extras.into_iter().filter(|&is_shown| is_shown).count();
        out.array(found.len());
        for one in found {
            if extras > 0 {
                out.array(1 + extras);
            }
            out.bulk(one.member);
            if self.with_distance {
                out.bulk(distance_text(one.distance_m / self.unit.metres()).as_bytes());
            }
            if self.with_hash {
                out.int(one.score as i64);
            }
            if self.with_position {
                reply_position(out, one.position);
            }
        }
    }
}

/// A member within the area.
#[derive(Debug, Clone, Copy)]
struct Found<'z> {
    member: &'z [u8],
    score: f64,
    position: Position,
    distance_m: f64,
}

/// The members within the area, in the order in which they are met; no more than `enough`.
fn search<'z>(zset: &'z Zset, search: &Search, enough: usize) -> Vec<Found<'z>> {
    let ranges = search.score_ranges();
    let candidates = ranges.iter().flat_map(|range| zset.range(zset.ranks_by_score(range)));
    let within = candidates.filter_map(|(member, score)| {
        let position = Position::of_score(score);
        let distance_m = search.distance_m(position)?;
        Some(Found { member, score, position, distance_m })
    });
    within.take(enough).collect()
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, form: Form) -> CommandResult {
    let limits = &ctx.ks.settings().limits;
    let zset = ctx.ks.zset(args.get(form.source()))?;
    let query = Query::parse(args, form, zset)?;
    let found = zset.map(|zset| query.find(zset)).unwrap_or_default();
    let Some(destination) = query.destination else {
        query.reply(ctx.out, &found);
        return Ok(());
    };
    let mut result = Zset::new();
    for one in &found {
        let distance = one.distance_m / query.unit.metres();
        result.insert(one.member, if query.stores_distance { distance } else { one.score }, limits);
    }
    store(ctx, destination, result, form.event());
    Ok(())
}

fn geosearch(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Form::Search)
}

fn geosearchstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Form::SearchStore)
}

fn georadius(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Form::Radius(MayStore::Yes))
}

fn georadius_ro(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Form::Radius(MayStore::No))
}

fn georadiusbymember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Form::RadiusByMember(MayStore::Yes))
}

fn georadiusbymember_ro(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Form::RadiusByMember(MayStore::No))
}

/// Whether the command table and Redis may differ about the destination: the table takes the key behind the first `STORE`,
/// Redis the one behind the last that is an option and no key.
fn is_destination_unclear(args: Args<'_>) -> bool {
    let is_store = |arg: &[u8]| arg.eq_ignore_ascii_case(b"store") || arg.eq_ignore_ascii_case(b"storedist");
    let options = args.from(5);
    options.iter().filter(|arg| is_store(arg)).count() > 1 || options.iter().next_back().is_some_and(is_store)
}

const fn storing(name: &'static str, run: Handler) -> Row {
    Row { name, run, locks: Locks::AllIf(is_destination_unclear) }
}

pub(super) const ROWS: &[Row] = &[
    storing("georadius", georadius),
    keys("georadius_ro", georadius_ro),
    storing("georadiusbymember", georadiusbymember),
    keys("georadiusbymember_ro", georadiusbymember_ro),
    keys("geosearch", geosearch),
    keys("geosearchstore", geosearchstore),
];

#[cfg(test)]
mod tests;
