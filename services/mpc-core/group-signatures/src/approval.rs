//! Approvals: a member says "one of us approves this request", and nothing else.
//!
//! Steps are cited as [S1] (signing), [V1] (verification), [C1] (counting).

use core::fmt;

use engine::wire::{Reader, Writer};
use engine::{Secret, Transcript};
use primitives::bls12_381::{G1, G1_COMPRESSED_BYTES, G2, SCALAR_BYTES, Scalar, pairings_are_equal};
use primitives::declassify::publish;
use rand_core::CryptoRng;

use crate::group::GroupPublic;
use crate::member::MemberKey;
use crate::registration::secret_bytes;
use crate::sigma::{hedged, read_scalar};
use crate::tags;

/// Bytes of an encoded approval: six elements, a challenge, three responses.
pub const APPROVAL_BYTES: usize = ELEMENTS * G1_COMPRESSED_BYTES + 4 * SCALAR_BYTES;
/// Bytes of a request's digest.
pub const REQUEST_BYTES: usize = 32;

const ELEMENTS: usize = 6;
/// Domain separation tag of the points that tags are powers of.
const TAG_DOMAIN: &[u8] = b"COTERIE-WBB-TAG-V01-CS01-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";

/// A member's decision about a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Decision {
    /// It may be done.
    Approve = 1,
    /// It must not be done.
    Reject = 2,
}

/// The subject of an approval. Group and epoch come from the group's public data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Of the signed intent, request id included.
    pub digest: [u8; REQUEST_BYTES],
    /// The decision about it.
    pub decision: Decision,
}

/// A value that is the same in all approvals of one member for one request and decision, and differs otherwise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ApprovalTag(pub [u8; G1_COMPRESSED_BYTES]);

/// Why an approval does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApprovalError {
    /// The encoding has another length, or a scalar is not below the order.
    Malformed,
    /// An element is the identity, not on the curve, or outside the subgroup: part of small order in a tag would
    /// make two of one.
    InvalidElement,
    /// The proof does not verify for this group, request and decision.
    WrongProof,
    /// The member's secret is not signed by the group's issuer.
    NotIssued,
    /// The member has approved this request already.
    CountedTwice,
}

impl fmt::Display for ApprovalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ApprovalError::Malformed => "the approval is malformed",
            ApprovalError::InvalidElement => "an element of the approval is not in the group",
            ApprovalError::WrongProof => "the approval's proof does not verify for this request",
            ApprovalError::NotIssued => "the approval is not by a member of the group",
            ApprovalError::CountedTwice => "the member has approved this request already",
        })
    }
}

impl std::error::Error for ApprovalError {}

/// Why a set of approvals is not enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CountError {
    /// The approval at this place does not count.
    Refused(usize, ApprovalError),
    /// All are good, and there are only so many.
    TooFew(usize),
}

impl fmt::Display for CountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CountError::Refused(place, error) => write!(f, "approval {place}: {error}"),
            CountError::TooFew(count) => write!(f, "only {count} approvals"),
        }
    }
}

impl std::error::Error for CountError {}

/// One approval. Its elements are in the subgroup; whether it holds is said by [`Approval::verify`].
#[derive(Debug)]
pub struct Approval {
    elements: Elements,
    challenge: Scalar,
    responses: Responses,
}

#[derive(Debug)]
struct Elements {
    /// g' = g1^rho.
    blinded_generator: G1,
    /// sigma' = sigma^rho.
    blinded_credential: G1,
    /// sigma-bar = sigma'^{-sk_i}.
    bound_credential: G1,
    /// T.
    tag: G1,
    /// c1 = g1^k and c2 = O^k g1^{sk_i}.
    ephemeral: G1,
    encrypted_member: G1,
}

/// Of sk_i, rho and k.
#[derive(Debug)]
struct Responses {
    secret: Scalar,
    blinding: Scalar,
    ephemeral: Scalar,
}

/// The commitments of the proof, one for each equation.
struct Commitments([G1; 5]);

impl Elements {
    fn in_order(&self) -> [&G1; ELEMENTS] {
        [
            &self.blinded_generator,
            &self.blinded_credential,
            &self.bound_credential,
            &self.tag,
            &self.ephemeral,
            &self.encrypted_member,
        ]
    }
}

