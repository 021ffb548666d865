//! The set-up of each two parties of a key beside their shares: the oblivious transfers with which they multiply, and a
//! seed for shares of zero.

use std::collections::BTreeMap;

use engine::wire::{Reader, Writer};
use engine::{AbortCause, PartyId, Route, Secret};
use primitives::ot::{
    CORRECTION_BYTES, Initiator, REQUEST_BYTES, RESPONSE_BYTES, Request, Responder, is_response,
};
use rand_core::CryptoRng;

use crate::dealing::{CheckFailed, Companion, Roles, Setting};
use crate::hash_input::{HashInput, hash_input};

use super::key::{Pair, ZERO_SEED_BYTES};
use super::tags;

/// The data that a party keeps for its peers.
pub type Pairs = BTreeMap<PartyId, Pair>;
type Half = Secret<[u8; ZERO_SEED_BYTES]>;

/// The set-ups of one party with all its peers. The lower party of a pair is the initiator of the transfers.
pub struct Transfers {
    /// Own halves, then what both halves give.
    zero_seeds: BTreeMap<PartyId, Half>,
    initiated: BTreeMap<PartyId, Initiator>,
    responders: BTreeMap<PartyId, Responder>,
    pairs: Pairs,
}

/// One message of a pair. Empty between parties that will not multiply, and where it is the other's turn.
pub struct Message {
    /// Sent only together with the share.
    zero_seed: Option<Half>,
    transfer: Transfer,
}

/// The transfers' part of a message.
enum Transfer {
    /// A request that came, decoded once: its points cost as much as a tenth of the answer.
    Request(Request),
    /// A request that goes out, a response, corrections, or nothing.
    Bytes(Vec<u8>),
}

impl Transfer {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Transfer::Request(request) => request.as_bytes(),
            Transfer::Bytes(bytes) => bytes,
        }
    }
}

impl Companion for Transfers {
    type Message = Message;
    type Output = Pairs;

    const ROUNDS: u8 = 2;
    const MAX_MESSAGE: [usize; 3] =
        [ZERO_SEED_BYTES + 4 + REQUEST_BYTES, 4 + RESPONSE_BYTES, 4 + CORRECTION_BYTES];

    /// Half of a seed for each peer, and a request for each higher one.
    fn begin(setting: &Setting<'_>, rng: &mut dyn CryptoRng) -> (Self, BTreeMap<PartyId, Message>) {
        let mut state = Self {
            zero_seeds: BTreeMap::new(),
            initiated: BTreeMap::new(),
            responders: BTreeMap::new(),
            pairs: BTreeMap::new(),
        };
        let mut messages = BTreeMap::new();
        for peer in setting.ctx.peers().iter() {
            let mut message = Message { zero_seed: None, transfer: Transfer::Bytes(Vec::new()) };
            if setting.roles.paired(setting.me, peer) {
                let mut half = Secret::new([0u8; ZERO_SEED_BYTES]);
                rng.fill_bytes(half.expose_mut());
                message.zero_seed = Some(Secret::new(*half.expose()));
                state.zero_seeds.insert(peer, half);
                if setting.me < peer {
                    let (initiator, request) = Initiator::begin(&binding(setting, setting.me, peer), rng);
                    state.initiated.insert(peer, initiator);
                    message.transfer = Transfer::Bytes(request);
                }
            }
            messages.insert(peer, message);
        }
        (state, messages)
    }

    fn advance(
        &mut self,
        step: u8,
        setting: &Setting<'_>,
        received: BTreeMap<PartyId, Message>,
        rng: &mut dyn CryptoRng,
    ) -> Result<BTreeMap<PartyId, Message>, CheckFailed> {
        let mut messages = BTreeMap::new();
        for (peer, Message { zero_seed, transfer }) in received {
            if let Some(their_half) = zero_seed {
                let own_half = self.zero_seeds.remove(&peer).ok_or(CheckFailed(peer))?;
                let seed = combined_seed(setting, (setting.me, &own_half), (peer, &their_half));
                self.zero_seeds.insert(peer, seed);
            }
            let answer = match step {
                0 => self.respond(setting, peer, &transfer, rng),
                1 => self.correct(peer, transfer.as_bytes(), rng),
                _ => self.complete(peer, transfer.as_bytes()),
            };
            let transfer = Transfer::Bytes(answer.ok_or(CheckFailed(peer))?);
            messages.insert(peer, Message { zero_seed: None, transfer });
        }
        Ok(messages)
    }

