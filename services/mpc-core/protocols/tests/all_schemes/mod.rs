//! The same for every scheme: blame, hedged nonces, a key of another scheme, the corpus of the fuzzers.

mod blame;
mod fuzz_seeds;
mod nonce_hedging;
mod other_key;
