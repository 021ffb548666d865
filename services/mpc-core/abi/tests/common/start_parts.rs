//! One input of the fuzz target `session_config` as what a session starts from.

/// Configuration, identity and share: the first four bytes are the lengths of the first two.
pub fn split(data: &[u8]) -> [&[u8]; 3] {
    let Some((lengths, rest)) = data.split_first_chunk::<4>() else { return [data, &[], &[]] };
    let [config, identity] = [[lengths[0], lengths[1]], [lengths[2], lengths[3]]].map(u16::from_be_bytes);
    let (config, rest) = rest.split_at(usize::from(config).min(rest.len()));
    let (identity, share) = rest.split_at(usize::from(identity).min(rest.len()));
    [config, identity, share]
}
