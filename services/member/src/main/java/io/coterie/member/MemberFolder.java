package io.coterie.member;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.mpc.MpcException;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.mpc.Vault;
import io.coterie.platform.unseal.PassphraseDataKeySource;
import io.coterie.platform.unseal.UnsealException;
import io.coterie.proto.custody.v1.Group;
import java.io.IOException;
import java.io.InputStream;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A member's folder: an identity, its ticket, and what came of it. Secrets in it are sealed by the
 * core under a data key, which is wrapped under a passphrase. Each change is on the disk as a whole
 * before the next step. One user at a time has it.
 */
public final class MemberFolder implements AutoCloseable {
  /** The facts of a member, by their names in the file. Those called sealed are secrets. */
  enum Fact {
    /** The private half of the identity. */
    IDENTITY_SEALED,
    /** The public half, 32 bytes. */
    IDENTITY,
    /** The TicketIntent as its requester has signed it. */
    TICKET,
    /** [R1] the half of the member's secret that is its own. */
    APPLICANT_SEALED,
    APPLICATION,
    /** [R3] the member's secret, with its count of runs. */
    CANDIDATE_SEALED,
    ACCEPTANCE,
    POINT,
    /** RegisterMember, with the shares of the issuers. */
    REGISTRATION,
    /** The answer about the group in which the member has joined it. */
    GROUP,
    /** The member's key: secret and signature. */
    MEMBERSHIP_SEALED;

    private String key() {
      return name().toLowerCase(java.util.Locale.ROOT).replace('_', '-');
    }
  }

  private static final String RUNS = "runs";
  private static final int MAX_BYTES = 1024 * 1024;

  private final Path file;
  private final FileChannel lockFile;
  private final Vault vault;
  private final Properties facts = new Properties();

  /**
   * Opens a member's folder; makes it, with a new identity, if it does not exist.
   *
   * @param passphrase {@value PassphraseDataKeySource#MIN_PASSPHRASE} to {@value
   *     PassphraseDataKeySource#MAX_PASSPHRASE} bytes, which are zeroed before this ends, also if
   *     it fails
   * @throws MemberException.Folder saying what is wrong with the folder or the passphrase
   */
  public static MemberFolder open(Path folder, byte[] passphrase) {
    try {
      return open(
          folder,
          (key, core) -> new PassphraseDataKeySource(key, passphrase::clone, core::argon2id));
    } finally {
      Arrays.fill(passphrase, (byte) 0);
    }
  }

  /**
   * Opens a member's folder; makes it, with a new identity, if it does not exist.
   *
   * @param passphrase file with the passphrase; one line end after it is not part of it
   * @throws MemberException.Folder saying what is wrong with the folder or the passphrase
   */
  public static MemberFolder open(Path folder, Path passphrase) {
    return open(
        folder, (key, core) -> new PassphraseDataKeySource(key, passphrase, core::argon2id));
  }

  /** Makes the source of a folder's data key. */
  private interface Unsealing {
    PassphraseDataKeySource of(Path keyFile, NativeMpcCore core);
  }

