//! Computations of members, openers and issuers of groups with their secrets.

use std::hint::black_box;
use std::sync::{Arc, LazyLock};

use engine::seal::DataKey;
use engine::session::Session;
use engine::{EvidenceKey, EvidencePublicKey, PartyId, Secret, SessionSettings};
use group_signatures::forge::{Custody, Records, admit, attempt, ordered};
use group_signatures::{
    Applicant, Application, Approval, Candidate, Decision, GroupDraft, GroupPublic, Invitation, IssuingKey,
    MemberKey, OpeningShare, RegistrarKey, Request, Ticket,
};
use paillier_issuer::forge::Powers;
use primitives::bls12_381::{G1, G2, Scalar};
use primitives::declassify::{memcheck, publish, published};
use threshold_issuer::key::forge::deal;
use threshold_issuer::{
    AttestedGroup, IssuerShare, Join, JoinInput, JoinTerms, NamedIssuers, Publish, PublishInput, Reservation,
    Reservations, key_id, multiply,
};

use crate::common::{evidence_key, party, rng, settings, threshold};
use crate::operations::STATES;
use crate::tainted::{self, Source, TESTED, bytes};

const TICKET: [u8; 32] = [5; 32];
const REQUEST: Request = Request { digest: [7; 32], decision: Decision::Approve };

/// The same value, secret from here on.
fn secret(scalar: &Scalar) -> Secret<Scalar> {
    let mut bytes = scalar.to_bytes();
    memcheck::make_undefined(&mut bytes);
    Secret::new(Scalar::from_bytes(&bytes).unwrap())
}

fn identity(number: u8) -> EvidenceKey {
    EvidenceKey::from_seed(&Secret::new([number; 32]))
}

/// A group of one manager.
struct Managed {
    custody: Custody,
    key: IssuingKey,
    group: GroupPublic,
}

static MANAGED: LazyLock<Managed> = LazyLock::new(|| {
    let custody = Custody::new(2, 3, &mut rng(20)).unwrap();
    let (key, group) = custody.group("approvers", 1, &mut rng(21)).unwrap();
    Managed { custody, key, group }
});

/// A multiple that is computed in variable time, which must be seen.
pub fn variable_time() {
    black_box(G1::generator().times_public(secret(&Scalar::from_wide(&[3; 64])).expose()));
}

pub fn applicant() {
    let Managed { group, .. } = &*MANAGED;
    let identity = EvidenceKey::from_seed(&Secret::new(bytes(22)));
    let known = published(*identity.public().as_bytes());
    let known = EvidencePublicKey::from_bytes(&known).unwrap();
    let mut source = Source::secret(23);
    let applicant = Applicant::decode(&Applicant::new(group, &TICKET, &mut source).encode()).unwrap();
    let application = applicant.apply(&identity, &mut source).encode();
    publish(application.as_slice());
    let application = Application::decode(&application).unwrap();
    let invitation = Invitation { ticket: TICKET, identity: known };
    let registrar = RegistrarKey::generate(&mut rng(24));
    let ticket = Ticket::bind(group, &invitation, &Records::default(), &application, &registrar).unwrap();
    let (candidate, acceptance) = applicant.accept(&ticket.answer(), &identity).unwrap();
    black_box(acceptance.encode());
    let mut candidate = Candidate::decode(&candidate.encode()).unwrap();
    let _ = black_box(candidate.begin_attempt(1).unwrap());
}

fn member() -> MemberKey {
    let Managed { key, group, .. } = &*MANAGED;
    let plain = admit(key, group, &Secret::new(Scalar::from_wide(&[4; 64]))).unwrap();
    let mut stored = plain.encode();
    memcheck::make_undefined(&mut stored[..32]);
    MemberKey::decode(group, &stored).unwrap()
}

pub fn approval() {
    let approval = member().approve(&MANAGED.group, &REQUEST, &mut Source::secret(25)).unwrap();
    black_box(approval.encode());
}

pub fn opening() {
    let Managed { custody, key, group } = &*MANAGED;
    let member = admit(key, group, &Secret::new(Scalar::from_wide(&[4; 64]))).unwrap();
    let approval = member.approve(group, &REQUEST, &mut rng(26)).unwrap().encode();
    let approval = Approval::decode(&approval).unwrap();
    let (me, share) = (party(TESTED), secret(custody.share(party(TESTED)).expose()));
    let share = OpeningShare::new(group, &REQUEST, &approval, me, &share, &mut Source::secret(27)).unwrap();
    black_box(share.encode());
}

/// A group of several issuers.
struct Shared {
    custody: Custody,
    group: Arc<GroupPublic>,
    attested: Arc<AttestedGroup>,
    shares: Vec<IssuerShare>,
}

/// The party under test is an issuer.
static SHARED: LazyLock<Shared> = LazyLock::new(|| shared([1, 2, 3]));
/// The party under test is none.
static OTHERS: LazyLock<Shared> = LazyLock::new(|| shared([2, 3, 4]));

