package io.coterie.signer.config;

import io.coterie.channel.ChannelAccount;
import io.coterie.channel.ChannelConfig;
import io.coterie.channel.ClientCertificate;
import io.coterie.channel.link.Enrolment;
import io.coterie.channel.signal.SignalChannel;
import io.coterie.trust.Member;
import io.coterie.trust.MemberEntry;
import io.coterie.trust.Roster;
import io.coterie.trust.SignedTrust;
import io.coterie.trust.TrustFile;
import io.micrometer.core.instrument.MeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The Signal channel of the installation, and the trust file. */
final class SignalAccess implements ChannelAccess {
  private final SignerProperties properties;
  private final MeterRegistry registry;

  SignalAccess(SignerProperties properties, MeterRegistry registry) {
    this.properties = properties;
    this.registry = registry;
  }

  @Override
  public ChannelAccount enrol() throws IOException {
    SignerProperties.Channel settings = properties.channel();
    Path tokenFile = settings.tokenFile();
    if (tokenFile == null) {
      throw new IOException(
          "there is no account yet, and coterie.signer.channel.token-file is not set");
    }
    return Enrolment.enrol(
        settings.messaging(),
        Files.readString(settings.caFile()),
        certificate(),
        settings.number(),
        Files.readString(tokenFile));
  }

  private @Nullable ClientCertificate certificate() throws IOException {
    Path certificate = properties.channel().certificateFile();
    Path key = properties.channel().privateKeyFile();
    return certificate == null || key == null
        ? null
        : new ClientCertificate(Files.readString(certificate), Files.readString(key));
  }

  @Override
  public Member member(ChannelAccount account, byte[] evidenceKey) {
    return Enrolment.member(
        account,
        properties.name(),
        Member.Role.PARTY,
        properties.partyId(),
        properties.region(),
        evidenceKey);
  }

  @Override
  public void writeEntry(Member self) throws IOException {
    MemberEntry.write(properties.rosterEntryFile(), self);
  }

  @Override
  public Optional<SignedTrust> trust() throws IOException {
    Path file = properties.trustFile();
    if (!Files.exists(file)) {
      return Optional.empty();
    }
    SignedTrust signed = TrustFile.read(file).verified();
    String roots = properties.channel().trustFileRoots();
    return Optional.of(roots == null ? signed : signed.requireRoots(roots));
  }

  @Override
  public Opened open(ChannelAccount account, Roster roster) throws IOException {
    SignerProperties.Channel settings = properties.channel();
    ChannelConfig config =
        ChannelConfig.of(
                settings.messaging(), Files.readString(settings.caFile()), settings.trustRoot())
            .withClient(certificate())
            .withSendMode(settings.sendMode())
            .withSenderKeyAge(settings.senderKeyAge());
    SignalChannel channel = SignalChannel.open(config, account, roster, registry);
    return new Opened(channel, channel::connected);
  }
}
