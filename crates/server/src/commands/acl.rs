//! `ACL`, as far as it goes with the one user `default` that may do everything.

use super::config::help;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, no_keys};
use towline_spec::AclCategories;
use towline_store::number::parse_i64;

fn who_am_i(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    ctx.out.bulk(b"default");
    Ok(())
}

fn users(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    ctx.out.array(1);
    ctx.out.bulk(b"default");
    Ok(())
}

fn list(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let password = if ctx.server.config().requirepass.is_empty() { "nopass" } else { "resetpass" };
    ctx.out.array(1);
    ctx.out.bulk(format!("user default on {password} ~* &* +@all").as_bytes());
    Ok(())
}

/// `ACL CAT [category]`
fn cat(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len() > 3 {
        return Err(CommandError::Arity("acl|cat"));
    }
    let Some(name) = args.at(2) else {
        ctx.out.array(AclCategories::NAMES.len());
        AclCategories::NAMES.iter().for_each(|(_, name)| ctx.out.bulk(name.as_bytes()));
        return Ok(());
    };
    let unknown = || CommandError::quoting("ERR Unknown category '", name, "'");
    let category = AclCategories::by_name(name).ok_or_else(unknown)?;
    let commands: Vec<_> = towline_spec::rows()
        .iter()
        .filter(|command| command.is_implemented() && command.acl.contains(category))
        .collect();
    ctx.out.array(commands.len());
    commands.iter().for_each(|command| ctx.out.bulk(command.name.as_bytes()));
    Ok(())
}

/// `ACL GETUSER name`. The password itself is not shown, nor a hash of it: `CONFIG GET requirepass` has it.
fn get_user(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.get(2) != b"default" {
        ctx.out.null_array();
        return Ok(());
    }
    let has_password = !ctx.server.config().requirepass.is_empty();
    ctx.out.map(6);
    ctx.out.bulk(b"flags");
    ctx.out.set(if has_password { 1 } else { 2 });
    ctx.out.simple("on");
    if !has_password {
        ctx.out.simple("nopass");
    }
    ctx.out.bulk(b"passwords");
    ctx.out.array(0);
    for (name, text) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        ctx.out.bulk(name.as_bytes());
        ctx.out.bulk(text.as_bytes());
    }
    ctx.out.bulk(b"selectors");
    ctx.out.array(0);
    Ok(())
}

/// Bits of a password, by default and at most.
const PASSWORD_BITS: usize = 256;
const PASSWORD_BITS_MAX: usize = 4096;

/// `ACL GENPASS [bits]`
fn generate_password(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len() > 3 {
        return Err(CommandError::Arity("acl|genpass"));
    }
    let bits = match args.at(2) {
        None => PASSWORD_BITS,
        Some(text) => {
            let bits = parse_i64(text).ok_or(CommandError::NotInteger)?;
            let bits = usize::try_from(bits).ok().filter(|bits| (1..=PASSWORD_BITS_MAX).contains(bits));
            bits.ok_or(CommandError::Text(
                "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to \
                 4096",
            ))?
        }
    };
    let hex = random_hex(bits.div_ceil(4))?;
    ctx.out.bulk(hex.as_bytes());
    Ok(())
}

/// Hex digits that nobody can guess.
pub(super) fn random_hex(digits: usize) -> Result<String, CommandError> {
    let mut bytes = vec![0u8; digits.div_ceil(2)];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
            .map_err(|_| CommandError::Text("ERR the system gives no randomness"))?;
    }
    let mut hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.truncate(digits);
    Ok(hex)
}

fn help_lines(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    help(
        ctx,
        "ACL",
        &[
            "CAT [<category>]",
            "    List the categories, or the commands of one.",
            "GENPASS [<bits>]",
            "    Make a password of hex digits (256 bits by default).",
            "GETUSER <name>",
            "    Describe a user.",
            "LIST",
            "    List the users with their rules.",
            "USERS",
            "    List the names of the users.",
            "WHOAMI",
            "    Name the user of this connection.",
        ],
    )
}

pub(super) const ROWS: &[Row] = &[
    no_keys("acl|cat", cat),
    no_keys("acl|genpass", generate_password),
    no_keys("acl|getuser", get_user),
    no_keys("acl|help", help_lines),
    no_keys("acl|list", list),
    no_keys("acl|users", users),
    no_keys("acl|whoami", who_am_i),
];

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::testing::Server;

    #[test]
    fn there_is_one_user() {
        let mut server = Server::new();
        assert_eq!(server.line("ACL WHOAMI"), "$7 default");
        assert_eq!(server.line("ACL USERS"), "*1 $7 default");
        assert_eq!(server.line("ACL LIST"), "*1 $34 user default on nopass ~* &* +@all");
        assert_eq!(server.line("ACL GETUSER foo"), "*-1");
        let mut server = Server::new().resp3();
        assert_eq!(
            server.line("ACL GETUSER default"),
            "%6 $5 flags ~2 +on +nopass $9 passwords *0 $8 commands $5 +@all $4 keys $2 ~* $8 channels $2 &* $9 selectors *0"
        );
        let mut server = Server::with(Config { workers: 1, requirepass: b"x".to_vec(), ..Config::default() });
        assert!(!server.line("ACL GETUSER default").contains("nopass"));
    }

    #[test]
    fn categories_list_their_commands() {
        let mut server = Server::new();
        assert!(server.line("ACL CAT").starts_with("*21 $8 keyspace $4 read"));
        assert!(server.line("ACL CAT geo").contains("$6 geoadd"));
        assert_eq!(server.line("ACL CAT foo"), "-ERR Unknown category 'foo'");
    }

    #[test]
    fn passwords_have_the_wanted_length() {
        let mut server = Server::new();
        assert!(server.line("ACL GENPASS").starts_with("$64 "));
        assert!(server.line("ACL GENPASS 5").starts_with("$2 "));
        assert_ne!(server.line("ACL GENPASS"), server.line("ACL GENPASS"));
        for bits in ["0", "5000", "-1"] {
            assert!(server.run(&["ACL", "GENPASS", bits]).starts_with("-ERR ACL GENPASS argument must be"));
        }
        assert_eq!(server.line("ACL GENPASS x"), "-ERR value is not an integer or out of range");
    }
}
