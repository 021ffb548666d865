/*
 * Coterie MPC core: the C interface.
 *
 * Computation only: no socket, file, thread or log; the clock is read for randomness alone. Configurations, steps and
 * reports are encoded messages of proto/coterie/core/v1/core.proto; envelopes are opaque bytes that the service carries
 * between parties.
 *
 * Rules that hold for every function:
 *   - Inputs are borrowed for the call and never kept.
 *   - Outputs belong to the library, are freed by its function, and are cleared when the code is not MPC_OK.
 *   - No panic crosses: it is caught, MPC_INTERNAL is returned, and the session it happened in is poisoned.
 * A session may be used by one thread at a time, a vault by several until it is freed. The only global state is a
 * random value of the process and a counter, which are hashed into every draw of randomness.
 */
#ifndef COTERIE_MPC_H
#define COTERIE_MPC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The value that mpc_abi_version returns for this header. */
#define MPC_ABI_VERSION 1

/* Largest accepted input of any function, in bytes. */
#define MPC_MAX_INPUT 4194304

/* Most presignatures that one vault can have, counting those being made. No session starts that would make more. */
#define MPC_MAX_PRESIGNATURES 65536

/* Longest statement that mpc_identity_sign signs, in bytes. */
#define MPC_MAX_STATEMENT 65536

typedef int32_t mpc_code;

/* The call did what it says. */
#define MPC_OK 0
/* A null, oversized or undecodable argument. */
#define MPC_INVALID_ARGUMENT 1
/* Wrong data key, wrong label, or an altered blob. */
#define MPC_UNSEAL_FAILED 2
/* The configuration, identity and share do not describe a session that this core can run. */
#define MPC_SETUP_REFUSED 3
/* An earlier call on this session ended in MPC_INTERNAL; the session can only be freed. */
#define MPC_POISONED 4
/* A bug: a panic was caught, or the operating system gave no randomness. */
#define MPC_INTERNAL 5

/* Bytes borrowed for the call. data may be null when len is 0. */
typedef struct mpc_view {
    const uint8_t *data;
    size_t len;
} mpc_view;

/* Bytes owned by the library: freed, and wiped before that, by mpc_buffer_free. {null, 0} when empty. */
typedef struct mpc_buffer {
    uint8_t *data;
    size_t len;
} mpc_buffer;

/*
 * Holds the data key of one party, and a one-time key for each presignature made with it; freed, and wiped, by
 * mpc_vault_free.
 */
typedef struct mpc_vault mpc_vault;

/* One party's run of one protocol; freed, and wiped, by mpc_session_free. */
typedef struct mpc_session mpc_session;

/* Version of this interface. A caller refuses any other value than the MPC_ABI_VERSION it was built against. */
int32_t mpc_abi_version(void);

/* Bits of mpc_process_protect. PR_SET_DUMPABLE is 0: no other process of the user reads this memory, no core dump. */
#define MPC_PROTECTED_UNREADABLE 1
/* RLIMIT_CORE is 0. */
#define MPC_PROTECTED_NO_CORE 2
/* Every data key so far is locked in memory (mlock) and out of core dumps. Absent if RLIMIT_MEMLOCK is too small. */
#define MPC_PROTECTED_LOCKED 4

/*
 * Protects the memory of the whole process, for ever, as far as the system allows; with 0 it only reports.
 * For the program, not for a library: debuggers and profilers of the same user are locked out as well.
 * Returns the MPC_PROTECTED_ bits that hold. None of them is needed for anything else to work.
 */
int32_t mpc_process_protect(int32_t protect);

/*
 * Argon2id, version 0x13 (RFC 9106), without secret key and associated data. The memory is wiped and given back before
 * this returns, which a garbage collected heap would not do.
 * passphrase: any. salt: 8 to 64 bytes. memory_kib: 8 times lanes to 262144. passes: 1 to 64. lanes: 1 to 16.
 * out: 32 bytes, secret; freed, and wiped, with mpc_buffer_free. MPC_INTERNAL: there is not so much memory.
 */
