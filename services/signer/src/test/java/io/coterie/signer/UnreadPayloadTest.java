package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.BitcoinInput;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Random;
import java.util.function.BiConsumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** A payload that a party cannot read to its end is refused like everything else it must not do. */
class UnreadPayloadTest {
  private static final String ECDSA = "keys/treasury-ecdsa";
  private static final String ED25519 = "keys/treasury-ed25519";

  /** Legacy transactions of chain 1, without recipient and to 0x3535... with multicall(bytes[]). */
  private static final ByteString CREATION = ByteString.fromHex("cb010182cf08808080018080");

  private static final ByteString CALL =
      ByteString.fromHex("e3010182520894" + "35".repeat(20) + "8084ac9650d8018080");

  /** The same with transfer(address,uint256) and one wei. */
  private static final ByteString PAID_CALL =
      ByteString.fromHex(
          "f864010182520894"
              + "35".repeat(20)
              + "01b844a9059cbb"
              + "00".repeat(12)
              + "36".repeat(20)
              + "00".repeat(32)
              + "018080");

  /** An order of a Safe: its data are a call, and without any it is one, too. */
  private static String safeOrder(String data, int operation, int gasPrice) {
    return """
    {"types":{
      "EIP712Domain":[{"name":"chainId","type":"uint256"},
        {"name":"verifyingContract","type":"address"}],
      "SafeTx":[{"name":"to","type":"address"},{"name":"value","type":"uint256"},
        {"name":"data","type":"bytes"},{"name":"operation","type":"uint8"},
        {"name":"safeTxGas","type":"uint256"},{"name":"baseGas","type":"uint256"},
        {"name":"gasPrice","type":"uint256"},{"name":"gasToken","type":"address"},
        {"name":"refundReceiver","type":"address"},{"name":"nonce","type":"uint256"}]},
    "primaryType":"SafeTx",
    "domain":{"chainId":1,"verifyingContract":"0x3434343434343434343434343434343434343434"},
    "message":{"to":"0x3535353535353535353535353535353535353535","value":0,"data":"%s",
      "operation":%d,"safeTxGas":0,"baseGas":1000000,"gasPrice":%d,
      "gasToken":"0x0000000000000000000000000000000000000000",
      "refundReceiver":"0x3636363636363636363636363636363636363636","nonce":0}}
    """
        .formatted(data, operation, gasPrice);
  }

  /** 9000 of 10000 satoshi of the core's key to OP_1, by bitcoinjs-lib 7.0.5. */
  private static final ByteString PSBT =
      ByteString.fromHex(
          "70736274ff01003d0200000001e742c3b22f74f0eca3168dc6fe32169914076290c91616ac027099228e7cdaf90000000000ffffffff01282300000000000001510000000000010052020000000133333333333333333333333333333333333333333333333333333333333333330000000000ffffffff011027000000000000160014751e76e8199196d454941c45d1b3a323f1433bd60000000001011f1027000000000000160014751e76e8199196d454941c45d1b3a323f1433bd60000");

  private static final String JUPITER =
      "0479d55bf231c06eee74c56ece681507fdb1b2dea3f48e5102b1cda256bc138f";
  private static final String BLOCKHASH = "c4".repeat(32);

  @TempDir static Path folder;
  static FakeCore core;
  static Installation i;

  @BeforeAll
  static void start() {
    core = new FakeCore();
    i = Installation.with(folder, core).start();
    i.createEcdsaKey(ECDSA, 2);
    i.createKey(ED25519, Scheme.SCHEME_ED25519, ProtocolId.PROTOCOL_ID_ED25519_KEYGEN, 2);
  }

  @AfterAll
  static void stop() {
    i.close();
  }

  /** A payload of which alpha cannot read a part, and how it says so. */
  record Unread(
      String name, String key, String says, BiConsumer<SigningIntent.Builder, ByteString> payload) {
    @Override
    public String toString() {
      return name;
    }
  }

