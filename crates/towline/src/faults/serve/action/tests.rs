//! Actions as harnesses write them, and mistakes.

use super::*;

/// Databases 1 and 2, three nodes.
struct Two;

impl Known for Two {
    fn has_database(&self, id: u32) -> bool {
        (1..=2).contains(&id)
    }

    fn only_database(&self) -> Option<u32> {
        None
    }

    fn has_tls(&self) -> bool {
        false
    }

    fn node_count(&self) -> usize {
        3
    }
}

fn read(kind: &str, parameters: Value) -> Action {
    parse(kind, &parameters, &Two).unwrap().1
}

#[test]
fn numbers_may_be_texts() {
    let bind = |source, target| Action::Bind { database: 2, source, target };
    assert_eq!(read("bind", json!({"bdb_id": 2, "cluster_index": 0})), bind(None, None));
    assert_eq!(read("bind", json!({"bdb_id": "2", "cluster_index": "0"})), bind(None, None));
    let nodes = json!({"bdb_id": "2", "source_node": "1", "target_node": 3});
    assert_eq!(read("bind", nodes), bind(Some(1), Some(3)));
}

#[test]
fn a_sequence_has_parameters_under_either_name_and_one_database() {
    let migrate = Action::Migrate { database: 1, source: None, target: None };
    let bind = Action::Bind { database: 2, source: None, target: None };
    let sequence = json!({"bdbId": "1", "actions": [
        {"type": "migrate", "params": {"cluster_index": "0"}},
        {"type": "bind", "parameters": {"bdb_id": "2"}},
    ]});
    let action = read("sequence_of_actions", sequence);
    assert_eq!(action.databases(), Some(vec![1, 2]));
    assert_eq!(action, Action::Sequence(vec![migrate, bind]));
}

#[test]
fn triggers_have_two_names() {
    let shuffle =
        |database| Action::SlotMigrate { database, effect: SlotEffect::Shuffle, source: None, target: None };
    for parameters in [
        json!({"bdb_id": 1, "effect": "slot-shuffle", "trigger": "migrate"}),
        json!({"bdb_id": 1, "effect": "slot-shuffle", "variant": "reshard"}),
        json!({"bdb_id": 1, "effect": "slot-shuffle", "variant": "default"}),
        json!({"bdb_id": 1, "effect": "slot-shuffle"}),
    ] {
        assert_eq!(read("slot_migrate", parameters), shuffle(1));
    }
}

#[test]
fn effects_are_made_of_the_actions() {
    let effect = |effect, trigger| {
        read("topology_change_standalone", json!({"bdb_id": 1, "effect": effect, "trigger": trigger}))
    };
    let migrate = Action::Migrate { database: 1, source: None, target: None };
    let failover = Action::Failover { database: 1, shards: Vec::new() };
    let bind = Action::Bind { database: 1, source: None, target: None };
    assert_eq!(effect("data_movement_conn_drop", "migrate"), Action::Sequence(vec![migrate, bind.clone()]));
    assert_eq!(effect("data_movement_no_conn_drop", "failover"), failover);
    assert_eq!(effect("conn_drop", "bind"), bind);
}

#[test]
fn every_effect_describes_a_database_that_can_be_created() {
    let slots = SlotEffect::ALL.map(|effect| ("slot-migrate", effect.name()));
    let topology = TOPOLOGY_EFFECTS.map(|(effect, _)| ("topology-change-standalone", effect));
    for (path, effect) in slots.into_iter().chain(topology) {
        let described = describe_effect(path, effect, 3).unwrap();
        assert_eq!(described["effect"], effect);
        let triggers = described["triggers"].as_array().unwrap();
        assert_eq!(triggers.is_empty(), effect == "dns_resolution_change");
        for trigger in triggers {
            let config = &trigger["requirements"][0]["dbconfig"];
            let created = read("create_database", json!({"cluster_index": 0, "database_config": config}));
            let Action::Create(created) = created else { panic!("{created:?}") };
            assert!(created.name.ends_with("-db-1"), "{}", created.name);
        }
    }
    assert!(describe_effect("slot-migrate", "conn_drop", 3).unwrap_err().contains("slot-shuffle"));
    assert!(describe_effect("topology-change-standalone", "add", 3).unwrap_err().contains("conn_drop"));
}

#[test]
fn databases_are_configured_as_harnesses_do_it() {
    let config = json!({"database_config": {
        "name": "db", "port": 12345, "memory_size": 1, "replication": true, "sharding": true, "shards_count": 3,
        "oss_cluster": false, "proxy_policy": "all-master-shards", "authentication_redis_pass": "s3cret",
        "module_list": [{"module_name": "search"}],
    }});
    let expected = DatabaseConfig {
        name: "db".into(),
        port: 12345,
        shards: 3,
        has_replicas: true,
        policy: Policy::MasterNodes,
        password: Some("s3cret".into()),
        is_tls: false,
    };
    assert_eq!(read("create_database", config), Action::Create(expected));
}

