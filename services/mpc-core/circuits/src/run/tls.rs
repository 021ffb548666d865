//! TLS 1.3 between two parties that know each other's certificates: no name, date or authority is asked.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, ClientConnection, ServerConfig};

use super::failure::Failure;
use super::handshake::Handshake;
use super::listener::listen;
use super::pinned::Pinned;
use super::secured::{PROTOCOL, Secured, tls};

/// Time between two attempts to reach a peer that does not listen yet.
const AGAIN: Duration = Duration::from_millis(200);

/// Where the peer is.
#[derive(Clone, Debug)]
pub enum Address {
    /// This party waits there.
    Listen(String),
    /// The peer waits there.
    Connect(String),
}

/// A party's own files and its peer's.
#[derive(Clone, Debug)]
pub struct Files {
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub peer: PathBuf,
}

/// Both configurations of this party.
pub struct Identity {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Identity {
    /// Reads the files.
    pub fn load(files: &Files) -> Result<Identity, Failure> {
        let own = certificate(&files.certificate)?;
        let peer = certificate(&files.peer)?;
        if own == peer {
            return Err(Failure::Own(
                "--certificate and --peer are the same: --peer is the certificate that the peer made".into(),
            ));
        }
        let mode =
            std::fs::metadata(&files.key).map_err(|e| unreadable(&files.key, &e))?.permissions().mode();
        if mode & 0o077 != 0 {
            let key = files.key.display();
            return Err(Failure::Own(format!("others may read the key {key}: do chmod 600 {key}")));
        }
        let key = || PrivateKeyDer::from_pem_file(&files.key).map_err(|e| unreadable(&files.key, &e));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let pinned = Arc::new(Pinned { peer, provider: provider.clone() });
        let unfit = |e: rustls::Error| {
            let (key, certificate) = (files.key.display(), files.certificate.display());
            Failure::Own(format!("the key {key} cannot be used with the certificate {certificate}: {e}"))
        };
        let versions = [&rustls::version::TLS13];
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(unfit)?
            .with_client_cert_verifier(pinned.clone())
            .with_single_cert(vec![own.clone()], key()?)
            .map_err(unfit)?;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(unfit)?
            .dangerous()
            .with_custom_certificate_verifier(pinned)
            .with_client_auth_cert(vec![own], key()?)
            .map_err(unfit)?;
        // Each run proves both certificates anew.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        client.alpn_protocols = server.alpn_protocols.clone();
        Ok(Identity { server: Arc::new(server), client: Arc::new(client) })
    }

    /// Meets the peer, within `wait`; later it may be silent for so long. `say` prints what the operator should know
    /// meanwhile.
    pub fn meet(&self, address: &Address, wait: Duration, say: &dyn Fn(&str)) -> Result<Secured, Failure> {
        let until = Instant::now() + wait;
        match address {
            Address::Listen(place) => listen(&self.server, place, wait, until, say),
            Address::Connect(place) => self.connect(place, wait, until),
        }
    }

    fn connect(&self, place: &str, wait: Duration, until: Instant) -> Result<Secured, Failure> {
        let unknown = |e: io::Error| Failure::Own(format!("--connect {place} is no address: {e}"));
        let addresses: Vec<SocketAddr> = place.to_socket_addrs().map_err(unknown)?.collect();
        loop {
            let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
            for address in &addresses {
                let left = until.saturating_duration_since(Instant::now());
                match TcpStream::connect_timeout(address, left.max(AGAIN)) {
                    Ok(stream) => {
                        let name = ServerName::try_from("circuit").map_err(|e| e.to_string())?;
                        let client = ClientConnection::new(self.client.clone(), name).map_err(tls)?;
                        return Ok(Handshake::new(client.into(), stream, wait)?.finish()?);
                    }
                    Err(e) => last = e,
                }
            }
            if until.saturating_duration_since(Instant::now()).is_zero() {
                return Err(Failure::Gone(format!(
                    "no peer listens on {place} ({last}): start its side with --listen, or give a longer --wait"
                )));
            }
            // The peer may start later than this party.
            std::thread::sleep(AGAIN);
        }
    }
}

fn unreadable(path: &Path, e: &dyn std::fmt::Display) -> Failure {
    Failure::Own(format!("cannot read {}: {e}", path.display()))
}

/// The one certificate in a file.
fn certificate(path: &Path) -> Result<CertificateDer<'static>, Failure> {
    let all: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<_, _>>)
        .map_err(|e| unreadable(path, &e))?;
    match <[CertificateDer<'static>; 1]>::try_from(all) {
        Ok([one]) => Ok(one),
        Err(all) => {
            Err(unreadable(path, &format!("it has {} certificates, and one is to be known", all.len())))
        }
    }
}
