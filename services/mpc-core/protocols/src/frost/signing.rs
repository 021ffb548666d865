//! The common parts of both ways of signing: nonces and their commitments, partial signatures, and the combination of
//! these.
//!
//! Specification: `docs/protocols/frost.md`; steps are cited as [S3].

use std::collections::BTreeMap;

use engine::session::parse;
use engine::wire::{Reader, Writer};
use engine::{
    AbortCause, Body, BroadcastBody, Envelope, Fault, PartyId, Route, SessionContext, SetupError, Transcript,
};
use frost_core::keys::{KeyPackage, PublicKeyPackage, SigningShare, VerifyingShare};
use frost_core::round1::{NonceCommitment, SigningCommitments, SigningNonces};
use frost_core::round2::{self, SignatureShare};
use frost_core::{
    CheaterDetection, Ciphersuite, Error, Identifier, SigningPackage, VerifyingKey, aggregate_custom,
    compute_binding_factor_list, compute_group_commitment,
};
use primitives::declassify::publish;
use rand_core::CryptoRng;

use super::key::{KeyPublic, KeyShare, TargetKey};
use super::suite::{
    HedgedRng, PointOf, SCALAR_BYTES, Suite, decode_point_of, decode_scalar, encode_point, encode_scalar_of,
    identifier, identity, zero,
};
use super::tags;
use super::target::Target;

/// Bytes of a signature, in both suites.
pub const SIGNATURE_BYTES: usize = 64;
/// Bytes of the number that names a set of nonce commitments.
pub(super) const DIGEST_BYTES: usize = 32;

/// R and z in the encoding of the scheme's standard: RFC 8032, or BIP-340.
pub type Signature = [u8; SIGNATURE_BYTES];

/// A party's two nonce commitments, as they travel and as points.
pub(super) struct Commitments<S: Suite> {
    pub(super) bytes: Vec<u8>,
    pub(super) points: SigningCommitments<S::Cipher>,
}

impl<S: Suite> Commitments<S> {
    /// Both points, compressed.
    pub(super) const BYTES: usize = 2 * S::POINT_BYTES;

    pub(super) fn of(nonces: &SigningNonces<S::Cipher>) -> Option<Self> {
        let points = *nonces.commitments();
        let mut bytes = encode_point::<S>(&points.hiding().value())?;
        bytes.extend(encode_point::<S>(&points.binding().value())?);
        Some(Self { bytes, points })
    }

    /// Those of a peer.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, AbortCause> {
        Self::read_by(reader, decode_point_of::<S>)
    }

    /// Those that this party has once read and kept sealed.
    pub(super) fn read_own(reader: &mut Reader<'_>) -> Result<Self, AbortCause> {
        Self::read_by(reader, S::decode_own)
    }

    fn read_by(reader: &mut Reader<'_>, decode: fn(&[u8]) -> Option<PointOf<S>>) -> Result<Self, AbortCause> {
        let bytes = reader.bytes(Self::BYTES)?;
        let (hiding, binding) = bytes.split_at_checked(S::POINT_BYTES).ok_or(AbortCause::MalformedBody)?;
        let read = |point| decode(point).map(NonceCommitment::new).ok_or(AbortCause::InvalidPoint);
        Ok(Self { bytes: bytes.to_vec(), points: SigningCommitments::new(read(hiding)?, read(binding)?) })
    }
}

/// Round 1 of signing with interaction.
pub struct Commit<S: Suite>(pub(super) Commitments<S>);

impl<S: Suite> Body for Commit<S> {
    const ROUND: u8 = 1;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.0.bytes);
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        Commitments::read(reader).map(Self)
    }
}

impl<S: Suite> BroadcastBody for Commit<S> {}

/// A pair of nonces. Boxed, so that no copy of them stays behind where they are moved from.
pub(super) struct Nonces<S: Suite>(pub(super) Box<SigningNonces<S::Cipher>>);

/// Everyone's commitments, by party.
pub(super) type AllCommitments<S> = BTreeMap<PartyId, Commitments<S>>;

/// [P3] a name for a set of commitments and for what they may be used for: key, epoch, signers, target. The same at all
/// parties that saw the same.
pub(super) fn commitments_id<S: Suite>(
    ctx: &SessionContext,
    target: &Target,
    commitments: &AllCommitments<S>,
) -> [u8; DIGEST_BYTES] {
    let mut transcript = Transcript::new(tags::COMMITMENTS);
    transcript.append("family", S::FAMILY.as_bytes());
    transcript.append("key_id", ctx.key_id().as_bytes());
    transcript.append_u64("epoch", u64::from(ctx.epoch()));
    transcript.append_u64("threshold", ctx.threshold().get() as u64);
    transcript.append("target", &target.to_bytes());
    transcript.append_u64("parties", commitments.len() as u64);
    for (party, commitments) in commitments {
        transcript.append_u64("party", u64::from(party.get()));
        transcript.append("commitments", &commitments.bytes);
    }
    transcript.digest()
}

