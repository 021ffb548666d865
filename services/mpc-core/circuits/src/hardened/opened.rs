//! A secret number that left a circuit under the masks of both parties.

use zeroize::Zeroizing;

use super::circuit::MASK_BITS;
use crate::authenticated::bits::Link;
use crate::authenticated::dabits::Group;
use crate::authenticated::{Abort, DaBits, Pair, Role};
use crate::line::Line;

/// Steps of an opening are numbered from here, beyond those of the evaluation.
const OPENING: u64 = 1 << 34;

/// A number modulo the order of a group, as two parties hold it: this party's share, and the points of both.
pub(super) struct Opened<G: Group> {
    pub(super) share: Zeroizing<G::Scalar>,
    pub(super) point: G::Point,
    pub(super) their_point: G::Point,
}

impl<G: Group> Opened<G> {
    /// [Hardened 5] The garbler's share is the masked number less its mask, and the evaluator's is less its own mask.
    /// Each sends its point with the MAC of its mask, the garbler first.
    pub(super) async fn new<L: Line>(
        pair: &Pair,
        session: [u8; 32],
        masks: &DaBits,
        masked: &[bool],
        channel: &mut L,
    ) -> Result<Opened<G>, Abort> {
        pair.guard(async {
            let link = Link::resume(pair, session, OPENING, channel);
            let masked = G::number(masked.iter().map(|bit| G::Scalar::from(u64::from(*bit))));
            let mask = masks.number::<G>(0..MASK_BITS)?;
            let known = |garbles: bool| if garbles { *masked } else { G::Scalar::default() };
            let garbles = pair.role() == Role::Garbler;
            let share = Zeroizing::new(known(garbles) - *mask.value());
            let point = G::mul_base(&share);
            let (mut theirs, mut tag) = (G::encode(&point), mask.tag());
            let own = [theirs.as_ref(), tag.as_ref()].concat();
            if garbles {
                link.go_on()?;
                link.channel.say(&own)?;
            }
            link.channel.receive(theirs.as_mut()).await?;
            link.channel.receive(tag.as_mut()).await?;
            let their_point = G::decode(&theirs)?;
            mask.check(&(G::mul_base(&known(!garbles)) - their_point), &tag)?;
            if !garbles {
                link.go_on()?;
                link.channel.say(&own)?;
            }
            Ok(Opened { share, point, their_point })
        })
        .await
    }
}
