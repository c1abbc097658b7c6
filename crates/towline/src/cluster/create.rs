//! `towline cluster create`, `add-node` and `del-node`: who is a member.
//!
//! Owns their order and what must hold before. Does not own where slots go (`towline_cluster_proto::plan`).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::json;
use towline_cluster_proto::NodeId;
use towline_cluster_proto::plan;
use towline_resp::frame::Frame;

use super::address::Address;
use super::error::ClusterError;
use super::findings;
use super::member::{Member, shown};
use super::options::{AddNodeArgs, CreateArgs, DelNodeArgs};
use super::output::{Output, table};
use super::peer::{Access, Peer, text_of, words};
use super::reshard;
use super::survey::{Node, Survey};

/// Patience with nodes that are to hear of each other. Some gossip only once a second, and each hears of the others one by one.
const JOIN_WITHIN: Duration = Duration::from_secs(60);

/// How often they are asked meanwhile.
const POLL: Duration = Duration::from_millis(100);

/// Refuses nodes that have something to lose.
fn must_be_empty(node: &mut Node) -> Result<(), ClusterError> {
    let label = node.peer.address.to_string();
    let refuse = |text: String| Err(ClusterError::Refusal(format!("{label} {text}")));
    if let Some(other) = node.seen.view.iter().find(|member| !member.has("myself")) {
        return refuse(format!("knows {} already: it is no node that is alone", other.label()));
    }
    let keyspace = node.peer.text("INFO keyspace")?;
    if let Some(database) = keyspace.lines().find(|line| line.starts_with("db")) {
        return refuse(format!("is not empty: {database}"));
    }
    Ok(())
}

/// `create`.
///
/// # Errors
/// A node is not alone, not empty or not there; or they do not come together.
pub(super) fn create(args: &CreateArgs, access: &Access, output: &Output) -> Result<bool, ClusterError> {
    let primaries = args.nodes.len() / (usize::from(args.replicas) + 1);
    if primaries == 0 {
        return Err(ClusterError::Usage(format!(
            "{} replicas of each primary need at least {} nodes",
            args.replicas,
            args.replicas + 1
        )));
    }
    let mut nodes = Vec::with_capacity(args.nodes.len());
    for address in &args.nodes {
        let mut node = Node::open(address.clone(), access)?;
        must_be_empty(&mut node)?;
        if !node.seen.own.slots.is_empty() {
            let slots = shown(&node.seen.own.slots);
            return Err(ClusterError::Refusal(format!("{address} owns slots already: {slots}")));
        }
        if nodes.iter().any(|other: &Node| other.id() == node.id()) {
            return Err(ClusterError::Usage(format!("{address} is named twice")));
        }
        nodes.push(node);
    }
    let slots = plan::spread(primaries);
    let hosts: Vec<&str> = args.nodes.iter().map(|address| address.host.as_str()).collect();
    let follows = plan::place_replicas(&hosts[..primaries], &hosts[primaries..]);
    show_plan(args, &slots, &follows, output)?;
    if args.dry_run {
        return output.json(&json!({"primaries": primaries, "is_dry_run": true})).map(|()| true);
    }
    output.confirm("Make this cluster?")?;
    for (epoch, (node, slots)) in (1..).zip(nodes.iter_mut().zip(&slots)) {
        let mut command = words("CLUSTER ADDSLOTSRANGE");
        let texts = slots.iter().flat_map(|(first, last)| [first.to_string(), last.to_string()]);
        command.extend(texts.map(Bytes::from));
        node.peer.call(&command)?;
        // Distinct from the start, so that nobody has to settle it later. A node that refuses it has an epoch.
        node.peer.ask(&words(&format!("CLUSTER SET-CONFIG-EPOCH {epoch}")))?;
    }
    let first = nodes[0].seen.own.clone();
    for node in &mut nodes[1..] {
        meet(node, &first)?;
    }
    let mut survey = join(&args.nodes[0], args.nodes.len(), access)?;
    for (replica, primary) in nodes[primaries..].iter().zip(follows) {
        replicate(&mut survey, replica.id(), nodes[primary].id())?;
    }
    survey.refresh()?;
    reshard::wait_for_agreement(&mut survey, JOIN_WITHIN)?;
    reshard::wait_for_service(&mut survey, JOIN_WITHIN)?;
    super::check::report(&survey, &findings::of_views(&survey.seen(), &survey.lost), output)
}

