package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.Requester;
import io.coterie.platform.intent.RequesterDirectory;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.spec.EdECPrivateKeySpec;
import java.security.spec.NamedParameterSpec;
import java.security.spec.X509EncodedKeySpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.bouncycastle.math.ec.rfc8032.Ed25519;

/** The members of a simulated installation and its requester, with their keys: always the same. */
final class Identities {
  static final String INSTALLATION = "simulated";
  static final String REQUESTER = "wallet";

  private static final byte[] X509_HEAD = HexFormat.of().parseHex("302a300506032b6570032100");

  private static final Map<Integer, byte[]> EVIDENCE_KEYS = new ConcurrentHashMap<>();

  /** The public keys by their secrets. Making one takes as long as signing. */
  private static final Map<ByteString, byte[]> PUBLIC_KEYS = new ConcurrentHashMap<>();

  private static final IntentSigner INTENTS = intents(REQUESTER);
  private static final IntentSigner FORGED_INTENTS = intents("stranger");
  private static final RequesterDirectory REQUESTERS = directory();

  private Identities() {}

  /** Name of a party. */
  static String party(int id) {
    return "party-" + id;
  }

  /** Name of a coordinator, from 1. */
  static String coordinator(int number) {
    return "coordinator-" + number;
  }

  /**
   * @param evidence public evidence key of each party, by id
   */
  static Roster roster(int coordinators, Map<Integer, byte[]> evidence) {
    List<Member> members = new ArrayList<>();
    evidence.forEach((id, key) -> members.add(member(party(id), Member.Role.PARTY, id, key)));
    for (int number = 1; number <= coordinators; number++) {
      members.add(member(coordinator(number), Member.Role.COORDINATOR, 0, new byte[0]));
    }
    return new Roster(INSTALLATION, 1, members);
  }

  private static Member member(String name, Member.Role role, int id, byte[] evidence) {
    UUID account = UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.US_ASCII));
    return new Member(name, role, id, "here", account, 1, new byte[33], evidence);
  }

  private static byte[] secret(String name) {
    return hash(name.getBytes(StandardCharsets.US_ASCII));
  }

  /** The public key of a party of the fast core. */
  static byte[] evidenceKey(int party) {
    return EVIDENCE_KEYS.computeIfAbsent(party, id -> publicKey(party(id))).clone();
  }

  private static byte[] publicKey(String owner) {
    return publicKey(secret(owner));
  }

  private static byte[] publicKey(byte[] secret) {
    return PUBLIC_KEYS.computeIfAbsent(
        ByteString.copyFrom(secret),
        _ -> {
          byte[] key = new byte[Ed25519.PUBLIC_KEY_SIZE];
          Ed25519.generatePublicKey(secret, 0, key, 0);
          return key;
        });
  }

  private static byte[] x509(byte[] raw) {
    byte[] encoded = Arrays.copyOf(X509_HEAD, X509_HEAD.length + raw.length);
    System.arraycopy(raw, 0, encoded, X509_HEAD.length, raw.length);
    return encoded;
  }

  /** Signs a statement as the core of a party does. */
  static ByteString sign(int party, ByteString statement) {
    byte[] tag = "coterie/statement-signature/1".getBytes(StandardCharsets.US_ASCII);
    byte[] digest = hash(statement.toByteArray());
    byte[] message = Arrays.copyOf(tag, tag.length + digest.length);
    System.arraycopy(digest, 0, message, tag.length, digest.length);
    return ByteString.copyFrom(sign(secret(party(party)), message));
  }

  private static byte[] sign(byte[] secret, byte[] message) {
    byte[] signature = new byte[Ed25519.SIGNATURE_SIZE];
    byte[] key = publicKey(secret);
    Ed25519.sign(secret, 0, key, 0, message, 0, message.length, signature, 0);
    return signature;
  }

  static byte[] hash(byte[] bytes) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(bytes);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Signs intents as the requester. */
  static IntentSigner intents() {
    return INTENTS;
  }

  /** Signs intents in the name of the requester with another key. */
  static IntentSigner forgedIntents() {
    return FORGED_INTENTS;
  }

  private static IntentSigner intents(String owner) {
    try {
      PrivateKey key =
          KeyFactory.getInstance("Ed25519")
              .generatePrivate(new EdECPrivateKeySpec(NamedParameterSpec.ED25519, secret(owner)));
      return new IntentSigner(REQUESTER, key);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The requesters that every party knows. */
  static RequesterDirectory requesters() {
    return REQUESTERS;
  }

  private static RequesterDirectory directory() {
    try {
      PublicKey key =
          KeyFactory.getInstance("Ed25519")
              .generatePublic(new X509EncodedKeySpec(x509(publicKey(REQUESTER))));
      return new RequesterDirectory(List.of(new Requester(REQUESTER, key)));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }
}