mpc_code mpc_argon2id(mpc_view passphrase, mpc_view salt, uint32_t memory_kib, uint32_t passes, uint32_t lanes,
                      mpc_buffer *out);

/*
 * Takes a copy of a 32-byte data key.
 * The caller wipes its own copy. Sessions keep what they need: the vault may be freed before them.
 * out: freed with mpc_vault_free.
 */
mpc_code mpc_vault_open(mpc_view data_key32, mpc_vault **out);

/* Wipes and frees. Null is ignored. */
void mpc_vault_free(mpc_vault *vault);

/*
 * Seals bytes for this vault; the label is associated data and not stored.
 * label: at most 255 bytes.
 * out: freed with mpc_buffer_free.
 */
mpc_code mpc_vault_seal(const mpc_vault *vault, mpc_view label, mpc_view plaintext, mpc_buffer *out);

/*
 * Opens what mpc_vault_seal made with the same label; anything else is MPC_UNSEAL_FAILED.
 * out: secret; freed, and wiped, with mpc_buffer_free.
 */
mpc_code mpc_vault_unseal(const mpc_vault *vault, mpc_view label, mpc_view sealed, mpc_buffer *out);

/*
 * Makes a presignature useless without using it. One that the vault does not have (any more) is no error.
 * presignature_id: 32 bytes, Presignature.id of a Done; or the session of a node of a seed, which is forgotten.
 */
mpc_code mpc_vault_drop_presignature(const mpc_vault *vault, mpc_view presignature_id);

/*
 * Makes the Ed25519 key with which a party signs the envelopes that may have to serve as evidence.
 * party_name: 1 to 255 bytes of UTF-8, stored in the blob and bound to it.
 * sealed_identity: for mpc_session_start. evidence_public_key: 32 bytes for the roster. Both are freed with
 * mpc_buffer_free.
 */
mpc_code mpc_identity_create(const mpc_vault *vault, mpc_view party_name, mpc_buffer *sealed_identity,
                             mpc_buffer *evidence_public_key);

/*
 * Signs a statement that the service makes in its party's name: Ed25519 with the evidence key over
 * "coterie/statement-signature/1" followed by SHA-256(statement). Never a valid signature of an envelope.
 * sealed_identity: of mpc_identity_create, with this vault; anything else is MPC_UNSEAL_FAILED. statement: at most
 * MPC_MAX_STATEMENT bytes.
 * signature64: 64 bytes, the same for the same statement; freed with mpc_buffer_free.
 */
mpc_code mpc_identity_sign(const mpc_vault *vault, mpc_view sealed_identity, mpc_view statement, mpc_buffer *signature64);

/*
 * Starts one session.
 * vault: null only for an observer. config: coterie.core.v1.SessionConfig; a field that the protocol does not take must
 * be empty. sealed_identity: for key generation, refresh, reshare and a join; not looked at otherwise. sealed_share:
 * for signing with it, presigning, refresh, dealing in a reshare, publication, set-up of a pair, and as an issuer in a
 * join; empty otherwise.
 * A presignature is sealed under a random key of its own that only this vault has. The start of a session that is to
 * use it destroys that key, whatever comes of the session: the same blob never opens again, nor in another vault, even
 * one of the same data key. Only a configuration that describes no session at all (a missing field, a wrong length)
 * leaves it. The start of a join uses up its run in the same way.
 * out: freed with mpc_session_free. step: coterie.core.v1.Step. error_detail: UTF-8 without secrets, set only when the
 * code is MPC_INVALID_ARGUMENT or MPC_SETUP_REFUSED. step and error_detail are freed with mpc_buffer_free.
 */
mpc_code mpc_session_start(const mpc_vault *vault, mpc_view config, mpc_view sealed_identity, mpc_view sealed_share,
                           mpc_session **out, mpc_buffer *step, mpc_buffer *error_detail);

