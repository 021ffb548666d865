//! Private envelopes on their way between cores: signed, then encrypted to the recipient.
//!
//! ```text
//! offset  bytes
//!      0  1      format: 0x81
//!      1  2      protocol number
//!      3  32     session digest
//!     35  1      round
//!     36  2      sender
//!     38  2      recipient
//!     40  32     encapsulated key
//!     72  32     commitment to the key
//!    104  n      the signed envelope, encrypted
//!      .  16     tag
//! ```
//!
//! HPKE (RFC 9180) in base mode: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305; associated data are the
//! first 40 bytes. The recipient's key is the X25519 form of its evidence key, so the roster pins it: an Ed25519 key
//! pair may serve such a mechanism as well (Thormarker, eprint 2021/509). Poly1305 alone does not commit to a key
//! (Albertini et al., eprint 2020/1456): 32 bytes of the exporter do, as HKDF-SHA256 derives them and the key from one
//! secret. So no bytes open under two keys. The signature is inside: evidence is the signed envelope, and what the
//! sender signed is what the recipient read.
//!
//! An envelope that does not open counts as not sent. Nobody is blamed for it, since nobody else could see who is to
//! blame.

use core::convert::Infallible;

use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable, Kem, OpModeR, OpModeS, Serializable, setup_receiver, setup_sender_with_rng};
use primitives::Secret;
use rand_core::{CryptoRng, TryCryptoRng, TryRng};
use sha2::{Digest, Sha512};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::context::SessionContext;
use crate::envelope::{Envelope, MAX_ENVELOPE_BYTES};
use crate::error::Reject;
use crate::evidence::EvidenceKey;
use crate::hedged::hedged;
use crate::party::PartyId;
use crate::tags;
use crate::wire::{Malformed, Reader, Writer};

/// The first byte of a sealed envelope; that of any other is [`crate::envelope::ENVELOPE_VERSION`].
pub const SEALED_ENVELOPE_FORMAT: u8 = 0x81;
/// Bytes that sealing adds to an envelope.
pub const SEALED_OVERHEAD_BYTES: usize = HEADER_BYTES + KEY_BYTES + COMMITMENT_BYTES + TAG_BYTES;

const HEADER_BYTES: usize = 40;
const KEY_BYTES: usize = 32;
const COMMITMENT_BYTES: usize = 32;
const TAG_BYTES: usize = 16;

type PublicKey = <X25519HkdfSha256 as Kem>::PublicKey;
type PrivateKey = <X25519HkdfSha256 as Kem>::PrivateKey;
type EncappedKey = <X25519HkdfSha256 as Kem>::EncappedKey;

/// Whether these bytes are a sealed envelope rather than a plain one.
pub(crate) fn is_sealed(bytes: &[u8]) -> bool {
    bytes.first() == Some(&SEALED_ENVELOPE_FORMAT)
}

/// Seals a private envelope to its recipient. `None` if it has none, or none of the session.
pub(crate) fn seal(
    ctx: &SessionContext,
    key: &EvidenceKey,
    envelope: &Envelope,
    rng: &mut dyn CryptoRng,
) -> Option<Vec<u8>> {
    let recipient = PublicKey::from_bytes(&ctx.evidence_key(envelope.recipient()?)?.agreement_key()).ok()?;
    let plain = Zeroizing::new(envelope.encode());
    // The envelope is part of it: two of one session never have the same ephemeral key, whatever the generator does.
    let mut secret = Writer::with_capacity(plain.len() + 32);
    secret.bytes(key.seed().expose());
    secret.bytes(&plain);
    let secret = Zeroizing::new(secret.finish());
    let mut hedge = Hedge { seed: hedged(ctx, tags::PRIVATE_ENVELOPE, &secret, rng), drawn: 0 };
    let (encapped, mut context) = setup_sender_with_rng::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
        &OpModeS::Base,
        &recipient,
        tags::PRIVATE_ENVELOPE.as_bytes(),
        &mut hedge,
    )
    .ok()?;
    let mut commitment = [0; COMMITMENT_BYTES];
    context.export(tags::PRIVATE_ENVELOPE_COMMITMENT.as_bytes(), &mut commitment).ok()?;
    let mut sealed = header(envelope);
    let ciphertext = context.seal(&plain, &sealed).ok()?;
    sealed.extend_from_slice(&encapped.to_bytes());
    sealed.extend_from_slice(&commitment);
    sealed.extend_from_slice(&ciphertext);
    Some(sealed)
}

/// The fields that a sealed envelope shows outside, where anybody may have written them.
pub(crate) struct Cover {
    pub(crate) protocol: u16,
    pub(crate) session: [u8; 32],
    pub(crate) round: u8,
    pub(crate) sender: PartyId,
    pub(crate) recipient: PartyId,
    /// Of the signed envelope inside, in bytes.
    pub(crate) inside: usize,
}