/// [P1] `count` pairs of nonces from fresh randomness mixed with the share, the session and their place, and then, by
/// the crate, with the share again.
pub(super) fn draw_nonces<S: Suite>(
    ctx: &SessionContext,
    share: &KeyShare<S>,
    count: u8,
    rng: &mut dyn CryptoRng,
) -> Vec<Nonces<S>> {
    let share = share.signing_share.expose();
    // One generator for all of them: each draws other blocks of it, whatever `rng` is worth.
    let mut hedged = HedgedRng::new(ctx, tags::NONCE, &encode_scalar_of::<S>(&share.to_scalar()), rng);
    let draw = |_| {
        let nonces = Nonces(Box::new(SigningNonces::new(share, &mut hedged)));
        publish(nonces.0.commitments()); // posted in the first round
        nonces
    };
    (0..count).map(draw).collect()
}

/// Decodes a body. Everybody can judge for himself, so the blame stays with this party.
pub(super) fn read<B: Body>(ctx: &SessionContext, envelope: &Envelope) -> Result<B, Fault> {
    parse(ctx, envelope).map_err(|cause| Fault::evident(cause, vec![envelope.sender()]))
}

/// Reads a partial signature.
pub(super) fn read_partial<S: Suite>(
    reader: &mut Reader<'_>,
) -> Result<SignatureShare<S::Cipher>, AbortCause> {
    SignatureShare::deserialize(reader.bytes(SCALAR_BYTES)?).map_err(|_| AbortCause::InvalidScalar)
}

/// The message that is signed, the key that signs it, and the parties whose word counts.
pub(super) struct Terms<S: Suite> {
    pub(super) public: KeyPublic<S>,
    pub(super) target: Target,
    pub(super) message: Vec<u8>,
    key: TargetKey<S>,
}

impl<S: Suite> Terms<S> {
    /// The terms of a party, which has `public` from its own sealed share.
    pub(super) fn of_party(
        ctx: &SessionContext,
        public: KeyPublic<S>,
        target: Target,
        message: Vec<u8>,
    ) -> Result<Self, SetupError> {
        Self::new(ctx, public, (target, message), S::decode_own)
    }

    /// The terms of an observer, who was told `public`.
    pub(super) fn of_observer(
        ctx: &SessionContext,
        public: KeyPublic<S>,
        target: Target,
        message: Vec<u8>,
    ) -> Result<Self, SetupError> {
        Self::new(ctx, public, (target, message), decode_point_of::<S>)
    }

    fn new(
        ctx: &SessionContext,
        public: KeyPublic<S>,
        (target, message): (Target, Vec<u8>),
        decode: fn(&[u8]) -> Option<PointOf<S>>,
    ) -> Result<Self, SetupError> {
        public.check(ctx)?;
        if target.taproot.is_some() && !S::DERIVES {
            return Err(SetupError::PayloadInvalid);
        }
        let key = public.target_key(&target, decode).ok_or(SetupError::PayloadInvalid)?;
        Ok(Self { public, target, message, key })
    }

    /// The package that all partial signatures are made for.
    pub(super) fn package(&self, commitments: &AllCommitments<S>) -> Option<SigningPackage<S::Cipher>> {
        let by_identifier = commitments
            .iter()
            .map(|(party, commitments)| Some((identifier::<S>(*party)?, commitments.points)))
            .collect::<Option<_>>()?;
        Some(SigningPackage::new(by_identifier, &self.message))
    }

    /// [S2] the own partial signature. Uses the nonces up.
    pub(super) fn sign(
        &self,
        share: &KeyShare<S>,
        nonces: Nonces<S>,
        package: &SigningPackage<S::Cipher>,
    ) -> Result<SignatureShare<S::Cipher>, Fault> {
        let key = self.key_package(share).ok_or_else(Fault::internal)?;
        let partial = round2::sign(package, &nonces.0, &key).map_err(|_| Fault::internal());
        drop(nonces);
        publish(&partial); // posted in the next message
        partial
    }

    /// The share of the child key, after Taproot's tweak. The crate signs without looking at the verification share in
    /// it, which is therefore not computed.
    fn key_package(&self, share: &KeyShare<S>) -> Option<KeyPackage<S::Cipher>> {
        let scalar = share.signing_share.expose().to_scalar() + self.key.tweak;
        let package = KeyPackage::new(
            identifier::<S>(share.party)?,
            SigningShare::new(scalar),
            VerifyingShare::new(identity::<S>()),
            VerifyingKey::new(self.key.child),
            u16::try_from(share.public.threshold.get()).ok()?,
        );
        match &self.target.taproot {
            Some(taproot) => S::tweak_share(package, taproot),
            None => Some(package),
        }
    }