/// Whether a node answers and has loaded its data.
pub(crate) fn answers(host: &str, port: u16) -> bool {
    let access = Access { tls: None, credentials: None, timeout: JOIN_WITHIN };
    let address = Address { host: host.to_owned(), port };
    let asked = Peer::open(address, &access).and_then(|mut peer| peer.number("DBSIZE"));
    asked.is_ok()
}

/// Makes a cluster of new nodes on these ports, or waits until those that are one already serve.
///
/// # Errors
/// They are neither: some are new and some are not; or they do not come together.
pub(crate) fn bring_up(host: &str, ports: &[u16]) -> Result<(), ClusterError> {
    let access = Access { tls: None, credentials: None, timeout: JOIN_WITHIN };
    let nodes: Vec<Address> =
        ports.iter().map(|port| Address { host: host.to_owned(), port: *port }).collect();
    let Some(first) = nodes.first() else { return Ok(()) };
    let seen = Node::open(first.clone(), &access)?.seen;
    if seen.own.slots.is_empty() {
        // Nobody watches it and nobody is asked: what happens is what the caller says of it.
        let output = Output::silent();
        let args = CreateArgs { nodes, replicas: 0, dry_run: false };
        return match create(&args, &access, &output)? {
            true => Ok(()),
            false => Err(ClusterError::Refusal("the nodes came together and do not serve".to_owned())),
        };
    }
    let mut survey = join(first, nodes.len(), &access)?;
    if reshard::wait_for_service(&mut survey, JOIN_WITHIN)? {
        Ok(())
    } else {
        Err(ClusterError::Refusal("the nodes that were there before do not serve".to_owned()))
    }
}

fn show_plan(
    args: &CreateArgs,
    slots: &[towline_cluster_proto::Ranges],
    follows: &[usize],
    output: &Output,
) -> Result<(), ClusterError> {
    let mut rows = vec![["node", "is", "of"].map(str::to_owned).to_vec()];
    for (address, slots) in args.nodes.iter().zip(slots) {
        rows.push(vec![address.to_string(), "primary".to_owned(), format!("slots {}", shown(slots))]);
    }
    for (address, primary) in args.nodes[slots.len()..].iter().zip(follows) {
        rows.push(vec![address.to_string(), "replica".to_owned(), args.nodes[*primary].to_string()]);
    }
    table(&rows).iter().try_for_each(|line| output.line(line))
}

/// Makes `node` known to the cluster of `other`.
fn meet(node: &mut Node, other: &Member) -> Result<(), ClusterError> {
    let Address { host, port } = &other.address;
    let mut text = format!("CLUSTER MEET {host} {port}");
    if other.has_own_bus_port() {
        text.push_str(&format!(" {}", other.bus_port));
    }
    node.peer.call(&words(&text)).map(drop)
}

/// Waits until so many nodes know each other and agree.
fn join(first: &Address, count: usize, access: &Access) -> Result<Survey, ClusterError> {
    let deadline = Instant::now() + JOIN_WITHIN;
    loop {
        let survey = Survey::of(first, access)?;
        let is_whole = survey.nodes.len() >= count && survey.lost.is_empty();
        let is_settled = |member: &Member| !member.has("handshake");
        let are_settled = survey.nodes.iter().all(|node| node.seen.view.iter().all(is_settled));
        if is_whole && are_settled && findings::agree(&survey.seen()) {
            return Ok(survey);
        }
        if Instant::now() >= deadline {
            return Err(ClusterError::Refusal(format!(
                "{count} nodes did not come together within {} s; can they reach each other's bus ports?",
                JOIN_WITHIN.as_secs()
            )));
        }
        std::thread::sleep(POLL);
    }
}