  private static MemberFolder open(Path folder, Unsealing unsealing) {
    try {
      if (!Files.isDirectory(folder)) {
        Files.createDirectories(
            folder,
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
      }
      FileChannel lock =
          FileChannel.open(
              folder.resolve("lock"),
              Set.of(StandardOpenOption.CREATE, StandardOpenOption.WRITE),
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
      try {
        requireAlone(folder, lock);
        return new MemberFolder(folder, unsealing, lock);
      } catch (IOException | RuntimeException e) {
        lock.close();
        throw e;
      }
    } catch (UnsealException e) {
      throw new MemberException.Folder(firstLine(e.getMessage()));
    } catch (IOException | IllegalArgumentException e) {
      throw new MemberException.Folder(
          "member folder " + folder + " cannot be used: " + e.getMessage());
    }
  }

  private static void requireAlone(Path folder, FileChannel lock) throws IOException {
    FileLock held;
    try {
      held = lock.tryLock();
    } catch (OverlappingFileLockException e) {
      held = null;
    }
    if (held == null) {
      throw new MemberException.Folder("another command is using the member folder " + folder);
    }
  }

  private MemberFolder(Path folder, Unsealing unsealing, FileChannel lockFile) throws IOException {
    this.file = folder.resolve("member.properties");
    this.lockFile = lockFile;
    NativeMpcCore core = NativeMpcCore.load();
    PassphraseDataKeySource dataKey = unsealing.of(folder.resolve("data-key"), core);
    if (!dataKey.exists() && !Files.exists(file)) {
      dataKey.create(new SecureRandom(), PassphraseDataKeySource.Cost.STANDARD);
    }
    this.vault = core.openVault(dataKey.dataKey());
    try {
      if (Files.exists(file)) {
        read();
      } else {
        Vault.SealedIdentity identity = vault.createIdentity("member");
        set(Fact.IDENTITY_SEALED, ByteString.copyFrom(identity.sealed()));
        set(Fact.IDENTITY, ByteString.copyFrom(identity.evidenceKey()));
        save();
      }
    } catch (IOException | RuntimeException e) {
      vault.close();
      throw e;
    }
  }

  private void read() throws IOException {
    try (InputStream in = Files.newInputStream(file)) {
      byte[] bytes = in.readNBytes(MAX_BYTES + 1);
      if (bytes.length > MAX_BYTES) {
        throw new IOException(file + " is too large");
      }
      facts.load(new java.io.StringReader(new String(bytes, StandardCharsets.UTF_8)));
    }
    if (!has(Fact.IDENTITY) || !has(Fact.IDENTITY_SEALED)) {
      throw new IOException(file + " has no identity");
    }
  }

  /** The key that tickets of this member are for, 32 bytes. */
  public ByteString identity() {
    return get(Fact.IDENTITY);
  }

  /**
   * The membership of this folder. A member has a folder for each.
   *
   * @return empty until it has joined
   * @throws MemberException.Folder if the folder is damaged
   */
  public Optional<Membership> membership() {
    if (!has(Fact.MEMBERSHIP_SEALED)) {
      return Optional.empty();
    }
    Group group = group();
    return Optional.of(new Membership(group.getGroup(), group.getEpoch(), get(Fact.POINT)));
  }

  /** The answer about the group that was joined. */
  Group group() {
    try {
      return Group.parseFrom(get(Fact.GROUP));
    } catch (InvalidProtocolBufferException e) {
      throw new MemberException.Folder("the group in the member folder does not decode");
    }
  }

  Vault vault() {
    return vault;
  }

  /** As the vault opens it. */
  byte[] sealedIdentity() {
    return get(Fact.IDENTITY_SEALED).toByteArray();
  }

  boolean has(Fact fact) {
    return facts.containsKey(fact.key());
  }

  /** A fact that is there. */
  ByteString get(Fact fact) {
    String hex = facts.getProperty(fact.key());
    if (hex == null) {
      throw new MemberException.Folder(file + " has no " + fact.key());
    }
    try {
      return ByteString.copyFrom(HexFormat.of().parseHex(hex));
    } catch (IllegalArgumentException e) {
      throw new MemberException.Folder(file + ": " + fact.key() + " is not hex");
    }
  }

  /** Changes a fact; {@link #save} makes it last. */
  MemberFolder set(Fact fact, ByteString value) {
    facts.setProperty(fact.key(), HexFormat.of().formatHex(value.toByteArray()));
    return this;
  }

  /** The number of the last run that was ordered; 0 if none was. */
  int runs() {
    try {
      return Integer.parseInt(facts.getProperty(RUNS, "0"));
    } catch (NumberFormatException e) {
      throw new MemberException.Folder(file + ": runs is no number");
    }
  }

  MemberFolder setRuns(int runs) {
    facts.setProperty(RUNS, Integer.toString(runs));
    return this;
  }

  /** Writes everything aside and moves it into place, durably. */
  void save() {
    StringWriter text = new StringWriter();
    Path draft = file.resolveSibling(file.getFileName() + ".new");
    try {
      facts.store(text, null);
      Files.deleteIfExists(draft);
      try (FileChannel out =
          FileChannel.open(
              draft,
              Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))) {
        ByteBuffer bytes = StandardCharsets.UTF_8.encode(text.toString());
        while (bytes.hasRemaining()) {
          out.write(bytes);
        }
        out.force(true);
      }
      Files.move(draft, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
      Path folder = file.toAbsolutePath().getParent();
      if (folder != null) {
        try (FileChannel directory = FileChannel.open(folder, StandardOpenOption.READ)) {
          directory.force(true);
        }
      }
    } catch (IOException e) {
      throw new MemberException.Folder(file + " cannot be written: " + e.getMessage());
    }
  }

  /** The error of a secret that the vault does not open, or of another fault of the file. */
  MemberException.Folder broken(MpcException e) {
    return new MemberException.Folder(file + " cannot be used: " + firstLine(e.getMessage()));
  }

  /** The first line of another's text, without its full stop. */
  private static String firstLine(@Nullable String text) {
    String line = (text == null ? "" : text).lines().findFirst().orElse("").strip();
    return line.endsWith(".") ? line.substring(0, line.length() - 1) : line;
  }

  /** Closes the vault and lets others use the folder. */
  @Override
  public void close() {
    vault.close();
    try {
      lockFile.close();
    } catch (IOException e) {
      // The lock ends with the process at the latest.
    }
  }
}
