//! Connections.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("auth", -2, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY)
        .args("[username] password")
        .doc("1.0.0", "Authenticates this connection.")
        .effect(Connection),
    cmd("client", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("2.4.0", "Container for connection commands.")
        .subcommands(&[
            cmd("client|caching", 3, NOSCRIPT | LOADING | STALE)
                .args("<YES | NO>")
                .doc("6.0.0", "Says whether the next command's keys are tracked.")
                .effect(Connection),
            cmd("client|capa", -3, NOSCRIPT | LOADING | STALE | ALLOW_BUSY)
                .args("capability [capability ...]")
                .doc("8.0.0", "Tells the server what this client can handle.")
                .effect(Connection)
                .planned("cluster"),
            cmd("client|getname", 2, NOSCRIPT | LOADING | STALE)
                .doc("2.6.9", "Returns this connection's name.")
                .effect(Connection),
            cmd("client|getredir", 2, NOSCRIPT | LOADING | STALE)
                .doc("6.0.0", "Tells which connection receives this one's invalidations.")
                .effect(Connection),
            cmd("client|help", 2, LOADING | STALE)
                .doc("5.0.0", "Shows what the subcommands do.")
                .effect(ReadOnly),
            cmd("client|id", 2, NOSCRIPT | LOADING | STALE)
                .doc("5.0.0", "Returns this connection's number.")
                .effect(Connection),
            cmd("client|info", 2, NOSCRIPT | LOADING | STALE)
                .doc("6.2.0", "Describes this connection.")
                .effect(Connection)
                .tips(&["nondeterministic_output"]),
            cmd("client|kill", -3, ADMIN | NOSCRIPT | LOADING | STALE)
                .args(
                    "<ip:port | ID client-id | TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB> \
                     | USER username | ADDR ip:port | LADDR ip:port | SKIPME <YES | NO> | MAXAGE maxage ...>",
                )
                .doc("2.4.0", "Closes the connections that match the filters.")
                .cost("O(N), N is the number of connections")
                .effect(Admin),
            cmd("client|list", -2, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]")
                .doc("2.4.0", "Describes open connections.")
                .cost("O(N), N is the number of connections")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output"]),
            cmd("client|maint_notifications", -3, NOSCRIPT | LOADING | STALE)
                .args(
                    "<ON [MOVING-ENDPOINT-TYPE <INTERNAL-IP | INTERNAL-FQDN | EXTERNAL-IP | EXTERNAL-FQDN | NONE>] \
                     | OFF>",
                )
                .doc("0.1.0", "Turns notices about planned moves on or off for this connection.")
                .effect(Connection),
            cmd("client|no-evict", 3, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("<ON | OFF>")
                .doc("7.0.0", "Exempts this connection from eviction, or ends that.")
                .effect(Connection),
            cmd("client|no-touch", 3, NOSCRIPT | LOADING | STALE)
                .args("<ON | OFF>")
                .doc("7.2.0", "Says whether this connection's reads count as use of a key.")
                .effect(Connection),
            cmd("client|pause", -3, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("timeout [WRITE | ALL]")
                .doc("3.0.0", "Holds back all commands, or the writing ones, for a time.")
                .effect(Admin),
            cmd("client|reply", 3, NOSCRIPT | LOADING | STALE)
                .args("<ON | OFF | SKIP>")
                .doc("3.2.0", "Says whether this connection gets replies.")
                .effect(Connection),
            cmd("client|setinfo", 4, NOSCRIPT | LOADING | STALE)
                .args("<LIB-NAME libname | LIB-VER libver>")
                .doc("7.2.0", "Records the name or version of the client library.")
                .effect(Connection)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
            cmd("client|setname", 3, NOSCRIPT | LOADING | STALE)
                .args("connection-name")
                .doc("2.6.9", "Names this connection.")
                .effect(Connection)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
            cmd("client|tracking", -3, NOSCRIPT | LOADING | STALE)
                .args(
                    "<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] \
                     [OPTOUT] [NOLOOP]",
                )
                .doc("6.0.0", "Turns invalidation messages for client-side caching on or off.")
                .effect(Connection),
            cmd("client|trackinginfo", 2, NOSCRIPT | LOADING | STALE)
                .doc("6.2.0", "Shows how this connection tracks keys.")
                .effect(Connection),
            cmd("client|unblock", -3, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("client-id [TIMEOUT | ERROR]")
                .doc("5.0.0", "Ends another connection's wait.")
                .effect(Admin),
            cmd("client|unpause", 2, ADMIN | NOSCRIPT | LOADING | STALE)
                .doc("6.2.0", "Ends a pause of commands.")
                .cost("O(N), N is the number of connections")
                .effect(Admin),
        ]),
    cmd("echo", 2, LOADING | STALE | FAST)
        .args("message")
        .doc("1.0.0", "Returns its argument.")
        .effect(ReadOnly),
    cmd("hello", -1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY)
        .args("[protover [AUTH username password] [SETNAME clientname]]")
        .doc("6.0.0", "Starts a session: protocol version, login, name.")
        .effect(Connection),
    cmd("ping", -1, FAST)
        .args("[message]")
        .doc("1.0.0", "Answers PONG, or its argument.")
        .effect(ReadOnly)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    cmd("quit", -1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY)
        .doc("1.0.0", "Closes this connection.")
        .effect(Connection)
        .deprecated("7.2.0", "closing the connection"),
    cmd("reset", 1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY)
        .doc("6.2.0", "Returns this connection to its initial state.")
        .effect(Connection),
    cmd("select", 2, LOADING | STALE | FAST)
        .args("index")
        .doc("1.0.0", "Selects the database of this connection.")
        .effect(Connection),
];
