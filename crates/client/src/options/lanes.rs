//! How many connections a client has to one server.
//!
//! Owns the option and its check. Does not own which command takes which connection
//! (`towline_client_proto::routing::Lanes`), nor the connections (`lanes`).

use towline_client_proto::routing::{LANES_MAX, Lanes};

use super::{ConnectOptions, OptionsError};

impl ConnectOptions {
    /// So many connections to the server, or to each node of a cluster, from 1 to [`LANES_MAX`]. Each command takes the one of
    /// its first key's slot, so that commands on one key, and on keys with the same part in braces, keep their order. Between
    /// commands of different lanes there is none: wait for the reply of one before the other is sent where that matters.
    ///
    /// * Commands without keys take the first lane; a command with several keys the lane of its first; a pipeline and a transaction
    ///   the lane of the first key that is in them (in a cluster each command of a pipeline goes the way of its own slot).
    /// * Each lane has a backlog, bounds, a retry budget and a policy of its own: a client with four lanes may keep
    ///   four times as many bytes. A lane that is down keeps its keys waiting and no others.
    /// * All are opened at once, with the first: the command that would open one would have to wait for it. The server sees so many
    ///   clients.
    ///
    /// Default 1: commands that share a connection are written and read together, so one connection is the cheapest, and it
    /// keeps the order of all commands. More are for values so large (from about 100 KB) that others wait while they are on the
    /// wire, and for links on which one TCP stream is slower than the line.
    pub const fn lanes(mut self, lanes: u8) -> Self {
        self.lanes = lanes;
        self
    }

    /// How many connections there are to one server; one if the number makes no sense, which
    /// [`validate`](Self::validate) says.
    pub const fn lane_count(&self) -> Lanes {
        match Lanes::new(self.lanes) {
            Some(lanes) => lanes,
            None => Lanes::ONE,
        }
    }

    pub(super) const fn validate_lanes(&self) -> Result<(), OptionsError> {
        match Lanes::new(self.lanes) {
            Some(_) => Ok(()),
            None => Err(OptionsError::Lanes { lanes: self.lanes }),
        }
    }
}

const _: () = assert!(LANES_MAX == 32, "OptionsError::Lanes says so");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Target;

    #[test]
    fn a_number_of_lanes_has_bounds() {
        let with = |lanes| ConnectOptions::new(Target::tcp("db", 1)).lanes(lanes);
        assert_eq!(ConnectOptions::new(Target::tcp("db", 1)).lane_count(), Lanes::ONE);
        assert_eq!(with(4).lane_count().count(), 4);
        for lanes in [0, LANES_MAX + 1] {
            assert_eq!(with(lanes).validate(), Err(OptionsError::Lanes { lanes }));
        }
        with(LANES_MAX).validate().unwrap();
    }
}