    /// [S3] sum up, verify once; only if that fails verify each, and name those whose contribution is wrong.
    pub(super) fn combine(
        &self,
        ctx: &SessionContext,
        package: &SigningPackage<S::Cipher>,
        partials: &BTreeMap<PartyId, SignatureShare<S::Cipher>>,
    ) -> Result<Signature, Fault> {
        let by_identifier: BTreeMap<_, _> = partials
            .iter()
            .map(|(party, partial)| Some((identifier::<S>(*party)?, *partial)))
            .collect::<Option<_>>()
            .ok_or_else(Fault::internal)?;
        let combined = match self.sum_up(ctx, package, &by_identifier) {
            Some(signature) => Ok(signature),
            None => {
                let public = self.public_package(ctx, true).ok_or_else(Fault::internal)?;
                aggregate_custom(package, &by_identifier, &public, CheaterDetection::AllCheaters)
            }
        };
        match combined {
            Ok(signature) => signature
                .serialize()
                .ok()
                .and_then(|bytes| bytes.try_into().ok())
                .ok_or_else(|| Fault::nobody(AbortCause::InvalidSignature)),
            Err(Error::InvalidSignatureShare { culprits }) => {
                let named = |party: &PartyId| {
                    identifier::<S>(*party).is_some_and(|identifier| culprits.contains(&identifier))
                };
                let culprits: Vec<PartyId> = partials.keys().filter(|party| named(party)).copied().collect();
                // Our own contribution is wrong only if our share is: nobody else's fault.
                if ctx.me().is_some_and(|me| culprits.contains(&me)) {
                    return Err(Fault::internal());
                }
                Err(Fault::evident(AbortCause::WrongPartialSignature, culprits))
            }
            Err(_) => Err(Fault::nobody(AbortCause::InvalidSignature)),
        }
    }

    /// The sum of the partial signatures, if it is a signature: the crate's aggregation, but verified in variable time,
    /// because everything about it is public.
    fn sum_up(
        &self,
        ctx: &SessionContext,
        package: &SigningPackage<S::Cipher>,
        partials: &BTreeMap<Identifier<S::Cipher>, SignatureShare<S::Cipher>>,
    ) -> Option<frost_core::Signature<S::Cipher>> {
        if !package.signing_commitments().keys().eq(partials.keys()) {
            return None;
        }
        let public = self.public_package(ctx, false)?;
        let (package, partials, public) = S::Cipher::pre_aggregate(package, partials, &public).ok()?;
        let factors = compute_binding_factor_list(&package, public.verifying_key(), &[]).ok()?;
        let package = S::Cipher::pre_commitment_aggregate(&package, &factors).ok()?;
        let nonce_point = compute_group_commitment(&package, &factors).ok()?.to_element();
        let response = partials.values().try_fold(zero::<S>(), |sum, partial| {
            decode_scalar::<S>(&partial.serialize()).map(|scalar| S::add(&sum, &scalar))
        })?;
        let signature = frost_core::Signature::new(nonce_point, response);

        let key = public.verifying_key();
        let (message, checked, key) = S::Cipher::pre_verify(package.message(), &signature, key).ok()?;
        let challenge = S::Cipher::challenge(checked.R(), &key, &message).ok()?.to_scalar();
        let expected = S::combine_public(checked.z(), &S::sub(&zero::<S>(), &challenge), &key.to_element());
        (expected == *checked.R()).then_some(signature)
    }