impl Cover {
    /// Reads the cover and opens nothing.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let inside = bytes.len().checked_sub(SEALED_OVERHEAD_BYTES).ok_or(Malformed)?;
        let mut reader = Reader::new(bytes);
        if reader.u8()? != SEALED_ENVELOPE_FORMAT {
            return Err(Malformed);
        }
        let protocol = reader.u16()?;
        let session = *reader.array()?;
        let round = reader.u8()?;
        let sender = PartyId::new(reader.u16()?.into()).ok_or(Malformed)?;
        let recipient = PartyId::new(reader.u16()?.into()).ok_or(Malformed)?;
        Ok(Self { protocol, session, round, sender, recipient, inside })
    }
}

/// The plain envelope in these bytes, if it was sealed to the holder of `key` and says the same of itself inside as
/// outside. Costs a Diffie-Hellman: its caller has looked at the [`Cover`].
pub(crate) fn open(
    ctx: &SessionContext,
    key: &EvidenceKey,
    bytes: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Reject> {
    if bytes.len() > MAX_ENVELOPE_BYTES + SEALED_OVERHEAD_BYTES {
        return Err(Reject::Size);
    }
    let (head, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(Reject::Malformed)?;
    let (encapped, rest) = rest.split_first_chunk::<KEY_BYTES>().ok_or(Reject::Malformed)?;
    let (committed, ciphertext) = rest.split_first_chunk::<COMMITMENT_BYTES>().ok_or(Reject::Malformed)?;
    if head.get(3..35) != Some(ctx.digest().as_slice()) {
        return Err(Reject::Session);
    }
    let opened = || {
        let own = PrivateKey::from_bytes(key.agreement_key().as_slice()).ok()?;
        let encapped = EncappedKey::from_bytes(encapped).ok()?;
        let mut context = setup_receiver::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeR::Base,
            &own,
            &encapped,
            tags::PRIVATE_ENVELOPE.as_bytes(),
        )
        .ok()?;
        let mut commitment = [0; COMMITMENT_BYTES];
        context.export(tags::PRIVATE_ENVELOPE_COMMITMENT.as_bytes(), &mut commitment).ok()?;
        if !bool::from(commitment.ct_eq(committed)) {
            return None;
        }
        context.open(ciphertext, head).ok().map(Zeroizing::new)
    };
    let plain = opened().ok_or(Reject::Unsealing)?;
    let envelope = Envelope::decode(&plain)?;
    if header(&envelope) == head { Ok(plain) } else { Err(Reject::Unsealing) }
}

/// The fields of a private envelope that everybody may see, and nobody may change.
fn header(envelope: &Envelope) -> Vec<u8> {
    let mut writer = Writer::with_capacity(HEADER_BYTES);
    writer.u8(SEALED_ENVELOPE_FORMAT);
    writer.u16(envelope.protocol);
    writer.bytes(&envelope.session);
    writer.u8(envelope.round);
    writer.u16(envelope.sender.get());
    writer.u16(envelope.recipient.map_or(0, PartyId::get));
    writer.finish()
}

/// Randomness of one encapsulation.
struct Hedge {
    seed: Secret<[u8; 64]>,
    drawn: u64,
}

impl TryRng for Hedge {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_be_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_be_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(64) {
            let hash = Sha512::new_with_prefix(self.seed.expose()).chain_update(self.drawn.to_be_bytes());
            let block: Zeroizing<[u8; 64]> = Zeroizing::new(hash.finalize().into());
            self.drawn += 1;
            chunk.iter_mut().zip(block.iter()).for_each(|(byte, drawn)| *byte = *drawn);
        }
        Ok(())
    }
}

