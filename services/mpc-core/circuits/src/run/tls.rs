//! TLS 1.3 between two parties that know each other's certificates: no name, date or authority is asked.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};

use super::failure::Failure;
use super::meter::Meter;
use super::pinned::Pinned;

/// The protocol above TLS, so that another service's peer is told apart before any of its bytes are read.
const PROTOCOL: &[u8] = b"coterie-circuit/1";
const LABEL: &[u8] = b"EXPORTER-coterie-circuit-run/1";
/// A handshake takes so long at most, whoever it is with.
const HANDSHAKE: Duration = Duration::from_secs(10);
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
            Address::Listen(place) => self.listen(place, wait, until, say),
            Address::Connect(place) => self.connect(place, wait, until),
        }
    }

    fn listen(
        &self,
        place: &str,
        wait: Duration,
        until: Instant,
        say: &dyn Fn(&str),
    ) -> Result<Secured, Failure> {
        let failed = |e: io::Error| Failure::Own(format!("cannot listen on {place}: {e}"));
        let listener = TcpListener::bind(place).map_err(failed)?;
        // A caller that hangs up before it is accepted must not make this wait.
        listener.set_nonblocking(true).map_err(failed)?;
        say(&format!("listening on {}", listener.local_addr().map_err(failed)?));
        let mut refused = String::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Failure::Gone(format!(
                    "no peer came in {} s: look at its side, or give a longer --wait{refused}",
                    wait.as_secs()
                )));
            }
            let span = Timespec::try_from(left).map_err(|e| Failure::Own(format!("--wait: {e}")))?;
            match poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&span)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(failed(e.into())),
            }
            let (stream, from) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(e) if exhausted(&e) => return Err(failed(e)),
                // The caller hung up, or the network failed it.
                Err(_) => continue,
            };
            let server = ServerConnection::new(self.server.clone());
            match server.map_err(tls).and_then(|server| Secured::new(server.into(), stream, wait)) {
                Ok(secured) => return Ok(secured),
                Err(e) => {
                    let text = match Failure::from(e) {
                        Failure::Gone(_) => {
                            "it left or fell silent in the handshake, perhaps since it refuses this party's certificate".into()
                        }
                        other => other.text().to_string(),
                    };
                    say(&format!("refused {from}: {text}"));
                    refused = format!("; last came {from}, refused: {text}");
                }
            }
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
                        return Ok(Secured::new(client.into(), stream, wait)?);
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

/// Whether this machine has no room for another connection, which waiting does not mend.
fn exhausted(e: &io::Error) -> bool {
    matches!(Errno::from_io_error(e), Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}

fn tls(e: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, e)
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

/// A socket whose handshake has an end, however slowly the peer sends.
struct Socket {
    stream: TcpStream,
    until: Option<Instant>,
}

impl Socket {
    fn limit(&self) -> io::Result<()> {
        let Some(until) = self.until else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.set_write_timeout(Some(left))
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.limit()?;
        self.stream.read(bytes)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit()?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A connection to the peer that both certificates name.
pub struct Secured {
    connection: Connection,
    socket: Socket,
    began: Instant,
    pub meter: Meter,
    /// Takes the lines of progress.
    pub say: fn(&str),
}

impl Secured {
    fn new(connection: Connection, stream: TcpStream, silence: Duration) -> io::Result<Secured> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        let began = Instant::now();
        let socket = Socket { stream, until: Some(began + HANDSHAKE.min(silence)) };
        let mut secured = Secured { connection, socket, began, meter: Meter::new(), say: |_| {} };
        while secured.connection.is_handshaking() {
            if secured.connection.complete_io(&mut secured.socket)? == (0, 0) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        // The library takes a peer that names no protocol at all: another service with this certificate would be such a
        // peer.
        if secured.connection.alpn_protocol() != Some(PROTOCOL) {
            return Err(tls(rustls::Error::NoApplicationProtocol));
        }
        secured.socket.until = None;
        secured.socket.stream.set_read_timeout(Some(silence))?;
        secured.socket.stream.set_write_timeout(Some(silence))?;
        Ok(secured)
    }

    /// Bytes that only the two ends of this connection know (RFC 8446, section 7.5).
    pub fn binding(&self, context: &[u8]) -> Result<[u8; 32], Failure> {
        let exported = match &self.connection {
            Connection::Client(client) => client.export_keying_material([0; 32], LABEL, Some(context)),
            Connection::Server(server) => server.export_keying_material([0; 32], LABEL, Some(context)),
        };
        exported.map_err(|e| tls(e).into())
    }

    /// Whether this party waited for the other.
    pub fn listened(&self) -> bool {
        matches!(self.connection, Connection::Server(_))
    }

    /// Time since the peers met.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Says that nothing more comes.
    pub fn close(&mut self) {
        self.connection.send_close_notify();
        // The result is there, whether or not the peer still hears this.
        let _ = self.flush();
    }

    fn progress(&mut self) {
        if let Some(line) = self.meter.due(self.began.elapsed()) {
            (self.say)(&line);
        }
    }
}

impl Read for Secured {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.connection {
            Connection::Client(client) => rustls::Stream::new(client, &mut self.socket).read(bytes),
            Connection::Server(server) => rustls::Stream::new(server, &mut self.socket).read(bytes),
        }?;
        self.meter.received += count as u64;
        self.progress();
        Ok(count)
    }
}

impl Write for Secured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = match &mut self.connection {
            Connection::Client(client) => rustls::Stream::new(client, &mut self.socket).write(bytes),
            Connection::Server(server) => rustls::Stream::new(server, &mut self.socket).write(bytes),
        }?;
        self.meter.sent += count as u64;
        self.progress();
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.connection {
            Connection::Client(client) => rustls::Stream::new(client, &mut self.socket).flush(),
            Connection::Server(server) => rustls::Stream::new(server, &mut self.socket).flush(),
        }
    }
}