  static Stream<Unread> unreadPayloads() {
    String notText = IntentProblem.MESSAGE_NOT_TEXT.text();
    return Stream.of(
        unread("bytes", ED25519, notText, ByteString.copyFromUtf8("a").concat(random(100))),
        unread("a control", ED25519, notText, ByteString.copyFromUtf8("STX\0pay")),
        unread("half a letter", ED25519, notText, ByteString.fromHex("61c3")),
        unread("a hidden turn", ED25519, notText, ByteString.copyFromUtf8("pay \u202e 1 to me")),
        new Unread(
            "an Ethereum message of bytes",
            ECDSA,
            notText,
            (intent, _) -> intent.setEthereumMessage(random(100))),
        new Unread(
            "an Ethereum message that may be a hash",
            ECDSA,
            IntentProblem.MESSAGE_IS_DIGEST.text(),
            (intent, _) -> intent.setEthereumMessage(ByteString.copyFromUtf8("x".repeat(32)))),
        notRead("the creation of a contract", ECDSA, "creation of a contract", CREATION),
        notRead("a call of a contract", ECDSA, "call of function 0xac9650d8", CALL),
        safe("an order with a call", safeOrder("0xac9650d8", 0, 0)),
        safe("an order that runs foreign code", safeOrder("0x", 1, 0)),
        safe("an order that pays back gas", safeOrder("0x", 0, 1_000_000_000)),
        notRead("a call with ether", ECDSA, "value with a call", PAID_CALL),
        new Unread(
            "an output to a script",
            ECDSA,
            notRead("script of output 0"),
            (intent, _) -> intent.setBitcoinInput(BitcoinInput.newBuilder().setPsbt(PSBT))),
        solana(
            "an instruction of another program",
            "instruction 0 of program JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4",
            "00",
            JUPITER + BLOCKHASH + "01" + "01000101",
            ""),
        solana(
            "a transfer with a byte more",
            "instruction 0 of program 11111111111111111111111111111111",
            "00",
            "00".repeat(32) + BLOCKHASH + "01" + "010200000d02000000310000000000000000",
            ""),
        solana(
            "a recipient out of a table",
            "accounts out of an address lookup table",
            "80",
            "00".repeat(32) + BLOCKHASH + "01" + "010200020c020000003100000000000000",
            "01" + "19".repeat(32) + "010700"));
  }

  private static Unread unread(String name, String key, String says, ByteString message) {
    return new Unread(name, key, says, (intent, _) -> intent.setMessage(message));
  }

  private static Unread safe(String name, String order) {
    return new Unread(
        name,
        ECDSA,
        notRead("bytes in message.data"),
        (intent, _) -> intent.setEthereumTypedData(order));
  }

  private static String notRead(String part) {
    return IntentProblem.PAYLOAD_NOT_READ.text() + " (" + part + ")";
  }

  private static Unread notRead(String name, String key, String part, ByteString transaction) {
    return new Unread(
        name, key, notRead(part), (intent, _) -> intent.setEthereumTransaction(transaction));
  }

  /** Of the key, which pays, and one program. */
  private static Unread solana(
      String name, String part, String version, String body, String tables) {
    return new Unread(
        name,
        ED25519,
        notRead(part),
        (intent, key) ->
            intent.setSolanaTransaction(
                ByteString.fromHex((version.equals("00") ? "" : version) + "010001" + "02")
                    .concat(key)
                    .concat(ByteString.fromHex(body + tables))));
  }

  @ParameterizedTest
  @MethodSource("unreadPayloads")
  void a_payload_that_cannot_be_read_to_its_end_is_refused_and_recorded(Unread unread) {
    int started = core.started.get();
    boolean ecdsa = unread.key.equals(ECDSA);
    SigningIntent.Builder intent =
        i.signingIntent(Installation.requestId(), unread.key, "")
            .setScheme(ecdsa ? Scheme.SCHEME_ECDSA_SECP256K1 : Scheme.SCHEME_ED25519);
    unread.payload.accept(
        intent,
        i.party("alpha").store.shares().find(unread.key).orElseThrow().keyPublic().getPublicKey());
    SessionId session =
        i.coordinator.give(
            i.coordinator
                .order(
                    ecdsa ? ProtocolId.PROTOCOL_ID_ECDSA_SIGN : ProtocolId.PROTOCOL_ID_ED25519_SIGN,
                    unread.key,
                    2,
                    1,
                    2)
                .setSignedIntent(i.signed(intent))
                .build());
    Refused refused = i.coordinator.awaitFrom("alpha", session).report().getRefused();
    assertThat(refused.getReason()).isEqualTo(RefusalReason.REFUSAL_REASON_BAD_PAYLOAD);
    String detail = refused.getDetail();
    assertThat(detail).startsWith("payload: " + unread.says);
    assertThat(refused.hasReceipt() || detail.contains("without a receipt")).isTrue();
    assertThat(core.started.get())
        .as("no message, for which the core would run")
        .isEqualTo(started);
    assertThat(i.party("alpha").store.shares().undecided()).isEmpty();
    Installation.until(
        "the refusal is in the audit trail, with its rule",
        () -> refusals(session).anyMatch(rule -> detail.startsWith(rule)));
  }

  /** The rules by which alpha's audit trail says that a session was refused. */
  private static Stream<String> refusals(SessionId session) {
    String hex = HexFormat.of().formatHex(session.bytes().toByteArray());
    return i.party("alpha").store.audit().read(1, 10_000).stream()
        .filter(r -> r.event().outcome().equals("refused"))
        .filter(r -> hex.equals(r.event().fields().get("session_id")))
        .map(r -> r.event().fields().getOrDefault("detail", "none"));
  }

  private static ByteString random(int size) {
    byte[] bytes = new byte[size];
    new Random(size).nextBytes(bytes);
    return ByteString.copyFrom(bytes);
  }
}