impl MemberKey {
    /// [S] approves or rejects a request.
    pub fn approve(
        &self,
        group: &GroupPublic,
        request: &Request,
        rng: &mut dyn CryptoRng,
    ) -> Option<Approval> {
        if self.group != *group.digest() {
            return None;
        }
        // [S1] randomness that is new for every request, even from a generator that repeats itself.
        let known = secret_bytes(&self.secret);
        let context = message(group, request);
        let mut own = hedged(tags::APPROVAL_RANDOMNESS, &[known.as_slice(), &context], rng);
        let mut scalar = || Secret::new(Scalar::random(&mut own));
        let (blinding, ephemeral) = (scalar(), scalar());
        let base = tag_base(group, request);
        // [S2] the elements.
        let blinded_credential = self.credential.times_secret(&blinding);
        let elements = Elements {
            blinded_generator: G1::mul_generator(&blinding),
            blinded_credential,
            bound_credential: blinded_credential.times_secret(&self.secret).negated(),
            tag: base.times_secret(&self.secret),
            ephemeral: G1::mul_generator(&ephemeral),
            encrypted_member: encrypt(group, &ephemeral, &self.secret),
        };
        // [S3] proof of knowledge of all three exponents.
        let (secret_nonce, blinding_nonce, ephemeral_nonce) = (scalar(), scalar(), scalar());
        let commitments = Commitments([
            G1::mul_generator(&blinding_nonce),
            blinded_credential.times_secret(&secret_nonce).negated(),
            base.times_secret(&secret_nonce),
            G1::mul_generator(&ephemeral_nonce),
            encrypt(group, &ephemeral_nonce, &secret_nonce),
        ]);
        let challenge = challenge(group, request, &elements, &commitments);
        let respond = |nonce: &Secret<Scalar>, secret: &Secret<Scalar>| {
            let response = nonce.expose().add(&challenge.mul(secret.expose()));
            publish(&response);
            response
        };
        let responses = Responses {
            secret: respond(&secret_nonce, &self.secret),
            blinding: respond(&blinding_nonce, &blinding),
            ephemeral: respond(&ephemeral_nonce, &ephemeral),
        };
        Some(Approval { elements, challenge, responses })
    }
}

impl Approval {
    /// The elements in order, the challenge, the responses.
    pub fn encode(&self) -> [u8; APPROVAL_BYTES] {
        let mut writer = Writer::with_capacity(APPROVAL_BYTES);
        for element in self.elements.in_order() {
            writer.bytes(&element.to_compressed());
        }
        let Responses { secret, blinding, ephemeral } = &self.responses;
        for scalar in [&self.challenge, secret, blinding, ephemeral] {
            writer.bytes(&scalar.to_bytes());
        }
        let mut bytes = [0u8; APPROVAL_BYTES];
        for (to, from) in bytes.iter_mut().zip(writer.finish()) {
            *to = from;
        }
        bytes
    }

    /// [V1] every element is in the subgroup and not the identity.
    pub fn decode(bytes: &[u8]) -> Result<Self, ApprovalError> {
        if bytes.len() != APPROVAL_BYTES {
            return Err(ApprovalError::Malformed);
        }
        let mut reader = Reader::new(bytes);
        let mut element = || {
            let bytes = reader.array().map_err(|_| ApprovalError::Malformed)?;
            G1::from_compressed(bytes).ok_or(ApprovalError::InvalidElement)
        };
        let elements = Elements {
            blinded_generator: element()?,
            blinded_credential: element()?,
            bound_credential: element()?,
            tag: element()?,
            ephemeral: element()?,
            encrypted_member: element()?,
        };
        let mut scalar = || read_scalar(&mut reader).map_err(|_| ApprovalError::Malformed);
        let challenge = scalar()?;
        let responses = Responses { secret: scalar()?, blinding: scalar()?, ephemeral: scalar()? };
        Ok(Self { elements, challenge, responses })
    }

    /// Whether two approvals are one member's.
    pub fn tag(&self) -> ApprovalTag {
        ApprovalTag(self.elements.tag.to_compressed())
    }

