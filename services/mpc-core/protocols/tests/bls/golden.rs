//! Bytes do not drift: messages and stored bytes of today are those of when the files were written.
//!
//! `GOLDEN=write cargo test -p protocols bls::golden` writes them anew, which is right only together with a new
//! format version.

use crate::common;
use std::fs;
use std::path::PathBuf;

use crate::common::{keygen, keygen_with, rng, sign_with};
use crate::dealing::harness::{Change, refresh_with, reshare_with};
use engine::Secret;
use engine::forge::Forged;
use engine::seal::{DataKey, ShareLabel};
use protocols::bls::{Bls, FAMILY, KeyShare, OpenShareError};
use sim::{Faults, Packet};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn compare(name: &str, actual: &str) {
    if std::env::var("GOLDEN").is_ok_and(|value| value == "write") {
        fs::write(path(name), actual).unwrap();
    }
    let golden = fs::read_to_string(path(name)).unwrap();
    for (line, (expected, found)) in golden.lines().zip(actual.lines()).enumerate() {
        assert_eq!(found, expected, "{name} line {}", line + 1);
    }
    assert_eq!(actual.lines().count(), golden.lines().count());
}

/// Notes each message once: `round sender recipient bytes`, in that order.
fn recorder(lines: &mut Vec<String>) -> Faults<'_> {
    let record = |packet: Packet| {
        let forged = Forged::open(&packet.bytes).unwrap();
        let recipient = forged.recipient.map_or(0, |id| id.get());
        let line = format!("{} {} {recipient} {}", forged.round, forged.sender, hex::encode(&packet.bytes));
        if !lines.contains(&line) {
            lines.push(line);
        }
        vec![packet]
    };
    Faults { tamper: Some(Box::new(record)), ..Faults::default() }
}

#[test]
fn messages_of_key_generation_and_signing() {
    let mut lines = Vec::new();
    keygen_with(&[1, 2, 3], 2, 7, recorder(&mut lines));
    lines.sort();
    assert_eq!(lines.len(), 3 + 3 + 6 + 3);
    compare("bls-keygen-1.txt", &(lines.join("\n") + "\n"));

    let shares = keygen(&[1, 2, 3], 2, 7);
    let mut lines = Vec::new();
    sign_with(&shares, &[1, 3], b"golden", 7, recorder(&mut lines));
    lines.sort();
    assert_eq!(lines.len(), 2);
    compare("bls-sign-1.txt", &(lines.join("\n") + "\n"));
}

#[test]
fn messages_of_refresh_and_reshare() {
    let shares = keygen(&[1, 2, 3], 2, 7);
    let mut lines = Vec::new();
    refresh_with::<Bls>(&shares, 8, recorder(&mut lines));
    lines.sort();
    assert_eq!(lines.len(), 3 + 3 + 6 + 3);
    let mut of_reshare = Vec::new();
    let change = Change { dealers: &[1, 2], receivers: &[2, 3, 4], t: 2 };
    reshare_with::<Bls>(&shares, &change, 9, recorder(&mut of_reshare));
    of_reshare.sort();
    assert_eq!(of_reshare.len(), 4 + 4 + 12 + 4);
    lines.append(&mut of_reshare);
    compare("bls-renewal-1.txt", &(lines.join("\n") + "\n"));
}

#[test]
fn sealed_shares_of_every_version_still_open() {
    let key = DataKey::new(Secret::new([9; 32]));
    let shares = keygen(&[1, 2, 3], 2, 7);
    let blobs: String =
        shares.values().map(|share| hex::encode(share.seal(&key, &mut rng(1)).unwrap()) + "\n").collect();
    compare("bls-share-v1.txt", &blobs);
    let mut opened = 0;
    for (line, share) in fs::read_to_string(path("bls-share-v1.txt")).unwrap().lines().zip(shares.values()) {
        let blob = hex::decode(line).unwrap();
        let label = share.label();
        assert_eq!(label.family, FAMILY);
        assert_eq!(ShareLabel::peek(&blob).unwrap(), label);
        assert_eq!(KeyShare::unseal(&key, &blob, &label).unwrap().public(), share.public());
        opened += 1;
    }
    assert_eq!(opened, 3);
}

#[test]
fn share_opens_under_its_own_label_and_key_only() {
    let key = DataKey::new(Secret::new([9; 32]));
    let share = keygen(&[1, 2], 2, 1).remove(&1).unwrap();
    let blob = share.seal(&key, &mut rng(1)).unwrap();
    let changes: [fn(&mut ShareLabel); 5] = [
        |label| label.family.push('x'),
        |label| label.key_id.push('x'),
        |label| label.party = common::party(2),
        |label| label.epoch += 1,
        |label| label.threshold = common::threshold(1),
    ];
    for change in changes {
        let mut label = share.label();
        change(&mut label);
        assert_eq!(KeyShare::unseal(&key, &blob, &label).err(), Some(OpenShareError::Mismatch));
        // Relabelled, it says what is expected, and does not open.
        let mut relabelled = blob.clone();
        let old = share.label().encode();
        if old.len() == label.encode().len() {
            relabelled[4..4 + old.len()].copy_from_slice(&label.encode());
            assert_eq!(KeyShare::unseal(&key, &relabelled, &label).err(), Some(OpenShareError::Unseal));
        }
    }
    for at in 0..blob.len() {
        let mut altered = blob.clone();
        altered[at] ^= 1;
        assert!(KeyShare::unseal(&key, &altered, &share.label()).is_err(), "byte {at}");
    }
    for length in 0..blob.len() {
        assert!(KeyShare::unseal(&key, &blob[..length], &share.label()).is_err(), "length {length}");
    }
    let other = DataKey::new(Secret::new([8; 32]));
    assert_eq!(KeyShare::unseal(&other, &blob, &share.label()).err(), Some(OpenShareError::Unseal));
}
