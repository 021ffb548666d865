package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import java.util.List;
import java.util.concurrent.CompletionStage;

/** What this party remembers of how many sessions others have claimed. */
public interface ShownClaims {
  /** The most that each peer has shown. */
  List<Shown> shown();

  /** Remembers what a peer has shown: soon, not at once. */
  void show(Shown shown);

  /**
   * A party's store went back to an earlier state: nothing multiplies with it, by any share that is
   * here now. At once in memory, durably when it completes.
   *
   * @param party id of the peer, or {@link KeyShareStore#ITSELF}
   * @return the keys that this is about
   */
  CompletionStage<List<String>> wentBack(int party);

  /**
   * @param life when its process began, milliseconds since 1970
   * @param statement {@code coterie.party.v1.ClaimCount} with the peer's signature; empty if it has
   *     shown none
   */
  record Shown(int party, long life, long claims, ByteString statement) {}
}