/// Makes a node follow a primary, once it has heard of it.
fn replicate(survey: &mut Survey, replica: NodeId, primary: NodeId) -> Result<(), ClusterError> {
    let command = words(&format!("CLUSTER REPLICATE {primary}"));
    let deadline = Instant::now() + JOIN_WITHIN;
    loop {
        let peer = &mut survey.node(replica)?.peer;
        let frame = peer.ask(&command)?;
        match frame.as_error() {
            None => return Ok(()),
            Some(text) if text.starts_with(b"ERR Unknown node") && Instant::now() < deadline => {
                std::thread::sleep(POLL);
            }
            Some(text) => return Err(peer.refused(&command, text)),
        }
    }
}

/// The primary that fewest follow, of those but `not`.
fn least_followed(survey: &Survey, not: NodeId) -> Option<NodeId> {
    let mut followers: BTreeMap<NodeId, usize> = BTreeMap::new();
    for node in &survey.nodes {
        let own = &node.seen.own;
        if own.is_primary() && own.id != not && !own.slots.is_empty() {
            followers.entry(own.id).or_default();
        }
    }
    for followed in survey.nodes.iter().filter_map(|node| node.seen.own.primary) {
        if let Some(count) = followers.get_mut(&followed) {
            *count += 1;
        }
    }
    followers.into_iter().min_by_key(|(id, count)| (*count, *id)).map(|(id, _)| id)
}

/// `add-node`.
///
/// # Errors
/// The node is not alone, not empty or not there; or it does not become a member.
pub(super) fn add(args: &AddNodeArgs, access: &Access, output: &Output) -> Result<bool, ClusterError> {
    let mut survey = Survey::of(&args.node, access)?;
    let mut new = Node::open(args.new.clone(), access)?;
    must_be_empty(&mut new)?;
    let primary = match &args.replica_of {
        Some(name) => Some(survey.find(name)?),
        None if args.replica => {
            let chosen = least_followed(&survey, new.id());
            Some(chosen.ok_or_else(|| ClusterError::Refusal("no primary has slots".to_owned()))?)
        }
        None => None,
    };
    output.confirm(&format!("Let {} join?", args.new))?;
    if primary.is_none() {
        copy_functions(&mut survey, &mut new)?;
    }
    meet(&mut new, &survey.nodes[0].seen.own)?;
    let members = survey.nodes.len() + survey.lost.len() + 1;
    let mut survey = join_one(&args.node, new.id(), members, access)?;
    if let Some(primary) = primary {
        replicate(&mut survey, new.id(), primary)?;
    }
    reshard::wait_for_service(&mut survey, JOIN_WITHIN)?;
    output.line(&format!("{} is a member; it has no slots yet", new.label()))?;
    output.json(&json!({
        "id": new.id().to_string(),
        "address": args.new.to_string(),
        "follows": primary.map(|id| id.to_string()),
    }))?;
    Ok(true)
}

/// Waits until everybody who answers knows a node, and it knows as many.
fn join_one(first: &Address, new: NodeId, members: usize, access: &Access) -> Result<Survey, ClusterError> {
    let deadline = Instant::now() + JOIN_WITHIN;
    loop {
        let survey = Survey::of(first, access)?;
        let knows = |node: &Node| {
            let known = |member: &Member| member.id == new && !member.has("handshake");
            node.seen.view.iter().any(known) && node.seen.view.len() >= members
        };
        if survey.at(new).is_some() && survey.nodes.iter().all(knows) {
            return Ok(survey);
        }
        if Instant::now() >= deadline {
            return Err(ClusterError::Refusal(format!(
                "the node did not become a member within {} s; can the nodes reach each other's bus ports?",
                JOIN_WITHIN.as_secs()
            )));
        }
        std::thread::sleep(POLL);
    }
}

