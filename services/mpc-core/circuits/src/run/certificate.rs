//! A party's certificate for `circuit run`: an Ed25519 key and its own signature over a name, which peers pin.
//!
//! Encoded by RFC 5280 and RFC 8410. Nobody vouches for the name and it never ends: the peer knows the certificate
//! itself.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64ct::{Base64, Encoding as _};
use ed25519_dalek::{Signer as _, SigningKey};
use getrandom::SysRng;
use rand_core::TryRng as _;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
/// id-Ed25519, 1.3.101.112.
const ED25519: &[u8] = &[0x06, 3, 0x2b, 0x65, 0x70];
/// id-at-commonName, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x06, 3, 0x55, 0x04, 0x03];
/// PrivateKeyInfo of RFC 8410, section 7, up to the 32 bytes of the key.
const PRIVATE_KEY: &[u8] = &[0x30, 46, 2, 1, 0, 0x30, 5, 0x06, 3, 0x2b, 0x65, 0x70, 0x04, 34, 0x04, 32];
/// Characters of a line of PEM.
const LINE: usize = 64;

/// Where a pair was written.
pub struct Written {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// SHA-256 of the certificate, in hexadecimal.
    pub fingerprint: String,
}

/// Makes a key and its certificate and writes both. Files that exist are kept, and are an error.
pub fn write_pair(folder: &Path, name: &str) -> Result<Written, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 64 || name.starts_with(['-', '.']) || !name.chars().all(plain) {
        return Err(
            "--name has up to 64 letters, digits, dots, - and _, and starts with a letter or digit".into()
        );
    }
    let mut seed = Zeroizing::new([0u8; 32]);
    let mut serial = [0u8; 16];
    SysRng
        .try_fill_bytes(seed.as_mut_slice())
        .and_then(|()| SysRng.try_fill_bytes(&mut serial))
        .map_err(|e| format!("the system gives no randomness: {e}"))?;
    let der = certificate(&SigningKey::from_bytes(&seed), name, serial);
    let mut secret = Zeroizing::new(PRIVATE_KEY.to_vec());
    secret.extend_from_slice(seed.as_slice());
    let written = Written {
        certificate: folder.join(format!("{name}.pem")),
        key: folder.join(format!("{name}.key")),
        fingerprint: Sha256::digest(&der).iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    std::fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    create(&written.key, 0o600, &pem("PRIVATE KEY", &secret))?;
    create(&written.certificate, 0o644, &pem("CERTIFICATE", &der))?;
    Ok(written)
}

fn create(path: &Path, mode: u32, text: &str) -> Result<(), String> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn pem(label: &str, der: &[u8]) -> Zeroizing<String> {
    let body = Zeroizing::new(Base64::encode_string(der));
    let mut text = Zeroizing::new(String::with_capacity(2 * body.len() + 4 * LINE));
    text.push_str(&format!("-----BEGIN {label}-----\n"));
    for (i, character) in body.chars().enumerate() {
        if i > 0 && i % LINE == 0 {
            text.push('\n');
        }
        text.push(character);
    }
    text.push_str(&format!("\n-----END {label}-----\n"));
    text
}

/// The certificate of a key, signed by itself.
fn certificate(key: &SigningKey, name: &str, mut serial: [u8; 16]) -> Vec<u8> {
    // A serial number is positive, and its first byte is needed.
    if let Some(first) = serial.first_mut() {
        *first = *first & 0x3f | 0x40;
    }
    let algorithm = der(SEQUENCE, &[ED25519]);
    let common_name = der(SEQUENCE, &[COMMON_NAME, &der(UTF8_STRING, &[name.as_bytes()])]);
    let name = der(SEQUENCE, &[&der(SET, &[&common_name])]);
    // RFC 5280, section 4.1.2.5: this end stands for none.
    let validity =
        der(SEQUENCE, &[&der(UTC_TIME, &[b"000101000000Z"]), &der(GENERALIZED_TIME, &[b"99991231235959Z"])]);
    let public = der(BIT_STRING, &[&[0], key.verifying_key().as_bytes()]);
    let body = der(
        SEQUENCE,
        &[
            &der(VERSION, &[&der(INTEGER, &[&[2]])]),
            &der(INTEGER, &[&serial]),
            &algorithm,
            &name,
            &validity,
            &name,
            &der(SEQUENCE, &[&algorithm, &public]),
        ],
    );
    let signature = key.sign(&body).to_bytes();
    der(SEQUENCE, &[&body, &algorithm, &der(BIT_STRING, &[&[0], &signature])])
}

/// A value of these parts, together under 64 KiB.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let [.., high, low] = length.to_be_bytes();
    let mut out = vec![tag];
    match (high, low) {
        (0, 0..=0x7f) => out.push(low),
        (0, _) => out.extend([0x81, low]),
        _ => out.extend([0x82, high, low]),
    }
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}
