//! The guards that can be switched off.

use towline_client_proto::Guards;

/// One guard of the client.
#[derive(Debug, Clone, Copy)]
pub struct Mutation {
    name: &'static str,
    switch: fn(&mut Guards),
}

/// Every guard, by its name in [`Guards`].
macro_rules! guards {
    ($($name:ident),* $(,)?) => {
        &[$(Mutation { name: stringify!($name), switch: |guards| guards.$name = false }),*]
    };
}

impl Mutation {
    /// Every guard.
    pub const ALL: &'static [Self] = guards![
        generation,
        byte_accounting,
        culling,
        tier_order,
        retry_class,
        requeue_order,
        orphans,
        writer_settles,
        sent_memory,
        whole_replies,
        promised_room,
        expired_place,
        window,
        pace,
        strict_hold,
        planned_shield,
        cut,
        cut_units,
        retiring,
        dedupe,
        parked,
        one_line,
    ];

    /// The guard of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mutation| mutation.name == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.name
    }

    pub(crate) fn apply(self, guards: &mut Guards) {
        (self.switch)(guards);
    }
}

impl PartialEq for Mutation {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Mutation {}
