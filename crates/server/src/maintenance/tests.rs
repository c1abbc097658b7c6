//! Tests of who is told what, and of drains, in virtual time.

use super::*;
use crate::client::{Addresses, Client, Clients};
use registry::Counts;

const SECOND: Duration = Duration::from_secs(1);

/// A registry, its clients and its clock.
struct World {
    registry: Registry,
    clients: Clients,
    now: Instant,
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn text(bytes: impl IntoIterator<Item = bytes::Bytes>) -> String {
    let bytes: Vec<u8> = bytes.into_iter().flatten().collect();
    String::from_utf8_lossy(&bytes).replace("\r\n", " ").trim_end().to_owned()
}

impl World {
    fn new() -> Self {
        Self { registry: Registry::new(100), clients: Clients::default(), now: Instant::now() }
    }

    fn connect(&self, port: u16) -> Arc<Client> {
        let tcp = Some((local(50_000), local(port)));
        self.clients.add(Addresses { tcp, ..Addresses::default() }, 0)
    }

    fn opt_in(&self, client: &Arc<Client>) -> String {
        text(self.registry.opt_in(client, Some(EndpointType::None), self.now))
    }

    /// A client that is told.
    fn told(&self, port: u16) -> Arc<Client> {
        let client = self.connect(port);
        self.opt_in(&client);
        client
    }

    fn announce(&self, scope: Scope, notice: Notice) -> u64 {
        self.registry.announce(scope, notice, true, self.now)
    }

    fn drain(&self, scope: Scope, seconds: u32) -> u64 {
        let begun = self.registry.drain(&self.clients, scope, SECOND * seconds, None, true, self.now);
        begun.expect("a drain may begin")
    }

    /// Lets time pass and returns what is to be done.
    fn after(&mut self, time: Duration) -> Vec<Step> {
        self.now += time;
        self.registry.advance(&self.clients, self.now).0
    }

    fn status(&self, seq: u64) -> DrainStatus {
        let all = self.registry.statuses(&self.clients, self.now);
        all.into_iter().find(|status| status.seq == seq).expect("it is shown")
    }

