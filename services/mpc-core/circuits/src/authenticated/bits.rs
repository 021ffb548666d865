//! Shares of authenticated bits, and the link over which they are made and opened.

use std::ops::BitXor;

use primitives::hedge::HedgedRng;
use primitives::ot::authenticated::authentication_bytes;
use rand_core::{CryptoRng, Rng};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::abort::Abort;
use super::digest::{same, tagged};
use super::pair::{Pair, Role};
use crate::garble::SessionKey;
use crate::line::Line;

/// Bits that one extension authenticates, at most: its columns stay in the processor's cache.
const MAX_AT_ONCE: usize = 1 << 17;

/// One party's share of a bit: its own bit with the MAC under the peer's Δ, and the key of the peer's bit under its own
/// Δ.
#[derive(Clone, Copy, Default)]
pub struct Share {
    /// 0 or 1.
    pub bit: u8,
    pub mac: u128,
    pub key: u128,
}

impl zeroize::DefaultIsZeroes for Share {}

impl BitXor for Share {
    type Output = Share;
    fn bitxor(self, other: Share) -> Share {
        Share { bit: self.bit ^ other.bit, mac: self.mac ^ other.mac, key: self.key ^ other.key }
    }
}

impl Share {
    /// The share of this bit times a public one.
    pub fn times(self, public: u8) -> Share {
        let mask = mask(public);
        Share { bit: self.bit & public, mac: self.mac & mask, key: self.key & mask }
    }
}

/// All ones for 1, and zero for 0; behind a barrier, so that no branch is made of it.
pub fn mask(bit: u8) -> u128 {
    u128::from(core::hint::black_box(bit) & 1).wrapping_neg()
}

/// A session with the peer.
pub struct Link<'a, L: Line> {
    pub channel: &'a mut L,
    pair: &'a Pair,
    session: [u8; 32],
    pub key: SessionKey,
    pub delta: Zeroizing<u128>,
    /// Steps that took a digest or binding so far; the same on both sides.
    steps: u64,
}

impl<'a, L: Line> Link<'a, L> {
    /// [Garbling 1] Agrees on the set-up and on a digest of what is to be done, and on a session that neither party
    /// chose alone. Each party has read a part only of the set-up's messages, so that this is where both find out that
    /// some other part of them changed on its way.
    pub async fn begin(
        pair: &'a Pair,
        agreed: [u8; 32],
        channel: &'a mut L,
        rng: &mut (dyn CryptoRng + Send),
    ) -> Result<Self, Abort> {
        let agreed = tagged("coterie/authenticated-garbling-agreed/1", &[&pair.identity, &agreed]);
        let delta = pair.state.sender.global_key();
        let mut word = [0u8; 32];
        HedgedRng::new("authenticated garbling", &[&delta.to_le_bytes(), &agreed], rng).fill_bytes(&mut word);
        let say = |channel: &mut L| -> Result<(), Abort> {
            channel.send(&agreed)?;
            Ok(channel.say(&word)?)
        };
        let (theirs, words) = match pair.role {
            Role::Garbler => {
                say(channel)?;
                let (theirs, other) = (channel.block().await?, channel.block().await?);
                (theirs, [word, other])
            }
            Role::Evaluator => {
                let (theirs, other) = (channel.block().await?, channel.block().await?);
                say(channel)?;
                (theirs, [other, word])
            }
        };
        if theirs != agreed {
            return Err(Abort::Disagreement);
        }
        let [garbler, evaluator] = words;
        let session = tagged("coterie/authenticated-garbling-session/1", &[&agreed, &garbler, &evaluator]);
        Ok(Self::resume(pair, session, 0, channel))
    }

    /// The link of a session that was agreed on before.
    pub fn resume(pair: &'a Pair, session: [u8; 32], steps: u64, channel: &'a mut L) -> Self {
        let mut key = [0u8; 16];
        let hash = tagged("coterie/authenticated-garbling-hash/1", &[&session]);
        key.copy_from_slice(hash.split_at(16).0);
        let delta = pair.state.sender.global_key();
        Link { channel, pair, session, key: SessionKey::new(&key), delta, steps }
    }

