//! Passes over what is not decoded: streams, module data, slot imports.
//!
//! Owns their structure, as a stack of what is still to come, so that nothing of them is ever held in memory.
//! Does not judge their content.

use towline_rdb::{ObjectError, RdbType};

use super::skim::{Cursor, Stop};

/// Something still to pass. What is longer than its parts puts the parts on the stack.
#[derive(Debug, Clone, Copy)]
enum Step {
    Bytes(u64),
    Length,
    String,
    /// A count, and as many of these.
    Counted(Item),
    /// As many more of these.
    Items(u64, Item),
    /// What a module wrote, up to its end mark.
    ModuleData,
}

#[derive(Debug, Clone, Copy)]
enum Item {
    StreamNode,
    Group { generation: u8 },
    Pending,
    Consumer { generation: u8 },
    ConsumerPending,
    SlotRange,
}

/// What of one thing is still to pass.
#[derive(Debug)]
pub(super) struct Skip(Vec<Step>);

impl Skip {
    /// The value of a type that is not decoded.
    pub(super) fn value(rdb_type: RdbType) -> Result<Self, ObjectError> {
        let generation = match rdb_type {
            RdbType::StreamListpacks => 1,
            RdbType::StreamListpacks2 => 2,
            RdbType::StreamListpacks3 => 3,
            RdbType::Module2 => return Ok(Self(vec![Step::ModuleData, Step::Length])),
            // Its end cannot be found without the module.
            _ => return Err(ObjectError::UnsupportedType(rdb_type)),
        };
        let mut steps = vec![Step::Counted(Item::Group { generation })];
        // Length and last ID; later also the first ID, the largest deleted one, and the count of additions.
        let length_count = if generation == 1 { 3 } else { 8 };
        steps.extend([Step::Length; 8].iter().take(length_count));
        steps.push(Step::Counted(Item::StreamNode));
        Ok(Self(steps))
    }

    /// Module data after its ID: when it was written, and what.
    pub(super) fn module_aux() -> Self {
        Self(vec![Step::ModuleData, Step::Length, Step::Length])
    }

    /// One string.
    pub(super) fn string() -> Self {
        Self(vec![Step::String])
    }

    /// The name of an import and its slot ranges.
    pub(super) fn slot_import() -> Self {
        Self(vec![Step::Counted(Item::SlotRange), Step::String])
    }

    /// Passes what has arrived. The cursor's position is right after an error, too.
    pub(super) fn advance(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        while let Some(step) = self.0.pop() {
            let at = cursor.at;
            if let Err(stop) = self.pass(step, cursor) {
                if matches!(stop, Stop::More(_)) && !matches!(step, Step::Bytes(_)) {
                    cursor.at = at;
                    self.0.push(step);
                }
                return Err(stop);
            }
        }
        Ok(())
    }

    fn pass(&mut self, step: Step, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        match step {
            Step::Bytes(bytes) => {
                let here = bytes.min(cursor.available() as u64);
                cursor.take(here)?;
                if here < bytes {
                    self.0.push(Step::Bytes(bytes - here));
                    return Err(Stop::More(cursor.at as u64 + 1));
                }
            }
            Step::Length => {
                cursor.length()?;
            }
            Step::String => {
                let bytes = cursor.string_head()?;
                self.0.push(Step::Bytes(bytes));
            }
            Step::Counted(item) => {
                let count = cursor.length()?;
                self.0.push(Step::Items(count, item));
            }
            Step::Items(0, _) => {}
            Step::Items(count, item) => {
                self.0.push(Step::Items(count - 1, item));
                self.push_item(item);
            }
            Step::ModuleData => self.module_data(cursor)?,
        }
        Ok(())
    }

    /// Puts an item's parts on the stack, the last one first.
    fn push_item(&mut self, item: Item) {
        let steps: &[Step] = match item {
            Item::StreamNode => &[Step::String, Step::String],
            Item::Group { generation: 1 } => &[
                Step::Counted(Item::Consumer { generation: 1 }),
                Step::Counted(Item::Pending),
                Step::Length,
                Step::Length,
                Step::String,
            ],
            Item::Group { generation } => &[
                Step::Counted(Item::Consumer { generation }),
                Step::Counted(Item::Pending),
                Step::Length,
                Step::Length,
                Step::Length,
                Step::String,
            ],
            // ID, time of delivery, number of deliveries.
            Item::Pending => &[Step::Length, Step::Bytes(16 + 8)],
            // Name, times last seen and (since the third form) active, IDs.
            Item::Consumer { generation } => &[
                Step::Counted(Item::ConsumerPending),
                Step::Bytes(if generation < 3 { 8 } else { 16 }),
                Step::String,
            ],
            Item::ConsumerPending => &[Step::Bytes(16)],
            Item::SlotRange => &[Step::Length, Step::Length],
        };
        self.0.extend_from_slice(steps);
    }

    fn module_data(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        let at = cursor.at;
        let part = match cursor.length()? {
            0 => return Ok(()),
            1 | 2 => Step::Length,
            3 => Step::Bytes(4),
            4 => Step::Bytes(8),
            5 => Step::String,
            _ => {
                let error = ObjectError::Malformed { encoding: "module data", reason: "unknown part" };
                return cursor.bad(at, error);
            }
        };
        self.0.extend([Step::ModuleData, part]);
        Ok(())
    }
}
