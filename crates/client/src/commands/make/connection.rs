//! Commands of the group `connection`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};

/// Authenticates this connection.
///
/// `AUTH [username] password`: O(1), since 1.0.0.
pub fn auth(password: impl ToArgs) -> Cmd {
    cmd("AUTH").arg(password)
}

/// Authenticates this connection. With options.
///
/// `AUTH [username] password`: O(1), since 1.0.0.
pub fn auth_with(username: impl ToArgs, password: impl ToArgs) -> Cmd {
    cmd("AUTH").arg(username).arg(password)
}

/// Returns its argument.
///
/// `ECHO message`: O(1), since 1.0.0.
pub fn echo(message: impl ToArgs) -> Cmd {
    cmd("ECHO").arg(message)
}

/// Starts a session: protocol version, login, name.
///
/// `HELLO [protover [AUTH username password] [SETNAME clientname]]`: O(1), since 6.0.0.
pub fn hello() -> Cmd {
    cmd("HELLO")
}

/// Starts a session: protocol version, login, name. With options.
///
/// `HELLO [protover [AUTH username password] [SETNAME clientname]]`: O(1), since 6.0.0.
pub fn hello_with(options: impl ToArgs) -> Cmd {
    cmd("HELLO").arg(options)
}

/// Answers PONG, or its argument.
///
/// `PING [message]`: O(1), since 1.0.0.
pub fn ping() -> Cmd {
    cmd("PING")
}

/// Answers PONG, or its argument. With options.
///
/// `PING [message]`: O(1), since 1.0.0.
pub fn ping_with(message: impl ToArgs) -> Cmd {
    cmd("PING").arg(message)
}

/// Closes this connection.
///
/// `QUIT`: O(1), since 1.0.0.
///
/// Old since 7.2.0: better closing the connection.
pub fn quit() -> Cmd {
    cmd("QUIT")
}

/// Selects the database of this connection.
///
/// `SELECT index`: O(1), since 1.0.0.
pub fn select(index: impl ToArgs) -> Cmd {
    cmd("SELECT").arg(index)
}

/// Says whether the next command's keys are tracked.
///
/// `CLIENT CACHING <YES | NO>`: O(1), since 6.0.0.
pub fn client_caching(enabled: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("CACHING").arg(enabled)
}

/// Tells the server what this client can handle.
///
/// `CLIENT CAPA capability [capability ...]`: O(1), since 8.0.0.
pub fn client_capa(capabilities: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("CAPA").arg(capabilities)
}

/// Returns this connection's name.
///
/// `CLIENT GETNAME`: O(1), since 2.6.9.
pub fn client_getname() -> Cmd {
    cmd("CLIENT").arg("GETNAME")
}

/// Tells which connection receives this one's invalidations.
///
/// `CLIENT GETREDIR`: O(1), since 6.0.0.
pub fn client_getredir() -> Cmd {
    cmd("CLIENT").arg("GETREDIR")
}

/// Shows what the subcommands do.
///
/// `CLIENT HELP`: O(1), since 5.0.0.
pub fn client_help() -> Cmd {
    cmd("CLIENT").arg("HELP")
}

/// Returns this connection's number.
///
/// `CLIENT ID`: O(1), since 5.0.0.
pub fn client_id() -> Cmd {
    cmd("CLIENT").arg("ID")
}

/// Describes this connection.
///
/// `CLIENT INFO`: O(1), since 6.2.0.
pub fn client_info() -> Cmd {
    cmd("CLIENT").arg("INFO")
}

/// Closes the connections that match the filters.
///
/// `CLIENT KILL <ip:port | ID client-id | TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB> | USER username
/// | ADDR ip:port | LADDR ip:port | SKIPME <YES | NO> | MAXAGE maxage ...>`: O(N), N is the number of
/// connections, since 2.4.0.
pub fn client_kill(choices: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("KILL").arg(choices)
}

/// Describes open connections.
///
/// `CLIENT LIST [TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]`: O(N), N is the
/// number of connections, since 2.4.0.
pub fn client_list() -> Cmd {
    cmd("CLIENT").arg("LIST")
}

/// Describes open connections. With options.
///
/// `CLIENT LIST [TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]`: O(N), N is the
/// number of connections, since 2.4.0.
pub fn client_list_with(options: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("LIST").arg(options)
}

/// Turns notices about planned moves on or off for this connection.
///
/// `CLIENT MAINT_NOTIFICATIONS <ON [MOVING-ENDPOINT-TYPE <INTERNAL-IP | INTERNAL-FQDN | EXTERNAL-IP |
/// EXTERNAL-FQDN | NONE>] | OFF>`: O(1), since 0.1.0.
pub fn client_maint_notifications(choice: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("MAINT_NOTIFICATIONS").arg(choice)
}

/// Exempts this connection from eviction, or ends that.
///
/// `CLIENT NO-EVICT <ON | OFF>`: O(1), since 7.0.0.
pub fn client_no_evict(enabled: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("NO-EVICT").arg(enabled)
}

/// Says whether this connection's reads count as use of a key.
///
/// `CLIENT NO-TOUCH <ON | OFF>`: O(1), since 7.2.0.
pub fn client_no_touch(enabled: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("NO-TOUCH").arg(enabled)
}

/// Holds back all commands, or the writing ones, for a time.
///
/// `CLIENT PAUSE timeout [WRITE | ALL]`: O(1), since 3.0.0.
pub fn client_pause(timeout: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("PAUSE").arg(timeout)
}

/// Holds back all commands, or the writing ones, for a time. With options.
///
/// `CLIENT PAUSE timeout [WRITE | ALL]`: O(1), since 3.0.0.
pub fn client_pause_with(timeout: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("PAUSE").arg(timeout).arg(options)
}

/// Records the name or version of the client library.
///
/// `CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>`: O(1), since 7.2.0.
pub fn client_setinfo(choice: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("SETINFO").arg(choice)
}

/// Names this connection.
///
/// `CLIENT SETNAME connection-name`: O(1), since 2.6.9.
pub fn client_setname(connection_name: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("SETNAME").arg(connection_name)
}

/// Turns invalidation messages for client-side caching on or off.
///
/// `CLIENT TRACKING <ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN]
/// [OPTOUT] [NOLOOP]`: O(1), since 6.0.0.
pub fn client_tracking(enabled: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("TRACKING").arg(enabled)
}

/// Turns invalidation messages for client-side caching on or off. With options.
///
/// `CLIENT TRACKING <ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN]
/// [OPTOUT] [NOLOOP]`: O(1), since 6.0.0.
pub fn client_tracking_with(enabled: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("TRACKING").arg(enabled).arg(options)
}

/// Shows how this connection tracks keys.
///
/// `CLIENT TRACKINGINFO`: O(1), since 6.2.0.
pub fn client_trackinginfo() -> Cmd {
    cmd("CLIENT").arg("TRACKINGINFO")
}

/// Ends another connection's wait.
///
/// `CLIENT UNBLOCK client-id [TIMEOUT | ERROR]`: O(1), since 5.0.0.
pub fn client_unblock(client_id: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("UNBLOCK").arg(client_id)
}

/// Ends another connection's wait. With options.
///
/// `CLIENT UNBLOCK client-id [TIMEOUT | ERROR]`: O(1), since 5.0.0.
pub fn client_unblock_with(client_id: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("CLIENT").arg("UNBLOCK").arg(client_id).arg(options)
}

/// Ends a pause of commands.
///
/// `CLIENT UNPAUSE`: O(N), N is the number of connections, since 6.2.0.
pub fn client_unpause() -> Cmd {
    cmd("CLIENT").arg("UNPAUSE")
}