    pub fn role(&self) -> Role {
        self.pair.role
    }

    /// The pair's.
    pub fn identity(&self) -> [u8; 32] {
        self.pair.identity
    }

    pub fn session(&self) -> [u8; 32] {
        self.session
    }

    /// A digest of the session and a new step of it.
    pub fn step(&mut self, name: &str, sender: Role) -> [u8; 32] {
        self.steps += 1;
        let role = [u8::from(sender == Role::Evaluator)];
        tagged(name, &[&self.session, &self.steps.to_be_bytes(), &role])
    }

    /// [`Pair::go_on`], after a check and before the next message.
    pub fn go_on(&self) -> Result<(), Abort> {
        self.pair.go_on()
    }

    fn peer(&self) -> Role {
        match self.role() {
            Role::Garbler => Role::Evaluator,
            Role::Evaluator => Role::Garbler,
        }
    }

    /// [Garbling 2] Shares of random bits that neither party knows. The garbler's bits are authenticated first.
    pub async fn random_shares(
        &mut self,
        count: usize,
        rng: &mut (dyn CryptoRng + Send),
    ) -> Result<Zeroizing<Vec<Share>>, Abort> {
        let mut shares = Zeroizing::new(vec![Share::default(); count]);
        for chunk in shares.chunks_mut(MAX_AT_ONCE) {
            for speaker in [Role::Garbler, Role::Evaluator] {
                let binding = self.step("coterie/authenticated-garbling-bits/1", speaker);
                if speaker == self.role() {
                    let (own, message) = self.pair.state.receiver.authenticate(&binding, chunk.len(), rng);
                    self.channel.say(&message)?;
                    for ((share, bit), mac) in chunk.iter_mut().zip(own.bits.iter()).zip(own.macs.iter()) {
                        (share.bit, share.mac) = (*bit, *mac);
                    }
                } else {
                    let mut message = vec![0u8; authentication_bytes(chunk.len())];
                    self.channel.receive(&mut message).await?;
                    let sender = &self.pair.state.sender;
                    let keys = sender.authenticate(&binding, chunk.len(), &message);
                    for (share, key) in chunk.iter_mut().zip(keys.map_err(|_| Abort::Transfer)?.iter()) {
                        share.key = *key;
                    }
                    self.go_on()?;
                }
            }
        }
        Ok(shares)
    }

    /// The share of a bit plus a public one, which the garbler adds to its own.
    pub fn add_public(&self, share: Share, public: u8) -> Share {
        match self.role() {
            Role::Garbler => Share { bit: share.bit ^ public, ..share },
            Role::Evaluator => Share { key: share.key ^ (*self.delta & mask(public)), ..share },
        }
    }

    /// Sends this party's bits of some shares, with a digest of their MACs.
    pub fn open_to_peer(&mut self, shares: &[Share]) -> Result<(), Abort> {
        let mut hash = Sha256::new();
        hash.update(self.step("coterie/authenticated-garbling-opening/1", self.role()));
        for share in shares {
            hash.update(share.mac.to_le_bytes());
        }
        self.send_bits(shares.iter().map(|share| share.bit))?;
        let digest: [u8; 32] = hash.finalize().into();
        Ok(self.channel.say(&digest)?)
    }

    /// The bits of some shares that the peer opens to this party.
    pub async fn receive_opened(&mut self, shares: &[Share]) -> Result<Zeroizing<Vec<u8>>, Abort> {
        let step = self.step("coterie/authenticated-garbling-opening/1", self.peer());
        let mut bits = Zeroizing::new(self.receive_bits(shares.len()).await?);
        let mut hash = Sha256::new();
        hash.update(step);
        for (share, bit) in shares.iter().zip(bits.iter()) {
            hash.update((share.key ^ (*self.delta & mask(*bit))).to_le_bytes());
        }
        let digest: [u8; 32] = hash.finalize().into();
        if !same(&digest, &self.channel.block().await?) {
            return Err(Abort::Opening);
        }
        for (bit, share) in bits.iter_mut().zip(shares) {
            *bit ^= share.bit;
        }
        Ok(bits)
    }

