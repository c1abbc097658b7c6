//! Clusters of Towline's own processes.
//!
//! Owns the processes, and making them a cluster with redis-cli, as users do. Does not own clusters of other servers
//! ([`crate::clusters`]).

use crate::clusters::{Member, member, redis_cli, text};
use crate::conn::Conn;
use crate::process::{Server, ServerKind, free_port};
use crate::wait;
use anyhow::{Context, bail};

/// Nodes without replicas, whose processes end with it.
#[derive(Debug)]
pub struct TowlineCluster {
    servers: Vec<Server>,
}

impl TowlineCluster {
    /// Starts so many nodes, each alone and without slots, with these flags besides.
    ///
    /// # Errors
    /// A server does not start.
    pub fn lonely(nodes: usize, flags: &[&str]) -> anyhow::Result<Self> {
        let mut cluster = Self { servers: Vec::new() };
        for _ in 0..nodes {
            cluster.start_node(flags)?;
        }
        Ok(cluster)
    }

    /// Starts so many nodes and makes them a cluster that has all slots.
    ///
    /// # Errors
    /// A server does not start, or they do not become a cluster.
    pub fn start(nodes: usize, flags: &[&str]) -> anyhow::Result<Self> {
        let cluster = Self::lonely(nodes, flags)?;
        cluster.create()?;
        Ok(cluster)
    }

    /// Starts one node more, which is alone. Returns its port.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_node(&mut self, flags: &[&str]) -> anyhow::Result<u16> {
        let bus = free_port()?.to_string();
        let own = ["--cluster-enabled", "yes", "--cluster-port", &bus];
        let server = Server::start(ServerKind::Towline, &[&own, flags].concat())?;
        let port = server.port();
        self.servers.push(server);
        Ok(port)
    }

    /// `redis-cli --cluster create` of all nodes; waits until each serves.
    ///
    /// # Errors
    /// redis-cli fails, or they do not become a cluster.
    pub fn create(&self) -> anyhow::Result<String> {
        let addresses: Vec<String> = self.servers.iter().map(|server| server.address().to_string()).collect();
        let mut arguments = vec!["--cluster", "create"];
        arguments.extend(addresses.iter().map(String::as_str));
        arguments.push("--cluster-yes");
        let said = redis_cli(&arguments)?;
        self.wait_until_whole(self.servers.len())?;
        Ok(said)
    }

    /// Waits until every node knows `nodes` nodes and serves.
    ///
    /// # Errors
    /// It does not come to that; the message has what each says.
    pub fn wait_until_whole(&self, nodes: usize) -> anyhow::Result<()> {
        let info = |server: &Server| {
            text(server.connect().ok().and_then(|mut conn| conn.words("CLUSTER INFO").ok()))
        };
        let known = format!("cluster_known_nodes:{nodes}\r");
        let is_whole = || {
            self.servers.iter().all(|server| {
                let info = info(server);
                info.contains("cluster_state:ok") && info.contains(&known)
            })
        };
        if wait::until(is_whole) {
            return Ok(());
        }
        let said: Vec<String> =
            self.servers.iter().map(|server| format!("{}\n{}", info(server), server.log())).collect();
        bail!("the nodes did not become a cluster of {nodes}:\n{}", said.join("\n"));
    }

    /// Runs redis-cli on the first node: `--cluster COMMAND ADDRESS ARGUMENTS...`.
    ///
    /// # Errors
    /// It fails; the message has what it printed.
    pub fn cluster_cli(&self, command: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let address = self.servers.first().context("a cluster without nodes")?.address().to_string();
        redis_cli(&[&["--cluster", command, &address], arguments].concat())
    }

    /// The nodes.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The nodes, to be stopped and started.
    pub fn servers_mut(&mut self) -> &mut [Server] {
        &mut self.servers
    }

    /// Kills a node at once (`SIGKILL`).
    ///
    /// # Errors
    /// There is no such node, or it is gone already.
    pub fn kill(&self, node: usize) -> anyhow::Result<()> {
        self.servers.get(node).context("no such node")?.signal(rustix::process::Signal::KILL)
    }

    /// Starts a node again that was killed, on other ports and with these flags besides.
    ///
    /// # Errors
    /// It does not start.
    pub fn revive(&mut self, node: usize, flags: &[&str]) -> anyhow::Result<()> {
        let bus = free_port()?.to_string();
        let own = ["--cluster-enabled", "yes", "--cluster-port", &bus];
        self.servers.get_mut(node).context("no such node")?.start_elsewhere(&[&own, flags].concat())
    }

    /// The ports of the nodes.
    pub fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(Server::port).collect()
    }

    /// A connection to the node of this number.
    ///
    /// # Errors
    /// It does not accept it.
    pub fn connect(&self, node: usize) -> anyhow::Result<Conn> {
        self.servers.get(node).context("no such node")?.connect()
    }

    /// The cluster as the node of this number sees it.
    ///
    /// # Errors
    /// It does not answer.
    pub fn members(&self, node: usize) -> anyhow::Result<Vec<Member>> {
        let nodes = text(Some(self.connect(node)?.words("CLUSTER NODES")?));
        Ok(nodes.lines().filter_map(member).collect())
    }

    /// The name of a node.
    ///
    /// # Errors
    /// It does not answer.
    pub fn id(&self, node: usize) -> anyhow::Result<String> {
        Ok(text(Some(self.connect(node)?.words("CLUSTER MYID")?)))
    }
}
