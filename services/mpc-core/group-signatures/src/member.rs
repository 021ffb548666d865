//! A member's key: its secret, and the issuer's signature of it.

use core::fmt;

use engine::Secret;
use engine::wire::{Reader, Writer};
use primitives::bls12_381::{G1, G2, Scalar, pairings_are_equal};
use zeroize::Zeroizing;

use crate::group::GroupPublic;
use crate::registration::secret_bytes;

/// The issuer's answer does not lead to a signature of the member's secret, or stored bytes are not a key of the
/// group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CredentialError;

impl fmt::Display for CredentialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the credential does not verify under the group's key")
    }
}

impl std::error::Error for CredentialError {}

/// sk_i with sigma = g1^{1/(sk_m + sk_i)}.
pub struct MemberKey {
    pub(crate) secret: Secret<Scalar>,
    pub(crate) credential: G1,
    pub(crate) group: [u8; 32],
}

impl MemberKey {
    /// The public point Y_i, under which the member is registered.
    pub fn point(&self) -> G1 {
        G1::mul_generator(&self.secret)
    }

    /// The signature of the secret. It is not secret by itself, but nobody else needs it.
    pub fn credential(&self) -> &G1 {
        &self.credential
    }

    /// The digest of the group that it is a key of.
    pub fn group(&self) -> &[u8; 32] {
        &self.group
    }

    /// Secret and credential, for a store that encrypts them.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut writer = Writer::default();
        writer.bytes(secret_bytes(&self.secret).as_slice());
        writer.bytes(&self.credential.to_compressed());
        Zeroizing::new(writer.finish())
    }

    /// Takes what [`MemberKey::encode`] made, and verifies it again.
    pub fn decode(group: &GroupPublic, bytes: &[u8]) -> Result<Self, CredentialError> {
        let read = |reader: &mut Reader<'_>| -> Option<(Secret<Scalar>, G1)> {
            let secret = Secret::new(Scalar::from_bytes(reader.array().ok()?)?);
            let credential = G1::from_compressed(reader.array().ok()?)?;
            core::mem::replace(reader, Reader::new(&[])).finish().ok()?;
            Some((secret, credential))
        };
        let (secret, credential) = read(&mut Reader::new(bytes)).ok_or(CredentialError)?;
        complete(group, secret, credential)
    }
}

/// [J5] accepts a credential if e(sigma, pk_m g2^{sk_i}) = e(g1, g2).
pub fn complete(
    group: &GroupPublic,
    secret: Secret<Scalar>,
    credential: G1,
) -> Result<MemberKey, CredentialError> {
    let key = group.issuer_in_g2().plus(&G2::mul_generator(&secret));
    let signed = !credential.is_identity()
        && pairings_are_equal((&credential, &key), (&G1::generator(), &G2::generator()));
    if signed { Ok(MemberKey { secret, credential, group: *group.digest() }) } else { Err(CredentialError) }
}