    /// [V] whether some member says this of this request.
    pub fn verify(&self, group: &GroupPublic, request: &Request) -> Result<ApprovalTag, ApprovalError> {
        self.verify_proof(group, request, &tag_base(group, request))?;
        if !self.is_issued(group) {
            return Err(ApprovalError::NotIssued);
        }
        Ok(self.tag())
    }

    /// [V2] the proof leads to commitments from which its challenge follows.
    fn verify_proof(&self, group: &GroupPublic, request: &Request, base: &G1) -> Result<(), ApprovalError> {
        let expected = challenge(group, request, &self.elements, &self.commitments(group, base));
        if expected.to_bytes() == self.challenge.to_bytes() { Ok(()) } else { Err(ApprovalError::WrongProof) }
    }

    fn commitments(&self, group: &GroupPublic, base: &G1) -> Commitments {
        let e = &self.elements;
        let Responses { secret, blinding, ephemeral } = &self.responses;
        let negative = Scalar::zero().sub(&self.challenge);
        let generator = G1::generator();
        let row = |points: &[G1], scalars: &[&Scalar]| {
            let scalars: Vec<Scalar> = scalars.iter().map(|scalar| scalar.copy()).collect();
            G1::combination(points, &scalars)
        };
        Commitments([
            row(&[generator, e.blinded_generator], &[blinding, &negative]),
            row(&[e.blinded_credential, e.bound_credential], &[&Scalar::zero().sub(secret), &negative]),
            row(&[*base, e.tag], &[secret, &negative]),
            row(&[generator, e.ephemeral], &[ephemeral, &negative]),
            row(&[*group.opener(), generator, e.encrypted_member], &[ephemeral, secret, &negative]),
        ])
    }

    /// [V3] e(sigma-bar g', g2) = e(sigma', pk_m): the secret is one that the issuer has signed.
    fn is_issued(&self, group: &GroupPublic) -> bool {
        let Elements { blinded_generator, blinded_credential, bound_credential, .. } = &self.elements;
        let left = bound_credential.plus(blinded_generator);
        pairings_are_equal((&left, &G2::generator()), (blinded_credential, group.issuer_in_g2()))
    }

    pub(crate) fn ciphertext(&self) -> (&G1, &G1) {
        (&self.elements.ephemeral, &self.elements.encrypted_member)
    }
}

/// [C] at least `needed` members say this of this request. One product of two pairings stands for all; if it fails,
/// each approval is looked at alone, and the first that does not count is named.
pub fn count(
    group: &GroupPublic,
    request: &Request,
    approvals: &[Approval],
    needed: usize,
    rng: &mut dyn CryptoRng,
) -> Result<Vec<ApprovalTag>, CountError> {
    let mut tags = Vec::with_capacity(approvals.len());
    let (mut lefts, mut rights) = (Vec::new(), Vec::new());
    let base = tag_base(group, request);
    for (place, approval) in approvals.iter().enumerate() {
        approval.verify_proof(group, request, &base).map_err(|error| CountError::Refused(place, error))?;
        let tag = approval.tag();
        // [C1] each member once.
        if tags.contains(&tag) {
            return Err(CountError::Refused(place, ApprovalError::CountedTwice));
        }
        tags.push(tag);
        let elements = &approval.elements;
        lefts.push(elements.bound_credential.plus(&elements.blinded_generator));
        rights.push(elements.blinded_credential);
    }
    // [C2] the pairing equation of a combination with weights of 128 bits. They depend on all approvals, so that a
    // generator that the approvals' makers can predict tells them nothing.
    let mut hash = Transcript::new(tags::BATCH);
    hash.append("message", &message(group, request));
    hash.append_list("approvals", approvals.iter().map(Approval::encode));
    let mut own = hedged(tags::BATCH, &[&hash.digest()], rng);
    let weights: Vec<Scalar> = approvals.iter().map(|_| weight(&mut own)).collect();
    let left = G1::combination(&lefts, &weights);
    let right = G1::combination(&rights, &weights);
    if !pairings_are_equal((&left, &G2::generator()), (&right, group.issuer_in_g2())) {
        for (place, approval) in approvals.iter().enumerate() {
            approval.verify(group, request).map_err(|error| CountError::Refused(place, error))?;
        }
    }
    if tags.len() < needed { Err(CountError::TooFew(tags.len())) } else { Ok(tags) }
}