    /// State, told, left and closed connections, and the seconds that remain.
    fn brief(&self, seq: u64) -> (DrainState, usize, usize, usize, f64) {
        let status = self.status(seq);
        (status.state, status.told, status.left, status.closed, status.remaining.as_secs_f64())
    }
}

fn pushed(client: &Client) -> String {
    text(client.take_outbox())
}

fn shards(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn migrating(names: &[&str]) -> Notice {
    Notice::Migrating { starts_in: SECOND * 2, shards: shards(names) }
}

#[test]
fn who_opted_in_is_told_what_concerns_it() {
    let world = World::new();
    let (a, b, deaf) = (world.told(1), world.told(2), world.connect(1));
    assert_eq!(world.announce(Scope::Local(local(1)), migrating(&["1"])), 101);
    assert_eq!(world.announce(Scope::All, Notice::Migrated { shards: shards(&["1"]) }), 102);
    assert_eq!(pushed(&a), ">4 $9 MIGRATING :101 :2 $5 [\"1\"] >3 $8 MIGRATED :102 $5 [\"1\"]");
    assert_eq!(pushed(&b), ">3 $8 MIGRATED :102 $5 [\"1\"]");
    assert_eq!(pushed(&deaf), "");
    world.registry.opt_out(&a);
    world.registry.forget(&b);
    world.announce(Scope::All, migrating(&[]));
    assert_eq!((pushed(&a), pushed(&b)), (String::new(), String::new()));
    assert_eq!(world.registry.announce(Scope::All, migrating(&[]), false, world.now), 104);
    assert_eq!(world.registry.counts(world.now).clients, 0);
}

#[test]
fn open_notices_are_replayed_until_they_are_closed() {
    let mut world = World::new();
    let first = world.announce(Scope::All, migrating(&["1", "2"]));
    world.after(SECOND);
    world.announce(Scope::Local(local(2)), Notice::FailingOver { starts_in: SECOND, shards: shards(&["3"]) });
    let replayed = format!(">4 $9 MIGRATING :{first} :1 $10 [\"1\", \"2\"]");
    assert_eq!(world.opt_in(&world.connect(1)), replayed);
    world.after(SECOND * 5);
    world.announce(Scope::Local(local(1)), Notice::Migrated { shards: Vec::new() });
    world.announce(Scope::All, Notice::Migrated { shards: shards(&["2"]) });
    assert_eq!(
        world.opt_in(&world.connect(1)),
        replayed.replace(":1 ", ":0 "),
        "a part is left, of another scope"
    );
    world.announce(Scope::All, Notice::Migrated { shards: shards(&["1"]) });
    assert_eq!(world.opt_in(&world.connect(1)), "");
    assert_eq!(world.registry.counts(world.now).open, 1);
}

#[test]
fn a_connection_is_told_each_notice_once() {
    let world = World::new();
    let client = world.told(1);
    let first = world.announce(Scope::All, migrating(&["1"]));
    assert_ne!(pushed(&client), "");
    assert_eq!(world.opt_in(&client), "", "again");
    world.registry.opt_out(&client);
    let second = world.announce(Scope::All, migrating(&["2"]));
    assert_eq!(world.opt_in(&client), format!(">4 $9 MIGRATING :{second} :2 $5 [\"2\"]"));
    world.registry.forget(&client);
    assert!(world.opt_in(&client).contains(&format!(":{first} ")), "as if the connection were new");
}

#[test]
fn a_move_is_replayed_with_the_time_that_is_left() {
    let mut world = World::new();
    let notice = Notice::Moving { window: SECOND * 3, successor: Some(Successor::new("db.test", 7)) };
    let seq = world.announce(Scope::All, notice);
    world.after(Duration::from_millis(1500));
    let bare = world.connect(1);
    let frames = text(world.registry.opt_in(&bare, None, world.now));
    assert_eq!(frames, format!(">4 $6 MOVING :{seq} :2 $9 db.test:7"));
    world.after(Duration::from_millis(1499));
    assert_eq!(world.opt_in(&world.connect(1)), format!(">4 $6 MOVING :{seq} :1 _"));
    world.after(Duration::from_millis(1));
    assert_eq!(world.opt_in(&world.connect(1)), "");
}

#[test]
fn who_has_moved_is_not_told_to() {
    let world = World::new();
    let successor = Some(Successor::new("127.0.0.1", 2));
    let notice = Notice::Moving { window: SECOND, successor };
    let seq = world.announce(Scope::All, notice);
    assert_eq!(world.opt_in(&world.connect(2)), "");
    assert_eq!(world.opt_in(&world.connect(1)), format!(">4 $6 MOVING :{seq} :1 _"));
}

#[test]
fn the_oldest_of_too_many_open_notices_is_forgotten() {
    let world = World::new();
    let drain = world.drain(Scope::All, 60);
    let first = world.announce(Scope::All, migrating(&["x"]));
    for index in 0..64 {
        world.announce(Scope::All, migrating(&[&index.to_string()]));
    }
    let frames = world.opt_in(&world.connect(1));
    assert!(frames.contains(&format!("MOVING :{drain} ")) && !frames.contains(&format!(":{first} ")));
    assert_eq!(world.registry.counts(world.now).open, 65);
}

#[test]
fn a_drain_goes_step_by_step() {
    let mut world = World::new();
    let (told, deaf, leaves) = (world.told(1), world.connect(1), world.told(1));
    let (elsewhere, unix) = (world.told(2), world.clients.add(Addresses::default(), 0));
    let seq = world.drain(Scope::Local(local(1)), 2);
    assert_eq!((pushed(&told), pushed(&elsewhere)), (format!(">4 $6 MOVING :{seq} :2 _"), String::new()));
    let later = world.told(1);
    assert_eq!(world.brief(seq), (DrainState::Announced, 2, 0, 0, 2.0));
    assert_ne!(world.opt_in(&deaf), "");
    world.clients.remove(leaves.id);
    assert_eq!(world.after(Duration::from_millis(1999)), []);
    assert_eq!(world.brief(seq), (DrainState::Announced, 3, 1, 0, 0.001));
    let all = vec![told.id, deaf.id];
    assert_eq!(world.after(Duration::from_millis(1)), [Step::Finish(all.clone())]);
    assert_eq!(world.brief(seq), (DrainState::Closing, 3, 1, 2, 0.0));
    world.clients.remove(deaf.id);
    assert_eq!(world.after(SECOND / 2), [Step::Flush(vec![told.id])]);
    assert_eq!(world.after(SECOND / 2), [Step::Kill(vec![told.id])]);
    assert_eq!(world.brief(seq), (DrainState::Over, 3, 1, 2, 0.0));
    assert_eq!(world.after(SECOND * 60), []);
    for client in [later, elsewhere, unix] {
        assert!(world.clients.get(client.id).is_some());
    }
    let counts =
        Counts { clients: 5, sent: 2, replayed: 2, finished: 1, left: 1, closed: 2, ..Counts::default() };
    assert_eq!(world.registry.counts(world.now), counts);
}

#[test]
fn a_late_look_takes_all_steps_at_once() {
    let mut world = World::new();
    let client = world.told(1);
    let seq = world.drain(Scope::All, 1);
    let ids = || vec![client.id];
    assert_eq!(world.after(SECOND * 9), [Step::Finish(ids()), Step::Flush(ids()), Step::Kill(ids())]);
    let empty = world.drain(Scope::Local(local(9)), 1);
    assert_eq!(world.after(SECOND), []);
    assert_eq!((world.status(seq).state, world.status(empty).state), (DrainState::Over, DrainState::Over));
}

#[test]
fn a_second_drain_of_a_scope_takes_over_its_connections() {
    let mut world = World::new();
    let (old, scope) = (world.told(1), Scope::Local(local(1)));
    let first = world.drain(scope, 5);
    world.after(SECOND);
    let young = world.told(1);
    let second = world.drain(scope, 10);
    let third_scope = world.drain(Scope::All, 60);
    assert!(first < second && second < third_scope);
    assert_eq!(world.after(SECOND * 9), []);
    assert_eq!(world.after(SECOND), [Step::Finish(vec![old.id, young.id])]);
    // One that is closing is not taken over: both go on.
    let another = world.drain(scope, 5);
    assert_eq!(world.after(SECOND / 2), [Step::Flush(vec![old.id, young.id])]);
    assert_eq!(world.status(another).state, DrainState::Announced);
    let shown = world.registry.statuses(&world.clients, world.now);
    assert!(shown.iter().all(|status| status.seq != first), "it is replaced, not over");
}

#[test]
fn a_cancelled_drain_closes_nobody_and_is_not_replayed() {
    let mut world = World::new();
    let client = world.told(1);
    let (first, second) = (world.drain(Scope::Local(local(1)), 5), world.drain(Scope::All, 6));
    assert_eq!(world.registry.cancel(Some(first), &world.clients, world.now), 1);
    assert_eq!(world.registry.cancel(Some(first), &world.clients, world.now), 0);
    assert_eq!(world.opt_in(&world.connect(1)), format!(">4 $6 MOVING :{second} :6 _"));
    assert_eq!(world.registry.cancel(None, &world.clients, world.now), 1);
    assert_eq!(world.after(SECOND * 60), []);
    assert_eq!(world.brief(first), (DrainState::Cancelled, 1, 0, 0, 0.0));
    assert!(world.clients.get(client.id).is_some());
    for _ in 0..40 {
        let seq = world.drain(Scope::All, 5);
        world.registry.cancel(Some(seq), &world.clients, world.now);
    }
    assert_eq!(world.registry.statuses(&world.clients, world.now).len(), 16);
}