fn shared(issuers: [u32; 3]) -> Shared {
    let custody = Custody::new(2, 3, &mut rng(28)).unwrap();
    let opener = custody.attested("approvers", 1).unwrap();
    let (shares, key) = deal(&opener, threshold(2), &issuers.map(party), &mut rng(29));
    let draft = GroupDraft::new(opener, G1::mul_generator(&key), G2::mul_generator(&key)).unwrap();
    let nonce = Secret::new(Scalar::from_u64(77));
    let challenge = draft.challenge(&G1::mul_generator(&nonce));
    let response = nonce.expose().add(&challenge.mul(key.expose()));
    let group = Arc::new(draft.prove(challenge, response).unwrap());
    let keys = issuers.map(|number| (party(number), evidence_key(party(number)).public()));
    let named = NamedIssuers::new("acme", threshold(2), &keys).unwrap();
    let sign = |share: &IssuerShare| {
        let me = share.party();
        (me, share.attest(&group, &named, &evidence_key(me)).unwrap())
    };
    let signatures: Vec<_> = shares.iter().map(sign).collect();
    let issuers = Arc::new(shares[0].issuers().clone());
    let attested = AttestedGroup::new(Arc::clone(&group), issuers, &named, &signatures);
    Shared { custody, group, attested: Arc::new(attested.unwrap()), shares }
}

/// An issuer's share as it is stored, and secret if the issuer is under test.
fn share(of: &Shared, number: u32) -> Arc<IssuerShare> {
    let share = of.shares.iter().find(|share| share.party() == party(number)).unwrap();
    let plain = DataKey::new(Secret::new([9; 32]));
    let blob = share.seal(&plain, &mut rng(30)).unwrap();
    let key = if number == TESTED { tainted::data_key() } else { plain };
    Arc::new(IssuerShare::unseal(&key, &blob, &share.label()).unwrap())
}

pub fn multiplication() {
    let (sender, receiver) = &*STATES;
    let (bob, sampled) = multiply::sample(&[6; 32], receiver, &mut Source::secret(31));
    publish(sampled.as_slice());
    let sampled = sampled.as_slice().try_into().unwrap();
    let scalar = Secret::new(Scalar::random(&mut Source::secret(32)));
    let (alice, message) =
        multiply::multiply(&[6; 32], sender, sampled, &scalar, &mut Source::secret(33)).unwrap();
    publish(message.as_slice());
    let product = bob.finish(message.as_slice().try_into().unwrap()).unwrap();
    black_box(alice.expose().add(product.expose()).to_bytes());
}

/// Nothing is reserved yet.
struct NoReservation;

impl Reservations for NoReservation {
    fn reservation(&self, _: &[u8; 32]) -> Option<Reservation> {
        None
    }

    fn has_identity(&self, _: &EvidencePublicKey) -> bool {
        false
    }
}

pub fn reservation() {
    let (group, identity) = (&SHARED.group, identity(34));
    let application = Applicant::new(group, &TICKET, &mut rng(35)).apply(&identity, &mut rng(36)).encode();
    let application = Application::decode(&application).unwrap();
    let invitation = Invitation { ticket: TICKET, identity: identity.public() };
    let records = (&Records::default() as &_, &NoReservation as &_);
    let reservation = Reservation::make(group, &invitation, records, &application).unwrap();
    let answer = reservation.answer(group, &share(&SHARED, TESTED), &mut Source::secret(37)).unwrap();
    black_box(answer.encode());
}

fn settings_of(me: PartyId, parties: &[u32], key_id: &str, payload: &[u8]) -> SessionSettings {
    let settings = settings(Some(me), parties, 2, 1, payload);
    SessionSettings { key_id: key_id.to_owned(), ..settings }
}

pub fn publication() {
    let opener = SHARED.custody.attested("approvers", 1).unwrap();
    let key = key_id(&opener);
    let parties = [1, 2];
    let start = |number: &u32| {
        let (me, opener) = (party(*number), opener.clone());
        let settings = settings_of(me, &parties, &key, &[]);
        let input = PublishInput { share: share(&SHARED, *number), opener };
        (me, Session::<Publish>::start(settings, None, input, &mut Source::of(me)).unwrap())
    };
    tainted::run(parties.iter().map(start).collect());
}

/// A join of `member` with two issuers. The party under test is one of them or the member.
fn join(of: &Shared, member: u32, parties: [u32; 3]) {
    let Shared { group, attested, .. } = of;
    let session = *settings_of(party(member), &parties, group.name(), &[]).session_id.as_bytes();
    let member_secret = Scalar::from_wide(&[8; 64]);
    let point = G1::mul_generator(&Secret::new(member_secret.copy()));
    let terms = || JoinTerms {
        group: Arc::clone(attested),
        attempt: ordered(attempt(group, TICKET, 1, point), session, &evidence_key(party(member)).public()),
    };
    let start = |number: &u32| {
        let (me, terms) = (party(*number), terms());
        let settings = settings_of(me, &parties, group.name(), &terms.payload());
        let input = match *number {
            TESTED if member == TESTED => JoinInput::Member { terms, secret: secret(&member_secret) },
            number if number == member => {
                JoinInput::Member { terms, secret: Secret::new(member_secret.copy()) }
            }
            number => JoinInput::Issuer { terms, share: share(of, number) },
        };
        let key = Some(evidence_key(me));
        (me, Session::<Join>::start(settings, key, input, &mut Source::of(me)).unwrap())
    };
    tainted::run(parties.iter().map(start).collect());
}

pub fn join_of_issuer() {
    join(&SHARED, 4, [1, 2, 4]);
}

pub fn join_of_member() {
    join(&OTHERS, TESTED, [TESTED, 2, 3]);
}

/// Powers modulo n^2: of a secret base, and with a secret exponent.
pub fn powers() {
    let powers = Powers::new(&[0xff; 192]).unwrap();
    let base = powers.base(&mut Source::secret(38));
    black_box(powers.with_secret_exponent(&base, &bytes::<32>(39)));
    black_box(powers.with_public_exponent(&base));
}