fn weight(rng: &mut dyn CryptoRng) -> Scalar {
    let mut wide = [0u8; 64];
    let (_, low) = wide.split_at_mut(48);
    rng.fill_bytes(low);
    Scalar::from_wide(&wide)
}

/// O^k g1^{sk}.
fn encrypt(group: &GroupPublic, ephemeral: &Secret<Scalar>, secret: &Secret<Scalar>) -> G1 {
    group.opener().times_secret(ephemeral).plus(&G1::mul_generator(secret))
}

/// The point whose power is a tag. Nobody knows its logarithm, so tags of different requests cannot be told to be
/// one member's.
fn tag_base(group: &GroupPublic, request: &Request) -> G1 {
    G1::hash(&message(group, request), TAG_DOMAIN)
}

fn message(group: &GroupPublic, request: &Request) -> Vec<u8> {
    let mut message = Vec::with_capacity(2 * REQUEST_BYTES + 1);
    message.extend_from_slice(group.digest());
    message.extend_from_slice(&request.digest);
    message.push(request.decision as u8);
    message
}

fn challenge(
    group: &GroupPublic,
    request: &Request,
    elements: &Elements,
    commitments: &Commitments,
) -> Scalar {
    let mut transcript = Transcript::new(tags::APPROVAL);
    transcript.append("group", group.digest());
    transcript.append("request", &request.digest);
    transcript.append_u64("decision", u64::from(request.decision as u8));
    for element in elements.in_order() {
        transcript.append("element", &element.to_uncompressed());
    }
    for commitment in &commitments.0 {
        transcript.append("commitment", &commitment.to_uncompressed());
    }
    Scalar::from_wide(&transcript.wide())
}

/// For tests: approvals by nobody, and a verifier whose hash function can be programmed.
#[cfg(feature = "forge")]
pub mod forge {
    use primitives::Secret;
    use primitives::bls12_381::{G1, Scalar};
    use rand_core::CryptoRng;

    use super::{Approval, Elements, Request, Responses, challenge, tag_base};
    use crate::group::GroupPublic;

    /// An approval made without any member's secret, with what the hash function must answer to the commitments
    /// that it leads to.
    pub struct Simulated {
        /// The approval.
        pub approval: Approval,
        commitments: [G1; 5],
    }

    /// From the group's public data alone.
    pub fn simulate(group: &GroupPublic, request: &Request, rng: &mut dyn CryptoRng) -> Simulated {
        let mut point = || G1::mul_generator(&Secret::new(Scalar::random(rng)));
        let (blinded_generator, tag, ephemeral, encrypted_member) = (point(), point(), point(), point());
        // sigma-bar g' = (g1^{sk_m})^v for sigma' = g1^v.
        let exponent = Secret::new(Scalar::random(rng));
        let elements = Elements {
            blinded_credential: G1::mul_generator(&exponent),
            bound_credential: group.issuer().times_secret(&exponent).plus(&blinded_generator.negated()),
            blinded_generator,
            tag,
            ephemeral,
            encrypted_member,
        };
        let mut scalar = || Scalar::random(rng);
        let challenge = scalar();
        let responses = Responses { secret: scalar(), blinding: scalar(), ephemeral: scalar() };
        let approval = Approval { elements, challenge, responses };
        let commitments = approval.commitments(group, &tag_base(group, request)).0;
        Simulated { approval, commitments }
    }

    /// The verifier's answer if the hash function answers as the simulator wants at its one place, and as ever
    /// elsewhere.
    pub fn accepts(
        group: &GroupPublic,
        request: &Request,
        programmed: &Simulated,
        approval: &Approval,
    ) -> bool {
        let commitments = approval.commitments(group, &tag_base(group, request));
        let expected = if commitments.0 == programmed.commitments {
            programmed.approval.challenge.copy()
        } else {
            challenge(group, request, &approval.elements, &commitments)
        };
        expected.to_bytes() == approval.challenge.to_bytes() && approval.is_issued(group)
    }
}
