package io.coterie.cli.key;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import io.coterie.cli.profile.SeedFile;
import io.coterie.cli.terminal.CliException;
import io.coterie.mpc.MpcException;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.proto.core.v1.ImportCall;
import io.coterie.proto.core.v1.KeySplit;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.SplitKey;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * A key of its owner, split by the core into a share for each party, which only that party can
 * open: each is encrypted to the evidence key that the trust file pins.
 *
 * @param publicKey 32 bytes
 * @param shares in the order in which the parties were named
 */
record SplitSeed(ByteString publicKey, List<ByteString> shares) {
  SplitSeed {
    shares = List.copyOf(shares);
  }

  /**
   * Splits the key of a file, whose public key is that of its seed if it says one. The seed is
   * wiped before this returns.
   *
   * @param key resource name
   * @param parties names, in the roster's spelling
   */
  static SplitSeed of(String key, Path file, List<String> parties, Roster roster) {
    List<Member> holders = parties.stream().map(name -> party(name, roster)).toList();
    try (SeedFile seed = SeedFile.read(file)) {
      SplitKey.Builder split =
          SplitKey.newBuilder()
              .setKeyId(key)
              .setSecret(UnsafeByteOperations.unsafeWrap(seed.seed()));
      holders.stream()
          .sorted(Comparator.comparingInt(Member::partyId))
          .forEach(
              holder ->
                  split.addParties(
                      Party.newBuilder()
                          .setId(holder.partyId())
                          .setEvidenceKey(ByteString.copyFrom(holder.evidenceKey()))));
      KeySplit made =
          NativeMpcCore.load()
              .call(ImportCall.newBuilder().setSplitKey(split).build())
              .getKeySplit();
      seed.requirePublicKey(made.getKeyPublic().getPublicKey().toByteArray());
      Map<Integer, ByteString> byParty =
          made.getSharesList().stream()
              .collect(Collectors.toMap(share -> share.getParty(), share -> share.getValue()));
      return new SplitSeed(
          made.getKeyPublic().getPublicKey(),
          holders.stream().map(holder -> byParty.get(holder.partyId())).toList());
    } catch (MpcException e) {
      throw CliException.local(
          "the key cannot be split among these parties: name 2 to 20, each once");
    }
  }

  private static Member party(String name, Roster roster) {
    return roster
        .byName(name)
        .filter(member -> member.role() == Member.Role.PARTY)
        .orElseThrow(
            () -> CliException.local("party " + name + " is not in the trust file's roster"));
  }
}
