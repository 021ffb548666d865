package io.coterie.acceptance.cluster;

import io.coterie.channel.ChannelAccount;
import io.coterie.channel.ChannelConfig;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.link.Enrolment;
import io.coterie.channel.signal.SignalChannel;
import io.coterie.platform.intent.RequesterKeys;
import io.coterie.trust.Glob;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Member;
import io.coterie.trust.MemberEntry;
import io.coterie.trust.RootKey;
import io.coterie.trust.Roots;
import io.coterie.trust.Roster;
import io.coterie.trust.Trust;
import io.coterie.trust.TrustFile;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.signal.libsignal.protocol.InvalidKeyException;

/** The members of an installation: their accounts at messaging, and the roster that all pin. */
public final class Members {
  /** Name of every installation that is made here. */
  public static final String INSTALLATION = "acceptance";

  private final InstallationCa ca;
  private final Settings settings;
  private final URI messaging;
  private @Nullable Roster roster;
  private @Nullable ChannelAccount secondCoordinator;

  Members(InstallationCa ca, Settings settings, URI messaging) {
    this.ca = ca;
    this.settings = settings;
    this.messaging = messaging;
  }

  /**
   * Does the operator's part: collects every member's own entry out of band and pins all of them.
   *
   * @param holders the services that are members, each with the folder of its trust file
   * @param requesters whose keys clients believe
   * @param clients the trust file of the clients
   * @param second name of {@link ClusterPlan#secondCoordinator}, or empty
   */
  void pin(
      Map<Service, Path> holders,
      List<Settings.Requester> requesters,
      Path clients,
      String second,
      Duration timeout) {
    List<Member> members = new ArrayList<>();
    try {
      for (Map.Entry<Service, Path> holder : holders.entrySet()) {
        Path entry = holder.getValue().resolve("roster-entry.json");
        holder.getKey().awaitFile(entry, timeout);
        members.add(MemberEntry.parse(Files.readAllBytes(entry)));
      }
      if (!second.isEmpty()) {
        secondCoordinator = enrol(second);
        members.add(member(second, Member.Role.COORDINATOR, 0, secondCoordinator));
      }
      roster = new Roster(INSTALLATION, 1, members);
      List<Trust.Requester> believed = new ArrayList<>();
      for (Settings.Requester requester : requesters) {
        believed.add(believed(requester));
      }
      TrustFile trust = signed(new Trust(roster, believed));
      for (Path folder : holders.values()) {
        trust.write(folder.resolve("trust.json"));
      }
      trust.write(clients);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The trust file with the signature of its only root key, which nobody keeps. */
  private static TrustFile signed(Trust trust) {
    try {
      KeyPair root = KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
      Roots roots = new Roots(1, List.of(new RootKey(root.getPublic().getEncoded())));
      return TrustFile.first(trust, roots).signed(root.getPrivate());
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every JDK has Ed25519", e);
    }
  }

  private static Trust.Requester believed(Settings.Requester requester) throws IOException {
    byte[] publicKey =
        RequesterKeys.publicKey(Files.readString(requester.publicKey())).getEncoded();
    return new Trust.Requester(
        requester.name(),
        List.of(publicKey),
        List.of(new Glob(requester.keys())),
        Set.of(KeyRight.values()),
        requester.fewest(),
        requester.fewest());
  }

  /** Makes a messaging account for one of {@link ClusterPlan#alsoEnrol}. */
  public ChannelAccount enrol(String stranger) {
    try {
      return Enrolment.enrol(
          messaging,
          Files.readString(ca.certificateFile()),
          null,
          settings.number(stranger),
          settings.token(stranger));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The entry by which others would pin a member; without an evidence key. */
  public static Member member(String name, Member.Role role, int partyId, ChannelAccount account) {
    try {
      byte[] identity = new IdentityKeyPair(account.identityKeyPair()).getPublicKey().serialize();
      byte[] evidence = new byte[role == Member.Role.PARTY ? 32 : 0];
      return new Member(
          name, role, partyId, "nowhere", account.aci(), account.deviceId(), identity, evidence);
    } catch (InvalidKeyException e) {
      throw new IllegalStateException("a fresh account has a damaged identity key", e);
    }
  }

  /** A channel to this installation under an account of {@link #enrol}. */
  public SecureChannel openChannel(ChannelAccount account, Roster own) {
    try {
      return SignalChannel.open(
          ChannelConfig.of(messaging, Files.readString(ca.certificateFile()), settings.trustRoot()),
          account,
          own,
          new SimpleMeterRegistry());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The account of {@link ClusterPlan#secondCoordinator}. */
  public ChannelAccount secondCoordinator() {
    return Objects.requireNonNull(secondCoordinator, "no second coordinator");
  }

  /** The roster that all members pin. */
  public Roster roster() {
    return Objects.requireNonNull(roster, "nothing is pinned yet");
  }
}