/// Gives a new primary the functions that the others have: they do not move with slots.
fn copy_functions(survey: &mut Survey, new: &mut Node) -> Result<(), ClusterError> {
    let Some(from) = survey.primaries().first().copied() else { return Ok(()) };
    let dump = survey.node(from)?.peer.ask(&words("FUNCTION DUMP"))?;
    // Servers without functions have none to copy.
    let Some(payload) = text_of(&dump).cloned() else { return Ok(()) };
    let listed = new.peer.ask(&words("FUNCTION LIST"))?;
    let has_some = matches!(&listed, Frame::Array(libraries) if !libraries.is_empty());
    if has_some {
        return Err(ClusterError::Refusal(format!("{} has functions of its own", new.peer.address)));
    }
    let mut restore = words("FUNCTION RESTORE");
    restore.push(payload);
    new.peer.call(&restore).map(drop)
}

/// `del-node`.
///
/// # Errors
/// The node has slots or keys, or the others do not forget it.
pub(super) fn delete(args: &DelNodeArgs, access: &Access, output: &Output) -> Result<bool, ClusterError> {
    let mut survey = Survey::of(&args.at.node, access)?;
    let leaving = leaving(&survey, &args.leaving)?;
    let label = leaving.label();
    if !leaving.slots.is_empty() {
        return Err(ClusterError::Refusal(format!(
            "{label} owns slots {}: move them first (towline cluster rebalance --weight {}=0)",
            shown(&leaving.slots),
            leaving.address
        )));
    }
    let answers = survey.at(leaving.id).is_some();
    if answers && leaving.is_primary() {
        let keys = survey.node(leaving.id)?.peer.number("DBSIZE")?;
        if keys > 0 {
            return Err(ClusterError::Refusal(format!(
                "{label} owns no slots and still holds {keys} keys: towline cluster fix brings them to their owners"
            )));
        }
    }
    output.confirm(&format!("Let {label} go?"))?;
    let followers: Vec<NodeId> =
        survey.nodes.iter().filter(|node| node.seen.own.primary == Some(leaving.id)).map(Node::id).collect();
    for follower in followers {
        let heir = least_followed(&survey, leaving.id);
        let heir =
            heir.ok_or_else(|| ClusterError::Refusal("its replicas have nobody to follow".to_owned()))?;
        replicate(&mut survey, follower, heir)?;
        survey.refresh()?;
    }
    forget(&mut survey, leaving.id)?;
    if answers {
        survey.node(leaving.id)?.peer.call(&words("CLUSTER RESET SOFT"))?;
    }
    output.line(&format!("{label} is no member any more"))?;
    output.json(
        &json!({"id": leaving.id.to_string(), "address": leaving.address.to_string(), "answered": answers}),
    )?;
    Ok(true)
}

/// Who is meant, among those that answer and those that do not.
fn leaving(survey: &Survey, text: &str) -> Result<Member, ClusterError> {
    let address: Option<Address> = text.parse().ok();
    let fits = |member: &&Member| {
        Some(&member.address) == address.as_ref()
            || member.id.to_string().starts_with(&text.to_ascii_lowercase())
    };
    let mut lost = survey.lost.iter().map(|lost| &lost.member).filter(fits);
    match (lost.next(), lost.next()) {
        (Some(member), None) => Ok(member.clone()),
        (Some(_), Some(_)) => Err(ClusterError::Usage(format!("'{text}' fits several nodes"))),
        (None, _) => {
            let id = survey.find(text)?;
            let at = survey.at(id).map(|at| survey.nodes[at].seen.own.clone());
            at.ok_or_else(|| ClusterError::Usage(format!("no node is called '{text}'")))
        }
    }
}

/// Makes all others forget a node. Where members are agreed on, the first one's word is enough and the others do not know it any more.
fn forget(survey: &mut Survey, id: NodeId) -> Result<(), ClusterError> {
    let command = words(&format!("CLUSTER FORGET {id}"));
    for node in survey.nodes.iter_mut().filter(|node| node.id() != id) {
        let frame = node.peer.ask(&command)?;
        match frame.as_error() {
            None => {}
            Some(text) if text.starts_with(b"ERR Unknown node") => {}
            Some(text) => return Err(node.peer.refused(&command, text)),
        }
    }
    Ok(())
}