    /// The key that the signature has to verify under; with the signers' verification shares only if they are `wanted`,
    /// because each costs a decoding.
    fn public_package(&self, ctx: &SessionContext, wanted: bool) -> Option<PublicKeyPackage<S::Cipher>> {
        let share_of = |party: PartyId| {
            let point = self.public.verification_point(party)? + self.key.tweak_point;
            Some((identifier::<S>(party)?, VerifyingShare::new(point)))
        };
        let signers = ctx.parties().iter().filter(|_| wanted);
        let shares = signers.map(share_of).collect::<Option<_>>()?;
        let threshold = u16::try_from(self.public.threshold.get()).ok()?;
        let package = PublicKeyPackage::new(shares, VerifyingKey::new(self.key.child), Some(threshold));
        match &self.target.taproot {
            Some(taproot) => S::tweak_public(package, taproot),
            None => Some(package),
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::{RosterEntry, Secret, SessionId, SessionSettings, Threshold};
    use frost_core::round1::Nonce;
    use serde_json::Value;

    use super::super::sign::Signing;
    use super::super::suite::{Bip340, Ed25519};
    use super::*;

    /// A generator that hands out what a vector says.
    struct Given(Vec<u8>);

    impl frost_ed25519::rand_core::RngCore for Given {
        fn next_u32(&mut self) -> u32 {
            panic!("not asked for")
        }

        fn next_u64(&mut self) -> u64 {
            panic!("not asked for")
        }

        fn fill_bytes(&mut self, bytes: &mut [u8]) {
            let rest = self.0.split_off(bytes.len());
            bytes.copy_from_slice(&std::mem::replace(&mut self.0, rest));
        }

        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), frost_ed25519::rand_core::Error> {
            self.fill_bytes(bytes);
            Ok(())
        }
    }

    impl frost_ed25519::rand_core::CryptoRng for Given {}

    fn bytes(value: &Value) -> Vec<u8> {
        hex::decode(value.as_str().unwrap()).unwrap()
    }

    fn party(value: &Value) -> PartyId {
        PartyId::new(value.as_u64().unwrap().try_into().unwrap()).unwrap()
    }

    /// Nonces from their randomness, commitments, partial signatures, and the signature.
    fn vector<S: Suite>(json: &str) {
        let file: Value = serde_json::from_str(json).unwrap();
        let outputs = |round: &str| file[round]["outputs"].as_array().unwrap().clone();
        let scalar = |value: &Value| decode_scalar::<S>(&bytes(value)).unwrap();
        let inputs = &file["inputs"];
        let held: BTreeMap<PartyId, _> = inputs["participant_shares"]
            .as_array()
            .unwrap()
            .iter()
            .map(|share| (party(&share["identifier"]), scalar(&share["participant_share"])))
            .collect();
        let public = KeyPublic::<S> {
            key_id: "vector".to_owned(),
            epoch: 1,
            threshold: Threshold::new(2).unwrap(),
            public_key: bytes(&inputs["verifying_key_key"]),
            chain_code: [0; 32],
            verification_shares: held
                .iter()
                .map(|(party, share)| (*party, encode_point::<S>(&S::mul_generator(share)).unwrap()))
                .collect(),
            suite: core::marker::PhantomData,
        };
        let signers: Vec<PartyId> =
            inputs["participant_list"].as_array().unwrap().iter().map(party).collect();
        let settings = SessionSettings {
            session_id: SessionId::new([1; 32]),
            me: None,
            roster: signers.iter().map(|id| RosterEntry { id: *id, evidence_key: None }).collect(),
            threshold: public.threshold,
            key_id: public.key_id.clone(),
            epoch: 1,
            payload: Vec::new(),
        };
        let ctx = SessionContext::for_test::<Signing<S>>(settings).unwrap();
        let message = bytes(&inputs["message"]);
        let terms = Terms::of_observer(&ctx, public.clone(), Target::default(), message).unwrap();
        let mut commitments = AllCommitments::<S>::new();
        let mut nonces = BTreeMap::new();
        for output in outputs("round_one_outputs") {
            let id = party(&output["identifier"]);
            let randomness = ["hiding_nonce_randomness", "binding_nonce_randomness"];
            let mut given = Given(randomness.map(|name| bytes(&output[name])).concat());
            let drawn = SigningNonces::new(&SigningShare::new(held[&id]), &mut given);
            let expected = ["hiding_nonce", "binding_nonce"].map(|n| Nonce::from_scalar(scalar(&output[n])));
            assert!(drawn.hiding() == &expected[0] && drawn.binding() == &expected[1]);
            let shown = Commitments::<S>::of(&drawn).unwrap();
            let expected = ["hiding_nonce_commitment", "binding_nonce_commitment"];
            assert_eq!(shown.bytes, expected.map(|name| bytes(&output[name])).concat());
            commitments.insert(id, shown);
            nonces.insert(id, drawn);
        }
        let package = terms.package(&commitments).unwrap();
        let mut partials = BTreeMap::new();
        for output in outputs("round_two_outputs") {
            let id = party(&output["identifier"]);
            let signing_share = Secret::new(SigningShare::new(held[&id]));
            let share = KeyShare { public: public.clone(), party: id, signing_share };
            let own = Nonces(Box::new(nonces.remove(&id).unwrap()));
            let Ok(partial) = terms.sign(&share, own, &package) else { panic!("party {id} cannot sign") };
            assert_eq!(partial.serialize(), bytes(&output["sig_share"]));
            partials.insert(id, partial);
        }
        assert_eq!(partials.keys().copied().collect::<Vec<_>>(), signers);
        let Ok(signature) = terms.combine(&ctx, &package, &partials) else { panic!("not combined") };
        assert_eq!(signature.to_vec(), bytes(&file["final_output"]["sig"]));
    }

    #[test]
    fn rfc9591_ed25519() {
        vector::<Ed25519>(include_str!("../../tests/vectors/frost-ed25519.json"));
    }

    #[test]
    fn rfc9591_inputs_with_bip340() {
        vector::<Bip340>(include_str!("../../tests/vectors/frost-bip340.json"));
    }
}
