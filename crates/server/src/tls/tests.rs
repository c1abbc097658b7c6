//! What the files must hold, and what is said when they do not.
use super::*;
use std::path::Path;

/// A certificate with its key, in files of their own.
fn identity(dir: &Path, name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let (cert, key) = (dir.join(format!("{name}.crt")), dir.join(format!("{name}.key")));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (cert.to_str().unwrap().to_owned(), key.to_str().unwrap().to_owned())
}

fn config(cert: &str, key: &str) -> Config {
    Config {
        tls_port: 1,
        tls_cert_file: Some(cert.into()),
        tls_key_file: Some(key.into()),
        tls_auth_clients: TlsAuthClients::No,
        ..Config::default()
    }
}

fn error(config: &Config) -> String {
    let text = server_config(config).unwrap_err().to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn each_error_names_the_parameter_and_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let ((cert, key), (_, other_key)) = (identity(dir.path(), "one"), identity(dir.path(), "two"));
    server_config(&config(&cert, &key)).unwrap();

    let text = error(&config("/nowhere.crt", &key));
    assert!(text.starts_with("tls-cert-file '/nowhere.crt': cannot read the file: No such file"), "{text}");
    let text = error(&config(&key, &key));
    assert!(text.contains(&key) && text.contains("has no certificate"), "{text}");
    let text = error(&config(&cert, &cert));
    assert!(text.contains(&cert) && text.contains("no private key"), "{text}");
    let text = error(&config(&cert, &other_key));
    assert!(
        text.contains(&cert) && text.contains(&other_key) && text.contains("do not go together"),
        "{text}"
    );

    let broken = dir.path().join("broken.crt");
    std::fs::write(&broken, "-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n").unwrap();
    let text = error(&config(broken.to_str().unwrap(), &key));
    assert!(text.contains("broken.crt") && text.contains("not well-formed PEM"), "{text}");

    let mut mutual = config(&cert, &key);
    mutual.tls_auth_clients = TlsAuthClients::Yes;
    let text = error(&mutual);
    assert!(text.contains("tls-ca-cert-file") && text.contains("tls-auth-clients no"), "{text}");
    mutual.tls_ca_cert_file = Some(cert);
    server_config(&mutual).unwrap();
}

#[test]
fn a_reload_that_fails_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = identity(dir.path(), "one");
    let tls = Tls::default();
    tls.reload(&config(&cert, &key)).unwrap();
    let before = tls.0.load_full().unwrap();
    tls.reload(&config(&cert, "/nowhere.key")).unwrap_err();
    assert!(Arc::ptr_eq(&before, &tls.0.load_full().unwrap()));
    tls.reload(&config(&cert, &key)).unwrap();
    assert!(!Arc::ptr_eq(&before, &tls.0.load_full().unwrap()));
}