    /// Opens shares to both parties; the garbler speaks first.
    pub async fn open(&mut self, shares: &[Share]) -> Result<Zeroizing<Vec<u8>>, Abort> {
        match self.role() {
            Role::Garbler => {
                self.open_to_peer(shares)?;
                self.receive_opened(shares).await
            }
            Role::Evaluator => {
                let bits = self.receive_opened(shares).await?;
                self.open_to_peer(shares)?;
                Ok(bits)
            }
        }
    }

    /// Sends bits, eight a byte, without a flush.
    pub fn send_bits(&mut self, bits: impl Iterator<Item = u8>) -> Result<(), Abort> {
        let mut bytes = Vec::new();
        for (i, bit) in bits.enumerate() {
            if i % 8 == 0 {
                bytes.push(0);
            }
            if let Some(byte) = bytes.last_mut() {
                *byte |= bit << (i % 8);
            }
        }
        Ok(self.channel.send(&bytes)?)
    }

    /// Receives bits; those that fill the last byte are 0.
    pub async fn receive_bits(&mut self, count: usize) -> Result<Vec<u8>, Abort> {
        let mut bytes = vec![0u8; count.div_ceil(8)];
        self.channel.receive(&mut bytes).await?;
        if !count.is_multiple_of(8) && bytes.last().is_some_and(|byte| byte >> (count % 8) != 0) {
            return Err(Abort::Malformed);
        }
        Ok(bytes.iter().flat_map(|byte| (0..8).map(move |i| byte >> i & 1)).take(count).collect())
    }

    /// Sends blocks and receives as many; the garbler speaks first.
    pub async fn exchange_blocks(&mut self, own: &[u128], theirs: &mut [u128]) -> Result<(), Abort> {
        if self.role() == Role::Evaluator {
            self.channel.receive_blocks(theirs).await?;
        }
        self.channel.send_blocks(own)?;
        self.channel.flush()?;
        if self.role() == Role::Garbler {
            self.channel.receive_blocks(theirs).await?;
        }
        Ok(())
    }

    /// Sends bits and receives as many; the garbler speaks first.
    pub async fn exchange_bits(&mut self, own: &[u8]) -> Result<Vec<u8>, Abort> {
        if self.role() == Role::Evaluator {
            let theirs = self.receive_bits(own.len()).await?;
            self.send_bits(own.iter().copied())?;
            self.channel.flush()?;
            return Ok(theirs);
        }
        self.send_bits(own.iter().copied())?;
        self.channel.flush()?;
        self.receive_bits(own.len()).await
    }

    /// Commits to a digest, hears the peer's, and opens: the garbler commits, so that neither chooses by what it heard.
    pub async fn exchange(
        &mut self,
        own: &[u8; 32],
        rng: &mut (dyn CryptoRng + Send),
    ) -> Result<[u8; 32], Abort> {
        let step = self.step("coterie/authenticated-garbling-commitment/1", Role::Garbler);
        let commitment = |value: &[u8; 32], opening: &[u8; 32]| -> [u8; 32] {
            tagged("coterie/authenticated-garbling-commitment/1", &[&step, value, opening])
        };
        match self.role() {
            Role::Garbler => {
                let mut opening = [0u8; 32];
                HedgedRng::new("commitment", &[&self.delta.to_le_bytes(), &step, own], rng)
                    .fill_bytes(&mut opening);
                self.channel.say(&commitment(own, &opening))?;
                let theirs = self.channel.block().await?;
                self.channel.send(own)?;
                self.channel.say(&opening)?;
                Ok(theirs)
            }
            Role::Evaluator => {
                let committed = self.channel.block::<32>().await?;
                self.channel.say(own)?;
                let theirs = self.channel.block().await?;
                let opening = self.channel.block().await?;
                if !same(&commitment(&theirs, &opening), &committed) {
                    return Err(Abort::Commitment);
                }
                Ok(theirs)
            }
        }
    }
}