/*
 * Hands one received envelope to a session.
 * authenticated_sender: the party that the channel proved. A wrong or hostile envelope is a step that says so, not a
 * code.
 * step: coterie.core.v1.Step; freed with mpc_buffer_free.
 */
mpc_code mpc_session_handle(mpc_session *session, uint32_t authenticated_sender, mpc_view envelope, mpc_buffer *step);

/*
 * Judges what a party reports of another in key generation, refresh or reshare: a pure function of its arguments, the
 * same that the parties apply. Needs no vault, identity or share.
 * config: coterie.core.v1.SessionConfig as of an observer (own 0); of a refresh or reshare with key_public as it was
 * before.
 * accusation: coterie.core.v1.Accusation, with the evidence of an Abort.
 * verdict: coterie.core.v1.Verdict; 0 unless MPC_OK. error_detail: UTF-8 without secrets, set only when the code is
 * MPC_INVALID_ARGUMENT or MPC_SETUP_REFUSED; freed with mpc_buffer_free.
 */
mpc_code mpc_judge(mpc_view config, mpc_view accusation, int32_t *verdict, mpc_buffer *error_detail);

/*
 * Verifies BLS signatures of several sessions at once, for less than one by one. Needs no vault.
 * call: coterie.core.v1.VerifyCall.
 * valid: 1 if every claim is true, 0 if at least one is not, or unless MPC_OK; a list with one that is not passes with
 * chance 2^-128. error_detail: UTF-8 without secrets, set only when the code is MPC_INVALID_ARGUMENT or
 * MPC_SETUP_REFUSED; freed with mpc_buffer_free.
 */
mpc_code mpc_verify(mpc_view call, int32_t *valid, mpc_buffer *error_detail);

/*
 * Does one call about a group of anonymous approvers that needs no session: registration, runs of a join, approvals,
 * openings. Key generation, publication and join are sessions.
 * vault: null for calls that need no secret. sealed_identity: of mpc_identity_create, with this vault, for calls that
 * sign; not looked at otherwise. call: coterie.core.v1.GroupCall.
 * A run that was ordered or counted is kept by the vault, which hands it out to one session, and forgets it when it is
 * freed.
 * reply: coterie.core.v1.GroupReply, of which sealed fields are secrets under the vault's key; a fault of bytes of
 * others is a reply that says so, not a code. error_detail: UTF-8 without secrets, set only when the code is
 * MPC_INVALID_ARGUMENT or MPC_SETUP_REFUSED. Both are freed with mpc_buffer_free.
 */
mpc_code mpc_group_call(const mpc_vault *vault, mpc_view sealed_identity, mpc_view call, mpc_buffer *reply,
                        mpc_buffer *error_detail);

/*
 * Does one call about an imported key or seed that needs no session: an owner splits it, a party takes its share or
 * forgets a peer. Set-ups of pairs, preparations, nonces, answers and derivations are sessions. The vault keeps
 * set-ups, preparations, nonces and nodes of seeds, and forgets them when it is freed.
 * vault: null for an owner. sealed_identity: of mpc_identity_create, with this vault, for a party that takes its share;
 * not looked at otherwise. call: coterie.core.v1.ImportCall; an owner's has the key or seed, and the caller wipes it.
 * reply: coterie.core.v1.ImportReply, of which a sealed share is a secret under the vault's key; bytes that are no
 * share are a reply that says so, not a code. error_detail: UTF-8 without secrets, set only when the code is
 * MPC_INVALID_ARGUMENT or MPC_SETUP_REFUSED. Both are freed with mpc_buffer_free.
 */
mpc_code mpc_import_call(const mpc_vault *vault, mpc_view sealed_identity, mpc_view call, mpc_buffer *reply,
                         mpc_buffer *error_detail);

/* Wipes and frees. Null is ignored. */
void mpc_session_free(mpc_session *session);

/* Wipes and frees the bytes and clears the struct. Null and empty are ignored. */
void mpc_buffer_free(mpc_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif /* COTERIE_MPC_H */
