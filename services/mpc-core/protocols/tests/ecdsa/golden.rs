//! Bytes of threshold ECDSA do not drift: messages and stored bytes of today are those of when the files were
//! written. Messages are long, so of each one its length and hash are kept.
//!
//! `GOLDEN=write cargo test -p protocols ecdsa::golden` writes them anew, which is right only together with a new
//! format version.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::common::rng;
use crate::ecdsa_common::{
    Change, data_key, keygen, keygen_with, payload, presign, presign_with, refresh_with, reshare_with,
    sign_presigned, sign_with,
};
use engine::forge::Forged;
use engine::seal::ShareLabel;
use protocols::ecdsa::{FAMILY, KeyShare, Presignature, SignPayload};
use sha2::{Digest, Sha256};
use sim::{Faults, Packet};

const DIGEST: [u8; 32] = [0x60; 32];

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

/// Notes each message once: `protocol round sender recipient length hash`.
fn recorder(lines: &mut Vec<String>) -> Faults<'_> {
    let record = |packet: Packet| {
        let Forged { protocol, round, sender, recipient, .. } = Forged::open(&packet.bytes).unwrap();
        let recipient = recipient.map_or(0, |id| id.get());
        let hash = hex::encode(Sha256::digest(&packet.bytes));
        let line = format!("{protocol} {round} {sender} {recipient} {} {hash}", packet.bytes.len());
        if !lines.contains(&line) {
            lines.push(line);
        }
        vec![packet]
    };
    Faults { tamper: Some(Box::new(record)), ..Faults::default() }
}

#[test]
fn messages_of_all_protocols() {
    let mut all = String::new();
    let mut note = |expected: usize, run: &dyn Fn(Faults<'_>)| {
        let mut lines = Vec::new();
        run(recorder(&mut lines));
        lines.sort();
        assert_eq!(lines.len(), expected);
        for line in lines {
            writeln!(all, "{line}").unwrap();
        }
    };
    note(3 + 3 + 6 + 6 + 6 + 3, &|faults| drop(keygen_with(&[1, 2, 3], 2, 7, faults)));
    let shares = keygen(&[1, 2, 3], 2, 7);
    let request = payload(DIGEST, &[1, 2]);
    note(2 + 2 + 2, &|faults| drop(sign_with(&shares, &[1, 3], 1, &request, faults)));
    note(2 + 2, &|faults| drop(presign_with(&shares, &[1, 3], 2, (&[1, 2], 2), faults)));
    note(2, &|faults| {
        let made = presign(&shares, &[1, 3], 2, &[1, 2]);
        let request = SignPayload { presignature: Some(*made[&1].id()), ..request.clone() };
        drop(sign_presigned(shares[&1].public(), made, 3, &request, faults));
    });
    note(3 + 3 + 6 + 6 + 6 + 3, &|faults| drop(refresh_with(&shares, faults)));
    let change = Change { dealers: &[1, 2], receivers: &[2, 3, 4], t: 2 };
    note(4 + 4 + 12 + 12 + 12 + 4, &|faults| drop(reshare_with(&shares, &change, 4, faults)));
    compare("ecdsa-messages-2.txt", &all);
}

#[test]
fn sealed_blobs_of_every_version_still_open() {
    let shares = keygen(&[1, 2], 2, 7);
    let mut made = presign(&shares, &[1, 2], 1, &[3]);
    let id = *made[&1].id();
    let share = &shares[&1];
    let blobs = [
        share.seal(&data_key(), &mut rng(1)).unwrap(),
        made.remove(&1).unwrap().seal(&data_key(), &mut rng(1)).unwrap(),
    ];
    compare("ecdsa-blobs-v1.txt", &blobs.map(|blob| hex::encode(blob) + "\n").concat());
    let stored = fs::read_to_string(path("ecdsa-blobs-v1.txt")).unwrap();
    let stored: Vec<Vec<u8>> = stored.lines().map(|line| hex::decode(line).unwrap()).collect();
    let label = share.label();
    assert_eq!(label.family, FAMILY);
    assert_eq!(ShareLabel::peek(&stored[0]).unwrap(), label);
    assert_eq!(KeyShare::unseal(&data_key(), &stored[0], &label).unwrap().public(), share.public());
    assert_eq!(Presignature::unseal(&data_key(), &stored[1]).unwrap().id(), &id);
}