#[test]
fn the_rest_is_read_too() {
    assert_eq!(read("delete_database", json!({"delete_all": true})), Action::Delete(None));
    assert_eq!(read("delete_database", json!({"bdb_id": 1})), Action::Delete(Some(1)));
    assert_eq!(read("reset_cluster", json!({"clean_all_dbs": true})), Action::Delete(None));
    assert_eq!(read("reset_cluster", json!({"clean_maintenance_mode": true})), Action::Nothing);
    let off = json!({"config": {"client_maint_notifications": false}});
    assert_eq!(read("update_cluster_config", off), Action::SetNotifications(false));
    let outage = |database, node, delay: Option<u64>| Action::Outage {
        database,
        node,
        delay: delay.map(Duration::from_secs),
    };
    assert_eq!(read("network_failure", json!({"bdb_id": 1, "delay": "5"})), outage(Some(1), None, Some(5)));
    assert_eq!(read("proxy_failure", json!({"bdb_id": 1, "node_id": 2})), outage(Some(1), Some(2), None));
    assert_eq!(read("node_failure", json!({"node_id": 2, "delay": 1.0})), outage(None, Some(2), Some(1)));
    assert_eq!(read("cluster_failure", Value::Null), outage(None, None, None));
    let command = |text| read("execute_rladmin_command", json!({"bdb_id": "2", "rladmin_command": text}));
    assert_eq!(command("status"), Action::Status);
    assert_eq!(
        command("migrate node 1 all_shards target_node 3"),
        Action::Migrate { database: 2, source: Some(1), target: Some(3) }
    );
    assert_eq!(
        command("bind endpoint 1:1 policy single"),
        Action::BindPolicy { database: 1, policy: Policy::Single }
    );
    // No database has to exist for it.
    assert_eq!(
        read("execute_rladmin_command", json!({"bdb_id": 99, "rladmin_command": "status"})),
        Action::Status
    );
}

#[test]
fn mistakes_are_named() {
    for (kind, parameters, what) in [
        ("frobnicate", json!({}), "unknown action `frobnicate`"),
        ("bind", json!([]), "no object"),
        ("bind", json!({}), "bdb_id is missing"),
        ("bind", json!({"bdb_id": 3}), "bdb_id 3"),
        ("bind", json!({"bdb_id": "x"}), "no whole number"),
        ("bind", json!({"bdb_id": -1}), "no whole number"),
        ("bind", json!({"bdb_id": 1, "target_node": 4}), "no node:4"),
        ("slot_migrate", json!({"bdb_id": 1}), "effect is missing"),
        ("slot_migrate", json!({"bdb_id": 1, "effect": "all"}), "unknown effect `all`"),
        ("slot_migrate", json!({"bdb_id": 1, "effect": "add", "trigger": "x"}), "unknown trigger `x`"),
        (
            "topology_change_standalone",
            json!({"bdb_id": 1, "effect": "dns_resolution_change"}),
            "no name server",
        ),
        ("sequence_of_actions", json!({}), "actions is missing"),
        ("sequence_of_actions", json!({"actions": [{}]}), "action 1: type is missing"),
        ("sequence_of_actions", json!({"actions": [{"type": "sequence_of_actions"}]}), "in a sequence"),
        (
            "sequence_of_actions",
            json!({"bdb_id": 1, "actions": [{"type": "bind"}, {"type": "x"}]}),
            "action 2: unknown",
        ),
        ("create_database", json!({}), "database_config is missing"),
        ("create_database", json!({"database_config": {"name": "a b"}}), "blanks"),
        ("create_database", json!({"database_config": {"name": "a", "port": 99_999}}), "no port"),
        ("create_database", json!({"database_config": {"name": "a", "shards_count": 0}}), "shards_count"),
        ("create_database", json!({"database_config": {"name": "a", "oss_cluster": true}}), "CLUSTER"),
        ("create_database", json!({"database_config": {"name": "a", "tls": true}}), "--tls-cert-file"),
        ("create_database", json!({"database_config": {"name": "a", "proxy_policy": "x"}}), "proxy_policy"),
        ("delete_database", json!({"bdb_id": 9}), "bdb_id 9"),
        ("execute_rladmin_command", json!({"bdb_id": 1}), "rladmin_command is missing"),
        (
            "execute_rladmin_command",
            json!({"bdb_id": 1, "rladmin_command": "bind endpoint 9:1 policy single"}),
            "db:9",
        ),
        ("execute_rladmin_command", json!({"bdb_id": 1, "rladmin_command": "reset"}), "not among"),
        ("update_cluster_config", json!({"config": {"other": 1}}), "config.other"),
        ("update_cluster_config", json!({"config": {}}), "client_maint_notifications"),
        ("network_failure", json!({"bdb_id": 1, "delay": -1}), "delay"),
        ("node_failure", json!({}), "node_id is missing"),
        ("reshard", json!({"bdb_id": 1}), "means nothing here"),
        ("shard_failure", json!({"bdb_id": 1}), "means nothing here"),
        ("node_remove", json!({}), "means nothing here"),
        ("maintenance_mode", json!({}), "means nothing here"),
        ("execute_rlutil_command", json!({}), "means nothing here"),
    ] {
        let error = parse(kind, &parameters, &Two).unwrap_err();
        assert!(error.contains(what) && !error.contains('\n'), "{kind} {parameters}: {error}");
        assert!(!error.contains("success"), "{error}");
    }
}
