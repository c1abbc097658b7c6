//! Integration tests of the formats: files of real servers, damage at every byte, crashes at every step.

mod aof_log;
mod aof_manifest;
mod directory;
mod fixtures;
mod rdb_damage;
mod rdb_file;
