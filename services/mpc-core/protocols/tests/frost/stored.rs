//! Bytes do not drift: messages and stored bytes of today are those of when the files were written.
//!
//! `GOLDEN=write cargo test -p protocols frost::stored` writes them anew, which is right only together with a new
//! format version.

use std::fs;
use std::path::PathBuf;

use engine::Secret;
use engine::forge::Forged;
use engine::seal::{DataKey, ShareLabel};
use protocols::frost::{KeyShare, OpenShareError, Presignature, Target};
use sim::{Faults, Packet};

use crate::common::{party, rng, threshold};
use crate::frost::both_suites;
use crate::harness::{
    Change, Tested, data_key, keygen, keygen_with, message, payload, presign, presign_all, presign_with,
    refresh_with, reshare_with, sign_presigned, sign_with,
};

fn compare(name: &str, actual: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var("GOLDEN").is_ok_and(|value| value == "write") {
        fs::write(&path, actual).unwrap();
    }
    let golden = fs::read_to_string(path).unwrap();
    for (line, (expected, found)) in golden.lines().zip(actual.lines()).enumerate() {
        assert_eq!(found, expected, "{name} line {}", line + 1);
    }
    assert_eq!(actual.lines().count(), golden.lines().count());
}

/// Notes each message once: `protocol round sender recipient bytes`.
fn recorder(lines: &mut Vec<String>) -> Faults<'_> {
    let record = |packet: Packet| {
        let forged = Forged::open(&packet.bytes).unwrap();
        let to = forged.recipient.map_or(0, |id| id.get());
        let place = format!("{} {} {} {to}", forged.protocol, forged.round, forged.sender);
        let line = format!("{place} {}", hex::encode(&packet.bytes));
        if !lines.contains(&line) {
            lines.push(line);
        }
        vec![packet]
    };
    Faults { tamper: Some(Box::new(record)), ..Faults::default() }
}

fn messages<S: Tested>() {
    let mut lines = Vec::new();
    keygen_with::<S>(&[1, 2, 3], 2, (1, 7), recorder(&mut lines));
    let shares = keygen::<S>(&[1, 2, 3], 2, 7);
    let target = S::targets().pop().unwrap();
    let mut request = payload(message(1), &target);
    sign_with(&shares, &[1, 3], 7, &request, recorder(&mut lines));
    let presignatures = presign_all(&shares, &[1, 3], 8, (&target, 2)).pop().unwrap();
    request.presignature = Some(*presignatures[&1].id());
    presign_with(&shares, &[1, 3], 8, (&target, 2), recorder(&mut lines));
    sign_presigned(shares[&1].public(), presignatures, 9, &request, recorder(&mut lines));
    lines.sort();
    assert_eq!(lines.len(), 3 + 3 + 6 + 3 + 4 + 2 + 2);
    compare(&format!("{}-messages-2.txt", S::FAMILY), &(lines.join("\n") + "\n"));
    let mut lines = Vec::new();
    refresh_with(&shares, recorder(&mut lines));
    let change = Change { dealers: &[1, 2], receivers: &[2, 3, 4], t: 2 };
    reshare_with(&shares, &change, 10, recorder(&mut lines));
    lines.sort();
    assert_eq!(lines.len(), (3 + 3 + 6 + 3) + (4 + 4 + 12 + 4));
    compare(&format!("{}-renewal-2.txt", S::FAMILY), &(lines.join("\n") + "\n"));
}

fn sealed_shares_and_presignatures_of_every_version_still_open<S: Tested>() {
    let key = data_key();
    let shares = keygen::<S>(&[1, 2, 3], 2, 7);
    let mut blobs: Vec<Vec<u8>> =
        shares.values().map(|share| share.seal(&key, &mut rng(1)).unwrap()).collect();
    let target = S::targets().pop().unwrap();
    let presignature = presign(&shares, &[1, 3], 8, &target).remove(&1).unwrap();
    let id = *presignature.id();
    blobs.push(presignature.seal(&key, &mut rng(1)).unwrap());
    let name = format!("{}-sealed-v1.txt", S::FAMILY);
    let lines: String = blobs.iter().map(|blob| hex::encode(blob) + "\n").collect();
    compare(&name, &lines);
    let (last, blobs) = blobs.split_last().unwrap();
    for (blob, share) in blobs.iter().zip(shares.values()) {
        let label = share.label();
        assert_eq!(ShareLabel::peek(blob).unwrap(), label);
        assert_eq!(KeyShare::<S>::unseal(&key, blob, &label).unwrap().public(), share.public());
    }
    let opened = Presignature::<S>::unseal(&key, last).unwrap();
    assert_eq!((opened.id(), opened.party(), opened.target()), (&id, party(1), &target));
    assert_eq!(opened.signers().len(), 2);
}

fn share_opens_under_its_own_label_and_key_only<S: Tested>() {
    let key = data_key();
    let share = keygen::<S>(&[1, 2], 2, 1).remove(&1).unwrap();
    let blob = share.seal(&key, &mut rng(1)).unwrap();
    let changes: [fn(&mut ShareLabel); 5] = [
        |label| label.family.push('x'),
        |label| label.key_id.push('x'),
        |label| label.party = party(2),
        |label| label.epoch += 1,
        |label| label.threshold = threshold(1),
    ];
    for change in changes {
        let mut label = share.label();
        change(&mut label);
        assert_eq!(KeyShare::<S>::unseal(&key, &blob, &label).err(), Some(OpenShareError::Mismatch));
    }
    for at in 0..blob.len() {
        let mut altered = blob.clone();
        altered[at] ^= 1;
        assert!(KeyShare::<S>::unseal(&key, &altered, &share.label()).is_err(), "byte {at}");
    }
    for length in 0..blob.len() {
        assert!(KeyShare::<S>::unseal(&key, &blob[..length], &share.label()).is_err(), "length {length}");
    }
    let other = DataKey::new(Secret::new([8; 32]));
    assert_eq!(KeyShare::<S>::unseal(&other, &blob, &share.label()).err(), Some(OpenShareError::Unseal));
}

fn presignature_opens_whole_only<S: Tested>() {
    let key = data_key();
    let shares = keygen::<S>(&[1, 2], 2, 1);
    let blob = presign(&shares, &[1, 2], 8, &Target::default()).remove(&1).unwrap();
    let blob = blob.seal(&key, &mut rng(1)).unwrap();
    assert!(Presignature::<S>::unseal(&key, &blob).is_ok());
    for at in 0..blob.len() {
        let mut altered = blob.clone();
        altered[at] ^= 1;
        assert!(Presignature::<S>::unseal(&key, &altered).is_err(), "byte {at}");
    }
    assert!(Presignature::<S>::unseal(&DataKey::new(Secret::new([8; 32])), &blob).is_err());
}

both_suites!(
    messages,
    sealed_shares_and_presignatures_of_every_version_still_open,
    share_opens_under_its_own_label_and_key_only,
    presignature_opens_whole_only,
);
