use std::collections::BTreeMap;

use engine::session::Session;
use engine::{EvidenceKey, RosterEntry, SessionId, SessionSettings, Threshold};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use sim::{Address, Faults, Outcome, World};

use super::binding::commitment_of;
use super::*;
use crate::bip32::DerivationPath;
use crate::ecdsa::Keygen;
use engine::Secret;
use primitives::secp256k1::{Scalar, mul_generator};

/// Presigning by parties that choose their nonces: commitments keep a real one from choosing by another's.
struct Chosen(Presigning);

impl Protocol for Chosen {
    const ID: ProtocolId = Presigning::ID;
    const SIGNED: bool = Presigning::SIGNED;
    const ROUNDS: &'static [RoundRule] = Presigning::ROUNDS;
    type Input = (KeyShare, Scalar);
    type Output = Vec<Presignature>;

    fn start(
        ctx: &SessionContext,
        (share, nonce): Self::Input,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let material = Arc::new(Material::new(ctx, share, DerivationPath::default())?);
        let (mut state, mut bodies) = Committed::new(ctx, material, 0, rng);
        state.nonce_point = mul_generator(&nonce);
        state.nonce = Secret::new(nonce);
        state.commitment = commitment_of(ctx, (state.material.me, 0), &state.nonce_point, &state.salt);
        bodies.values_mut().for_each(|body| body.commitment = state.commitment);
        Ok((Self(Presigning::Committed(vec![state])), post_all(vec![bodies])))
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        Ok(match self.0.advance(ctx, inbox, history, rng)? {
            Next::Round(state, outbox) => Next::Round(Self(state), outbox),
            Next::Done(made) => Next::Done(made),
            _ => panic!("presigning ends with its second round"),
        })
    }

    fn judge(_: &SessionContext, _: AbortCause, _: PartyId, _: &[Arc<Envelope>]) -> bool {
        false
    }
}

const PARTIES: [u32; 2] = [1, 2];

fn party(number: u32) -> PartyId {
    PartyId::new(number).unwrap()
}

fn evidence_key(number: u32) -> EvidenceKey {
    EvidenceKey::from_seed(&Secret::new([u8::try_from(number).unwrap(); 32]))
}

fn run<P: Protocol>(
    payload: &[u8],
    input: impl Fn(u32) -> P::Input,
) -> BTreeMap<Address, Outcome<P::Output>> {
    let started = PARTIES.map(|number| {
        let settings = SessionSettings {
            session_id: SessionId::new([3; 32]),
            me: Some(party(number)),
            roster: PARTIES
                .map(|id| RosterEntry { id: party(id), evidence_key: Some(evidence_key(id).public()) })
                .into(),
            threshold: Threshold::new(2).unwrap(),
            key_id: "key".to_owned(),
            epoch: 1,
            payload: payload.to_vec(),
        };
        let key = P::SIGNED.then(|| evidence_key(number));
        let rng = &mut ChaCha20Rng::seed_from_u64(number.into());
        (Some(party(number)), Session::<P>::start(settings, key, input(number), rng).unwrap())
    });
    World::new(1, Faults::default(), started).run()
}

/// No signature can be made from a nonce point of zero, and one of the others has chosen its nonce by this party's.
/// Nothing shows which one, so the others are suspects.
#[test]
fn nonces_that_cancel_make_no_presignature() {
    let nonce = Scalar::from(7u64);
    for (other, degenerate) in [(-nonce, true), (nonce, false)] {
        let mut shares = run::<Keygen>(&[], |_| ());
        let shares: BTreeMap<u32, _> =
            PARTIES.map(|number| (number, shares.remove(&Some(party(number))).unwrap().done.unwrap())).into();
        let shares = std::cell::RefCell::new(shares);
        let payload = PresignPayload { path: DerivationPath::default(), count: 1 }.encode();
        let outcomes = run::<Chosen>(&payload, |number| {
            let share = shares.borrow_mut().remove(&number).unwrap();
            (share, if number == 1 { nonce } else { other })
        });
        for (me, peer) in [(1, 2), (2, 1)] {
            let Outcome { done, aborts, .. } = &outcomes[&Some(party(me))];
            if !degenerate {
                assert_eq!(done.as_ref().unwrap()[0].nonce_point, mul_generator(&(nonce + nonce)));
                continue;
            }
            let [abort] = aborts.as_slice() else { panic!("party {me}: one abort") };
            assert_eq!((abort.cause, &*abort.culprits), (AbortCause::DegenerateKey, &[][..]), "{abort}");
            assert_eq!((&*abort.suspects, abort.reporter), (&[party(peer)][..], Some(party(me))));
            assert!(done.is_none());
        }
    }
}