impl TryCryptoRng for Hedge {}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::context::{ProtocolId, RosterEntry, SessionId, SessionSettings};
    use crate::forge::Forged;
    use crate::party::Threshold;

    const PROTOCOL: ProtocolId = ProtocolId { number: 900, name: "test/private/1" };

    fn party(number: u32) -> PartyId {
        PartyId::new(number).unwrap()
    }

    fn key(party: u8) -> EvidenceKey {
        EvidenceKey::from_seed(&Secret::new([party; 32]))
    }

    fn context(session: u8) -> SessionContext {
        let roster = [1, 2, 3]
            .map(|number| RosterEntry { id: party(number.into()), evidence_key: Some(key(number).public()) });
        SessionContext::new(
            PROTOCOL,
            true,
            &[],
            SessionSettings {
                session_id: SessionId::new([session; 32]),
                me: Some(party(1)),
                roster: roster.to_vec(),
                threshold: Threshold::new(2).unwrap(),
                key_id: "keys/private".to_owned(),
                epoch: 1,
                payload: Vec::new(),
            },
            None,
        )
        .unwrap()
    }

    fn envelope(ctx: &SessionContext, recipient: Option<u32>) -> Envelope {
        let mut forged = Forged::new(PROTOCOL.number, ctx, 2, party(1), b"a share of a polynomial".to_vec());
        forged.recipient = recipient.map(party);
        Envelope::decode(&forged.encode(&key(1))).unwrap()
    }

    fn sealed(ctx: &SessionContext, seed: u64) -> Vec<u8> {
        seal(ctx, &key(1), &envelope(ctx, Some(2)), &mut ChaCha20Rng::seed_from_u64(seed)).unwrap()
    }

    #[test]
    fn the_recipient_and_nobody_else_opens_it() {
        let ctx = context(1);
        let bytes = sealed(&ctx, 1);
        let plain = envelope(&ctx, Some(2)).encode();
        assert_eq!(bytes.len(), plain.len() + SEALED_OVERHEAD_BYTES);
        assert_eq!(*open(&ctx, &key(2), &bytes).unwrap(), plain);
        for other in [1, 3] {
            assert_eq!(open(&ctx, &key(other), &bytes), Err(Reject::Unsealing));
        }
        assert_eq!(open(&context(2), &key(2), &bytes), Err(Reject::Session));
        assert!(!bytes.windows(8).any(|window| plain.ends_with(window) || window == b"a share "));
    }

    #[test]
    fn no_byte_can_be_changed() {
        let ctx = context(1);
        let bytes = sealed(&ctx, 1);
        for place in 0..bytes.len() {
            let mut altered = bytes.clone();
            altered[place] ^= 1;
            assert!(open(&ctx, &key(2), &altered).is_err(), "byte {place}");
            assert!(open(&ctx, &key(2), &bytes[..place]).is_err(), "{place} bytes");
        }
        assert!(open(&ctx, &key(2), &[bytes, vec![0]].concat()).is_err());
    }

    /// As another party would do it that has read the envelope: the signed content is genuine, its cover is not.
    #[test]
    fn an_envelope_under_another_cover_is_refused() {
        let ctx = context(1);
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let inside = envelope(&ctx, Some(2));
        let plain = inside.encode();
        let mut outside = inside.duplicate();
        outside.sender = party(3);
        let recipient = PublicKey::from_bytes(&key(2).public().agreement_key()).unwrap();
        let (encapped, mut context) =
            setup_sender_with_rng::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
                &OpModeS::Base,
                &recipient,
                tags::PRIVATE_ENVELOPE.as_bytes(),
                &mut rng,
            )
            .unwrap();
        let mut commitment = [0; COMMITMENT_BYTES];
        context.export(tags::PRIVATE_ENVELOPE_COMMITMENT.as_bytes(), &mut commitment).unwrap();
        let head = header(&outside);
        let ciphertext = context.seal(&plain, &head).unwrap();
        let bytes = [&head[..], &encapped.to_bytes(), &commitment, &ciphertext].concat();
        assert_eq!(open(&ctx, &key(2), &bytes), Err(Reject::Unsealing));
    }

    #[test]
    fn a_repeated_generator_shows_no_key_twice() {
        let ctx = context(1);
        let encapped = |bytes: &[u8]| bytes[HEADER_BYTES..HEADER_BYTES + KEY_BYTES].to_vec();
        let of = |recipient, body: u8| {
            let mut forged = Forged::new(PROTOCOL.number, &ctx, 2, party(1), vec![body]);
            forged.recipient = Some(party(recipient));
            let envelope = Envelope::decode(&forged.encode(&key(1))).unwrap();
            encapped(&seal(&ctx, &key(1), &envelope, &mut ChaCha20Rng::seed_from_u64(7)).unwrap())
        };
        assert_eq!(of(2, 1), of(2, 1));
        assert_ne!(of(2, 1), of(2, 2));
        assert_ne!(of(2, 1), of(3, 1));
        assert!(seal(&ctx, &key(1), &envelope(&ctx, None), &mut ChaCha20Rng::seed_from_u64(7)).is_none());
    }

    #[test]
    fn both_forms_of_an_evidence_key_are_one_pair() {
        for number in 1..20 {
            let private = PrivateKey::from_bytes(key(number).agreement_key().as_slice()).unwrap();
            let public = X25519HkdfSha256::sk_to_pk(&private).to_bytes();
            assert_eq!(public.as_slice(), key(number).public().agreement_key());
        }
    }
}
