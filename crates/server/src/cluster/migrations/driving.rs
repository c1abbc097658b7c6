//! What the two drivers have in common: the loop around a machine.
//!
//! Owns: when a machine hears of the log's decision, of time, and of news, and what is shown of it. Does **not** own what it says is to be
//! done: [`Drive`] is that of one side.

use super::Node;
use crate::shared::Stop;
use towline_cluster_proto::NodeId;
use towline_cluster_proto::migration::{Decision, Status};
use towline_sansio::Instant;

/// A machine, and who does what it says.
pub(super) trait Drive {
    /// How far it has come.
    fn status(&self) -> Status<'_>;

    /// What the log said, as far as the machine has heard of it.
    fn decision(&self) -> Option<Decision>;

    /// The log has decided, and this node's workers see it.
    fn decided(&mut self, decision: Decision);

    /// Does all that the machine says is to be done.
    async fn act(&mut self);

    /// When the machine wants to hear of time.
    fn due(&self) -> Option<Instant>;

    /// It is that time.
    fn time_passed(&mut self);

    /// Waits for the next thing that happens, and tells the machine.
    ///
    /// # Cancel safety
    /// What happens is heard of the next time.
    async fn news(&mut self);
}

/// Works until the log has decided, or the server stops.
pub(super) async fn drive(node: &Node, id: NodeId, driver: &mut impl Drive) {
    let mut metadata = node.log.metadata();
    let mut stopping = node.shared.stopping();
    loop {
        if driver.decision().is_none() {
            let decision = node.decision(id, &metadata.borrow_and_update().clone());
            if let Some(decision) = decision {
                driver.decided(decision);
            }
        }
        driver.act().await;
        node.show(id, &driver.status());
        if let Some(decision) = driver.decision() {
            let message = driver.status().message;
            tracing::info!(migration = %id, ?decision, message, "the slots' move is over");
            return;
        }
        let due = driver.due().map(|at| at.since(node.now()));
        tokio::select! {
            () = driver.news() => continue,
            changed = metadata.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => {}
            _ = stopping.wait_for(|stop| *stop != Stop::No) => return,
        }
        driver.time_passed();
    }
}
