//! `circuit run` against the peer whose certificate it knows, when that peer does not follow the protocol.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

mod processes;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use processes::{Ended, Folder, Running};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, ServerConfig, ServerConnection,
    SignatureScheme, StreamOwned,
};

/// Accepts every server: this peer is the hostile one.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

const PROTOCOL: &[u8] = b"coterie-circuit/1";

type Connection = StreamOwned<ClientConnection, TcpStream>;

/// Bob's certificate with somebody's key.
fn identity(folder: &Folder, owner: &str) -> Arc<SingleCertAndKey> {
    let certificate = CertificateDer::from_pem_file(folder.path("bob.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.path(&format!("{owner}.key"))).unwrap();
    let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
    Arc::new(SingleCertAndKey::from(CertifiedKey::new(vec![certificate], key)))
}

/// Connects with bob's certificate.
fn connect(folder: &Folder, address: &str, owner: &str, protocols: &[&[u8]]) -> Connection {
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_client_cert_resolver(identity(folder, owner));
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let client = ClientConnection::new(Arc::new(config), ServerName::try_from("any.name").unwrap()).unwrap();
    StreamOwned::new(client, TcpStream::connect(address).unwrap())
}

/// The peer's answer to the garbler's first message.
type Words<'a> = Box<dyn Fn(&[u8]) -> Vec<u8> + 'a>;

/// The garbler's first message when its input has one value.
const HELLO: usize = 24 + 1 + 8 + 32 + 4 + 4;
/// Where the part of its sender is in it, and the size of its value.
const PART: usize = 24;
const SIZE: usize = HELLO - 4;

/// Runs alice's garbler, says what `words` makes of her first message, and closes.
fn against(folder: &Folder, program: &str, words: impl Fn(&[u8]) -> Vec<u8>) -> Ended {
    let mut garbler = folder.party(program, "garbler", "alice", "bob");
    let (garbler, address) = Running::listen(garbler.args(["--input", "200"]));
    let mut connection = connect(folder, &address, "bob", &[PROTOCOL]);
    let mut hello = [0; HELLO];
    connection.read_exact(&mut hello).unwrap();
    // The other side may close before it has read all.
    let _ = connection.write_all(&words(&hello)).and_then(|()| connection.flush());
    connection.conn.send_close_notify();
    let _ = connection.flush();
    drop(connection);
    garbler.end()
}

const ADD: &str = "package main\n\nfunc main(a, b uint8) uint8 {\n\treturn a + b\n}\n";

#[test]
fn a_known_peer_that_sends_nonsense_is_named_and_never_a_panic() {
    let folder = Folder::new("nonsense");
    let checked = folder.write("add.mpcl", ADD);
    let streamed = folder.write("streamed.mpcl", &ADD.replace("func", "// @SemiHonest\nfunc"));
    let answer = |hello: &[u8], tail: &[u8]| {
        let mut words = hello.to_vec();
        words[PART] ^= 1;
        words.extend_from_slice(tail);
        words
    };
    for program in [&checked, &streamed] {
        let cases: [(&str, Words<'_>, i32); 5] = [
            ("bytes that are no hello", Box::new(|_| vec![b'x'; 500]), 5),
            ("nothing", Box::new(|_| Vec::new()), 3),
            ("its own words", Box::new(<[u8]>::to_vec), 4),
            (
                "a size that the type does not have",
                Box::new(|hello| {
                    let mut words = answer(hello, &[]);
                    words[SIZE + 3] ^= 1;
                    words
                }),
                5,
            ),
            ("a hello, and then nothing", Box::new(|hello| answer(hello, &[])), 3),
        ];
        for (what, words, status) in cases {
            let ended = against(&folder, program, words);
            assert_eq!((ended.status, ended.output.as_str()), (status, ""), "{what}: {}", ended.errors);
            // The number of the port may have the input's digits in it.
            let told = ended.errors.lines().filter(|line| !line.starts_with("listening on "));
            let told = told.collect::<Vec<_>>().join("\n");
            assert!(!told.contains("panicked") && !told.contains("200"), "{what}: {told}");
        }
    }
    // A size that the type leaves open, and that would take gigabytes.
    let open = folder
        .write("open.mpcl", "package main\n\nfunc main(a uint8, b []byte) uint8 {\n\treturn a + b[0]\n}\n");
    let ended = against(&folder, &open, |hello| {
        let mut words = answer(hello, &[]);
        words[SIZE..].copy_from_slice(&(1u32 << 22).to_be_bytes());
        words
    });
    assert!(ended.status == 1 && ended.errors.contains("takes 2^21"), "{}", ended.errors);
    // The set-up of transfers fails in its checks; streaming compares the agreement before it.
    let ended = against(&folder, &checked, |hello| answer(hello, &[0x5a; 1 << 16]));
    assert!(ended.status == 5 && ended.errors.contains("oblivious transfer"), "{}", ended.errors);
    let ended = against(&folder, &streamed, |hello| answer(hello, &[0x5a; 1 << 16]));
    assert!(ended.status == 5 && ended.errors.contains("another program"), "{}", ended.errors);
}

#[test]
fn a_known_peer_of_another_protocol_or_of_none_is_refused() {
    let folder = Folder::new("protocol");
    let program = folder.write("add.mpcl", ADD);
    let mut garbler = folder.party(&program, "garbler", "alice", "bob");
    let (mut garbler, address) = Running::listen(garbler.args(["--input", "200"]));
    for protocols in [&[b"h2".as_slice()][..], &[]] {
        let mut connection = connect(&folder, &address, "bob", protocols);
        assert!(connection.read_exact(&mut [0; 1]).is_err(), "{protocols:?}");
        assert!(garbler.until("refused ").contains("does not speak TLS 1.3 as this command does"));
    }
}

/// A certificate is no secret: a peer that has it and not its key is a stranger, on either side.
#[test]
fn a_known_certificate_without_its_key_is_refused() {
    let folder = Folder::new("possession");
    folder.certificate("eve");
    let program = folder.write("add.mpcl", ADD);
    let mut garbler = folder.party(&program, "garbler", "alice", "bob");
    let (mut garbler, address) = Running::listen(garbler.args(["--input", "200"]));
    let mut connection = connect(&folder, &address, "eve", &[PROTOCOL]);
    assert!(connection.read_exact(&mut [0; 1]).is_err());
    assert!(garbler.until("refused ").contains("BadSignature"));

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    for (owner, met) in [("bob", true), ("eve", false)] {
        let mut config = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(identity(&folder, owner));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut garbler = folder.party(&program, "garbler", "alice", "bob");
        let garbler = Running::start(garbler.args(["--input", "200", "--connect", &address]));
        let server = ServerConnection::new(Arc::new(config)).unwrap();
        let mut connection = StreamOwned::new(server, listener.accept().unwrap().0);
        // A listener speaks first, so that a garbler that believes in this one reads these words.
        let said = connection.write_all(&[b'x'; 500]).and_then(|()| connection.flush());
        assert_eq!(said.is_ok(), met, "{owner}");
        connection.conn.send_close_notify();
        let _ = connection.flush();
        drop(connection);
        let ended = garbler.end();
        assert_eq!(ended.status, if met { 5 } else { 4 }, "{}", ended.errors);
        assert_eq!(ended.errors.contains("BadSignature"), !met, "{}", ended.errors);
    }
}