    fn finish(self) -> Pairs {
        self.pairs
    }

    fn encode(message: &Message, writer: &mut Writer) {
        if let Some(zero_seed) = &message.zero_seed {
            writer.bytes(zero_seed.expose());
        }
        writer.sized(message.transfer.as_bytes());
    }

    fn decode(step: u8, reader: &mut Reader<'_>, roles: &Roles, route: Route) -> Result<Message, AbortCause> {
        let recipient = route.recipient.ok_or(AbortCause::MalformedBody)?;
        let paired = roles.paired(route.sender, recipient);
        let zero_seed = if paired && step == 0 { Some(Secret::new(*reader.array()?)) } else { None };
        let upward = route.sender < recipient;
        let (due, length) = match step {
            0 => (upward, REQUEST_BYTES),
            1 => (!upward, RESPONSE_BYTES),
            _ => (upward, CORRECTION_BYTES),
        };
        let bytes = reader.sized(length)?;
        let transfer = match step {
            _ if !(paired && due) => bytes.is_empty().then(|| Transfer::Bytes(Vec::new())),
            0 => bytes.try_into().ok().and_then(Request::decode).map(Transfer::Request),
            1 => is_response(bytes).then(|| Transfer::Bytes(bytes.to_vec())),
            _ => (bytes.len() == length).then(|| Transfer::Bytes(bytes.to_vec())),
        };
        transfer.map(|transfer| Message { zero_seed, transfer }).ok_or(AbortCause::MalformedBody)
    }
}

/// Each makes the next message, empty where none is due. `None` if a check failed.
impl Transfers {
    /// The response to a lower party.
    fn respond(
        &mut self,
        setting: &Setting<'_>,
        peer: PartyId,
        transfer: &Transfer,
        rng: &mut dyn CryptoRng,
    ) -> Option<Vec<u8>> {
        let Transfer::Request(request) = transfer else { return Some(Vec::new()) };
        let binding = binding(setting, peer, setting.me);
        let (responder, response) = Responder::respond(&binding, request, rng);
        self.responders.insert(peer, responder);
        Some(response)
    }

    /// Checks what a higher party responded; for the initiator both directions stand from here on.
    fn correct(&mut self, peer: PartyId, response: &[u8], rng: &mut dyn CryptoRng) -> Option<Vec<u8>> {
        let Some(initiator) = self.initiated.remove(&peer) else { return Some(Vec::new()) };
        let (transfers, corrections) = initiator.finish(response.try_into().ok()?, rng).ok()?;
        let zero_seed = self.zero_seeds.remove(&peer)?;
        self.pairs.insert(peer, Pair { zero_seed, transfers });
        Some(corrections)
    }

    /// Checks the corrections of a lower party.
    fn complete(&mut self, peer: PartyId, corrections: &[u8]) -> Option<Vec<u8>> {
        let Some(responder) = self.responders.remove(&peer) else { return Some(Vec::new()) };
        let transfers = responder.finish(corrections.try_into().ok()?).ok()?;
        let zero_seed = self.zero_seeds.remove(&peer)?;
        self.pairs.insert(peer, Pair { zero_seed, transfers });
        Some(Vec::new())
    }
}

hash_input! {
    /// The values that the transfers of a pair are bound to.
    PairSetUp<'a> under tags::TRANSFER_SETUP {
        openings: &'a [u8; 32],
        lower: PartyId,
        higher: PartyId,
    }
}

hash_input! {
    /// The seed of a pair: secret while one of the two halves is.
    ZeroSeed<'a> under tags::ZERO_SEED {
        openings: &'a [u8; 32],
        lower: PartyId,
        lower_half: &'a [u8; ZERO_SEED_BYTES],
        higher: PartyId,
        higher_half: &'a [u8; ZERO_SEED_BYTES],
    }
}

fn binding(setting: &Setting<'_>, lower: PartyId, higher: PartyId) -> [u8; 32] {
    PairSetUp { openings: setting.openings, lower, higher }.digest(setting.ctx)
}

fn combined_seed(setting: &Setting<'_>, a: (PartyId, &Half), b: (PartyId, &Half)) -> Half {
    let (lower, higher) = if a.0 < b.0 { (a, b) } else { (b, a) };
    let seed = ZeroSeed {
        openings: setting.openings,
        lower: lower.0,
        lower_half: lower.1.expose(),
        higher: higher.0,
        higher_half: higher.1.expose(),
    };
    Secret::new(seed.digest(setting.ctx))
}
