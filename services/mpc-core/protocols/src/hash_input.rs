//! The inputs of hashes, as structures: each names its tag and its fields once, so that no hash goes without a tag, and
//! no two different inputs hash the same bytes.

use std::collections::BTreeMap;

use engine::{PartyId, SessionContext, Tag, Transcript};

/// A structure made by [`hash_input`].
pub(crate) trait HashInput {
    /// The purpose of the hash.
    const TAG: Tag;

    /// The session, the tag, then each field with its name and length.
    fn transcript(&self, ctx: &SessionContext) -> Transcript;

    /// 32 bytes that depend on the session, the tag and every field.
    fn digest(&self, ctx: &SessionContext) -> [u8; 32] {
        self.transcript(ctx).digest()
    }

    /// The same, 64 bytes: enough to be reduced to a uniform scalar.
    fn wide(&self, ctx: &SessionContext) -> [u8; 64] {
        self.transcript(ctx).wide()
    }
}

/// A value that can be a field. A map, or a list, may become several items.
pub(crate) trait Field {
    fn absorb(&self, name: &'static str, transcript: &mut Transcript);
}

impl Field for &[u8] {
    fn absorb(&self, name: &'static str, transcript: &mut Transcript) {
        transcript.append(name, self);
    }
}

impl Field for &[u8; 32] {
    fn absorb(&self, name: &'static str, transcript: &mut Transcript) {
        transcript.append(name, self.as_slice());
    }
}

impl Field for PartyId {
    fn absorb(&self, name: &'static str, transcript: &mut Transcript) {
        transcript.append_u64(name, u64::from(self.get()));
    }
}

impl Field for u8 {
    fn absorb(&self, name: &'static str, transcript: &mut Transcript) {
        transcript.append_u64(name, u64::from(*self));
    }
}

/// Each party, and its value under the name of the field.
impl Field for &BTreeMap<PartyId, [u8; 32]> {
    fn absorb(&self, name: &'static str, transcript: &mut Transcript) {
        for (party, value) in *self {
            party.absorb("party", transcript);
            value.absorb(name, transcript);
        }
    }
}

impl Field for &Vec<(PartyId, [u8; 32])> {
    fn absorb(&self, name: &'static str, transcript: &mut Transcript) {
        let items = self.iter().map(|(party, digest)| {
            let mut item = party.get().to_be_bytes().to_vec();
            item.extend_from_slice(digest);
            item
        });
        transcript.append_list(name, items);
    }
}

/// A structure with a tag and fields, in one of two forms:
///
/// - `Name<'a> under TAG { .. }`, hashed as the tag and then the fields. The tag's item has the label `tag`, or the one
///   that follows `as`.
/// - `Name<'a> by party under TAG { .. }`: something that one party says. The structure has the party as a field too,
///   and the hash names it beside the tag.
///
/// A field's item is labelled with the field's name, or with the text that follows `as`.
macro_rules! hash_input {
    (
        $(#[$doc:meta])*
        $name:ident $(<$life:lifetime>)? $(by $party:ident)? under $tag:path $(as $tag_label:literal)? {
            $($field:ident: $kind:ty $(as $label:literal)?),+ $(,)?
        }
    ) => {
        $(#[$doc])*
        struct $name $(<$life>)? {
            $($party: engine::PartyId,)?
            $($field: $kind),+
        }

        impl $(<$life>)? $crate::hash_input::HashInput for $name $(<$life>)? {
            const TAG: engine::Tag = $tag;

            fn transcript(&self, ctx: &engine::SessionContext) -> engine::Transcript {
                let mut transcript =
                    $crate::hash_input::hash_input!(@begin ctx $(by (self.$party))? $(as $tag_label)?);
                $($crate::hash_input::Field::absorb(
                    &self.$field,
                    $crate::hash_input::hash_input!(@label $field $($label)?),
                    &mut transcript,
                );)+
                transcript
            }
        }
    };
    (@begin $ctx:ident by $party:tt) => { $ctx.transcript().fork(Self::TAG, $party) };
    (@begin $ctx:ident) => { $crate::hash_input::hash_input!(@begin $ctx as "tag") };
    (@begin $ctx:ident as $label:literal) => {{
        let mut transcript = $ctx.transcript();
        transcript.append($label, Self::TAG.as_bytes());
        transcript
    }};
    (@label $field:ident) => { stringify!($field) };
    (@label $field:ident $label:literal) => { $label };
}

pub(crate) use hash_input;
