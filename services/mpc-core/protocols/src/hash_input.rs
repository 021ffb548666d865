//! What is hashed, as structures: each names its tag and its fields once, so that no hash goes without a tag, and no
//! two different inputs hash the same bytes.

use engine::{PartyId, SessionContext, Transcript};

/// A structure made by [`hash_input`].
pub(crate) trait HashInput {
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

/// What can be a field.
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

/// A structure with a tag and fields.
macro_rules! hash_input {
    ($(#[$doc:meta])* $name:ident<$life:lifetime> under $tag:path { $($field:ident: $kind:ty),+ $(,)? }) => {
        $(#[$doc])*
        struct $name<$life> {
            $($field: $kind),+
        }

        impl<$life> $crate::hash_input::HashInput for $name<$life> {
            fn transcript(&self, ctx: &engine::SessionContext) -> engine::Transcript {
                let mut transcript = ctx.transcript();
                transcript.append("tag", $tag.as_bytes());
                $($crate::hash_input::Field::absorb(&self.$field, stringify!($field), &mut transcript);)+
                transcript
            }
        }
    };
}

pub(crate) use hash_input;
