package io.coterie.acceptance;

import io.coterie.mpc.Vault;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.ImportCall;
import io.coterie.proto.core.v1.ImportReply;

/** A vault that does what another one does, but for the sessions that it starts. */
interface ForwardingVault extends Vault {
  /** The other one. */
  Vault vault();

  @Override
  default byte[] seal(String label, byte[] plaintext) {
    return vault().seal(label, plaintext);
  }

  @Override
  default byte[] unseal(String label, byte[] sealed) {
    return vault().unseal(label, sealed);
  }

  @Override
  default SealedIdentity createIdentity(String partyName) {
    return vault().createIdentity(partyName);
  }

  @Override
  default byte[] signStatement(byte[] sealedIdentity, byte[] statement) {
    return vault().signStatement(sealedIdentity, statement);
  }

  @Override
  default void dropPresignature(byte[] id) {
    vault().dropPresignature(id);
  }

  @Override
  default GroupReply call(GroupCall call, byte[] sealedIdentity) {
    return vault().call(call, sealedIdentity);
  }

  @Override
  default ImportReply call(ImportCall call, byte[] sealedIdentity) {
    return vault().call(call, sealedIdentity);
  }

  @Override
  default void close() {
    vault().close();
  }
}
