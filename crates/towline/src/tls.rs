//! TLS of the tools: flags, and what they mean to rustls.
//!
//! Owns: the flags of redis-cli for TLS and the client configuration that follows from them. Does **not** own sockets.
//!
//! The cryptography is aws-lc-rs, given explicitly; the process has no default provider.

use std::path::PathBuf;

#[cfg(feature = "tls")]
pub(crate) use config::Connector;

/// How to speak TLS; the flags are those of redis-cli.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct TlsArgs {
    /// Speak TLS.
    #[arg(long = "tls", global = true)]
    pub(crate) is_tls: bool,
    /// PEM file with the authorities that may sign the server's certificate; the system's without it.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Directory of such files.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cacertdir: Option<PathBuf>,
    /// PEM file with a certificate to show to the server; goes with --key.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file with the key of --cert.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Do not check the server's certificate: anybody may answer in its place.
    #[arg(long = "insecure", global = true)]
    pub(crate) is_insecure: bool,
    /// Name that the server's certificate must have, and that it is asked for; the host's without it.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) sni: Option<String>,
}

/// What is wrong with the flags; the caller's to mend.
#[cfg_attr(
    not(feature = "tls"),
    expect(dead_code, reason = "without TLS only one thing is wrong with flags")
)]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum TlsError {
    /// This binary was built without the feature.
    #[cfg(not(feature = "tls"))]
    #[error("this binary has no TLS; build it with the feature 'tls'")]
    NotBuilt,
    /// Only one of `--cert` and `--key`.
    #[error("--cert and --key go together")]
    HalfIdentity,
    /// A file cannot be read, or has not what is needed.
    #[error("{flag} '{path}': {reason}")]
    File {
        /// The flag, or what stands for it.
        flag: &'static str,
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// There is no list of authorities where systems have it.
    #[error("this system has no list of authorities; name one with --cacert FILE, or use --insecure")]
    NoAuthorities,
    /// Certificate and key do not fit.
    #[error("--cert and --key cannot be used: {0}")]
    Identity(String),
    /// Not a host name or address.
    #[error("'{0}' is no name that a certificate can have; give one with --sni")]
    Name(String),
}

#[cfg(feature = "tls")]
mod config {
    use super::{TlsArgs, TlsError};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use tokio_rustls::rustls::client::WebPkiServerVerifier;
    use tokio_rustls::rustls::client::danger::{
        HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
    };
    use tokio_rustls::rustls::crypto::{
        CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
    };
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem};
    use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

    /// Where systems keep the authorities that they trust.
    const BUNDLES: [&str; 3] =
        ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

    /// Flags, or what stands for one, in errors.
    const CACERT: &str = "--cacert";
    const CACERTDIR: &str = "--cacertdir";
    const SYSTEM: &str = "the system's authorities";

    /// All that a connection with TLS needs besides its socket.
    #[derive(Debug, Clone)]
    pub(crate) struct Connector {
        /// What rustls is to do.
        pub(crate) config: Arc<ClientConfig>,
        sni: Option<ServerName<'static>>,
    }

    impl Connector {
        /// What `args` ask for; none without `--tls`.
        ///
        /// # Errors
        /// [`TlsError`].
        pub(crate) fn new(args: &TlsArgs) -> Result<Option<Self>, TlsError> {
            if !args.is_tls {
                return Ok(None);
            }
            let provider = Arc::new(aws_lc_rs::default_provider());
            let verifier: Arc<dyn ServerCertVerifier> = if args.is_insecure {
                Arc::new(Anybody(Arc::clone(&provider)))
            } else {
                authorities(args, &provider)?
            };
            let builder = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .expect("invariant: the provider has suites for both versions")
                .dangerous()
                .with_custom_certificate_verifier(verifier);
            let config = match (&args.cert, &args.key) {
                (None, None) => builder.with_no_client_auth(),
                (Some(cert), Some(key)) => {
                    let certs = certificates("--cert", cert)?;
                    let key =
                        PrivateKeyDer::from_pem_file(key).map_err(|error| file("--key", key, &error))?;
                    let config = builder.with_client_auth_cert(certs, key);
                    config.map_err(|error| TlsError::Identity(error.to_string()))?
                }
                _ => return Err(TlsError::HalfIdentity),
            };
            let sni = args.sni.as_deref().map(name).transpose()?;
            Ok(Some(Self { config: Arc::new(config), sni }))
        }

        /// Whom the certificate of a server at `host` must name.
        ///
        /// # Errors
        /// [`TlsError::Name`].
        pub(crate) fn name(&self, host: &str) -> Result<ServerName<'static>, TlsError> {
            self.sni.clone().map_or_else(|| name(host), Ok)
        }
    }

    fn name(text: &str) -> Result<ServerName<'static>, TlsError> {
        ServerName::try_from(text.to_owned()).map_err(|_| TlsError::Name(text.to_owned()))
    }

    fn authorities(
        args: &TlsArgs,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
        let mut roots = RootCertStore::empty();
        let mut trust = |flag, path: &Path| {
            // Some systems have certificates that nobody can parse any more.
            certificates(flag, path).map(|found| _ = roots.add_parsable_certificates(found))
        };
        let flag = match (&args.cacert, &args.cacertdir) {
            (None, None) => {
                let mut bundles = BUNDLES.iter().map(Path::new);
                trust(SYSTEM, bundles.find(|path| path.exists()).ok_or(TlsError::NoAuthorities)?)?;
                SYSTEM
            }
            (Some(path), _) => {
                trust(CACERT, path)?;
                CACERT
            }
            (None, Some(_)) => CACERTDIR,
        };
        if let Some(dir) = &args.cacertdir {
            for path in files_of(dir)? {
                // Other files may be there, as keys are.
                let _ = trust(CACERTDIR, &path);
            }
        }
        let path = args.cacert.as_deref().or(args.cacertdir.as_deref()).map_or_else(String::new, shown);
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
        let reason = || "has no certificate that can be used".to_owned();
        verifier.map_err(|_| TlsError::File { flag, path, reason: reason() })
    }

    /// The files of a directory.
    fn files_of(dir: &Path) -> Result<Vec<PathBuf>, TlsError> {
        let failed = |error: std::io::Error| TlsError::File {
            flag: CACERTDIR,
            path: shown(dir),
            reason: error.to_string(),
        };
        let entries = std::fs::read_dir(dir).map_err(failed)?;
        entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed)).collect()
    }

    fn certificates(flag: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let certs = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        match certs {
            Ok(certs) if certs.is_empty() => Err(file(flag, path, &pem::Error::NoItemsFound)),
            Ok(certs) => Ok(certs),
            Err(error) => Err(file(flag, path, &error)),
        }
    }

    fn shown(path: &Path) -> String {
        path.display().to_string()
    }

    fn file(flag: &'static str, path: &Path, error: &pem::Error) -> TlsError {
        let reason = match error {
            pem::Error::Io(error) => error.to_string(),
            pem::Error::NoItemsFound => {
                if flag == "--key" {
                    "has no private key in PEM form that is not encrypted".to_owned()
                } else {
                    "has no certificate in PEM form".to_owned()
                }
            }
            error => format!("is not well-formed PEM: {error}"),
        };
        TlsError::File { flag, path: shown(path), reason }
    }

    /// `--insecure`: any certificate will do, as long as its key signed the handshake.
    #[derive(Debug)]
    struct Anybody(Arc<CryptoProvider>);

    impl ServerCertVerifier for Anybody {
        fn verify_server_cert(
            &self,
            _end_entity: &CertificateDer<'_>,
            _intermediates: &[CertificateDer<'_>],
            _server_name: &ServerName<'_>,
            _ocsp_response: &[u8],
            _now: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }
}

/// Without the feature there is nothing to connect with.
#[cfg(not(feature = "tls"))]
#[derive(Debug, Clone)]
pub(crate) enum Connector {}

#[cfg(not(feature = "tls"))]
impl Connector {
    /// None without `--tls`.
    ///
    /// # Errors
    /// [`TlsError::NotBuilt`] with it.
    pub(crate) fn new(args: &TlsArgs) -> Result<Option<Self>, TlsError> {
        if args.is_tls { Err(TlsError::NotBuilt) } else { Ok(None) }
    }
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use super::*;

    #[test]
    fn flags_that_cannot_work_are_refused_with_the_flag_and_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (cert, key) = (dir.path().join("a.crt"), dir.path().join("a.key"));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let good = TlsArgs { is_tls: true, cacert: Some(cert.clone()), ..TlsArgs::default() };
        let error = |args: TlsArgs| Connector::new(&args).unwrap_err().to_string();

        assert!(Connector::new(&TlsArgs::default()).unwrap().is_none());
        let connector = Connector::new(&good).unwrap().unwrap();
        assert!(connector.name("::1").is_ok());
        assert!(connector.name("not a name").unwrap_err().to_string().contains("--sni"));
        let named = TlsArgs { sni: Some("db1".into()), ..good.clone() };
        assert!(Connector::new(&named).unwrap().unwrap().name("not a name").is_ok());
        let of_dir = TlsArgs { cacert: None, cacertdir: Some(dir.path().to_owned()), ..good.clone() };
        assert!(Connector::new(&of_dir).unwrap().is_some());
        let empty = tempfile::tempdir().unwrap();
        let of_empty = TlsArgs { cacert: None, cacertdir: Some(empty.path().to_owned()), ..good.clone() };
        assert!(error(of_empty).contains("--cacertdir"));
        assert!(error(TlsArgs { cert: Some(cert.clone()), ..good.clone() }).contains("--key go together"));
        let text = error(TlsArgs { cacert: Some(key.clone()), ..good.clone() });
        assert!(
            text.contains("--cacert") && text.contains("a.key") && text.contains("no certificate"),
            "{text}"
        );
        let text = error(TlsArgs { cert: Some(cert.clone()), key: Some(cert.clone()), ..good.clone() });
        assert!(text.contains("--key") && text.contains("no private key"), "{text}");
        let text = error(TlsArgs { cacert: Some("/nowhere".into()), ..good.clone() });
        assert!(text.contains("/nowhere") && text.contains("No such file"), "{text}");
        let both = TlsArgs { cert: Some(cert), key: Some(key), is_insecure: true, ..good };
        assert!(Connector::new(&both).unwrap().is_some());
    }
}
