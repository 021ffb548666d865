package io.coterie.signer.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.PayloadKind;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.ImportIntent;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.signer.order.NeededApprovals;
import io.coterie.signer.policy.RequesterRule;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.core.io.ByteArrayResource;

/** The rule that comes out of what an operator writes for a requester. */
class RequesterSettingsTest {
  private static RequesterRule rule(String... lines) throws IOException {
    String yaml =
        "requester:\n  name: wallet\n  public-key-file: wallet.pem\n  keys: [\"*\"]\n"
            + String.join("", Stream.of(lines).map(line -> "  " + line + "\n").toList());
    var source =
        new YamlPropertySourceLoader()
            .load("test", new ByteArrayResource(yaml.getBytes(StandardCharsets.UTF_8)));
    return new Binder(ConfigurationPropertySources.from(source))
        .bind("requester", SignerProperties.RequesterSettings.class)
        .get()
        .rule();
  }

  private static boolean mayCreate(RequesterRule rule) {
    return mayCreate(rule, 2, List.of("alpha", "bravo"));
  }

  private static boolean mayCreate(RequesterRule rule, int threshold, List<String> parties) {
    return rule.denial(
            new VerifiedIntent.KeyCreation(
                "wallet",
                ByteString.EMPTY,
                SignedIntent.getDefaultInstance(),
                KeyIntent.newBuilder()
                    .setScheme(Scheme.SCHEME_BLS12381)
                    .setThreshold(threshold)
                    .addAllParties(parties)
                    .build()))
        .isEmpty();
  }

  private static boolean mayImport(RequesterRule rule) {
    return rule.denial(
            new VerifiedIntent.KeyImport(
                "wallet",
                ByteString.EMPTY,
                SignedIntent.getDefaultInstance(),
                ImportIntent.newBuilder()
                    .setScheme(Scheme.SCHEME_BLS12381)
                    .setThreshold(2)
                    .addAllParties(List.of("alpha", "bravo"))
                    .build(),
                List.of()))
        .isEmpty();
  }

  private static List<Boolean> rights(RequesterRule rule) {
    return List.of(mayCreate(rule), mayImport(rule), mayRefresh(rule), mayReshare(rule));
  }

  private static boolean mayRefresh(RequesterRule rule) {
    return rule.denial(
            new VerifiedIntent.KeyRefresh(
                "wallet",
                ByteString.EMPTY,
                SignedIntent.getDefaultInstance(),
                RefreshIntent.newBuilder().setScheme(Scheme.SCHEME_BLS12381).build()))
        .isEmpty();
  }

  private static boolean mayReshare(RequesterRule rule) {
    return mayReshare(rule, 2, List.of("alpha", "bravo"));
  }

  private static boolean mayReshare(RequesterRule rule, int threshold, List<String> parties) {
    return rule.denial(
            new VerifiedIntent.KeyReshare(
                "wallet",
                ByteString.EMPTY,
                SignedIntent.getDefaultInstance(),
                ReshareIntent.newBuilder()
                    .setScheme(Scheme.SCHEME_BLS12381)
                    .setThreshold(threshold)
                    .addAllParties(parties)
                    .build()))
        .isEmpty();
  }

  private static boolean maySign(RequesterRule rule) {
    return rule.denial(
            new VerifiedIntent.Signing(
                "wallet",
                ByteString.EMPTY,
                SignedIntent.getDefaultInstance(),
                SigningIntent.newBuilder()
                    .setScheme(Scheme.SCHEME_BLS12381)
                    .setMessage(ByteString.copyFromUtf8("m"))
                    .build()))
        .isEmpty();
  }

  @Test
  void whoever_may_create_keys_may_not_have_them_imported_refreshed_or_reshared() throws Exception {
    assertThat(rights(rule("may-create-keys: true"))).containsExactly(true, false, false, false);
  }

  @Test
  void each_right_over_shares_is_given_by_itself() throws Exception {
    assertThat(rights(rule())).containsExactly(false, false, false, false);
    assertThat(rights(rule("may-import-keys: true"))).containsExactly(false, true, false, false);
    assertThat(rights(rule("may-refresh-keys: true"))).containsExactly(false, false, true, false);
    assertThat(rights(rule("may-reshare-keys: true"))).containsExactly(false, false, false, true);
  }

  @Test
  void a_requester_without_payloads_has_nothing_signed() throws Exception {
    assertThat(maySign(rule("payloads: [message]"))).isTrue();
    assertThat(maySign(rule("payloads: []"))).isFalse();
    // A message may be anything, a transaction among them: the right to it is given by name.
    assertThat(maySign(rule())).isFalse();
    // So is that to typed data, which mean to a contract whatever it says.
    assertThat(rule().payloads())
        .containsExactlyInAnyOrder(
            PayloadKind.ETHEREUM_TRANSACTION,
            PayloadKind.ETHEREUM_MESSAGE,
            PayloadKind.BITCOIN_INPUT,
            PayloadKind.SOLANA_TRANSACTION);
    assertThat(rule("payloads: [ethereum-typed-data]").payloads())
        .containsExactly(PayloadKind.ETHEREUM_TYPED_DATA);
  }

  @Test
  void no_key_is_made_or_reshared_for_one_party_unless_the_rule_says_so() throws Exception {
    List<String> two = List.of("alpha", "bravo");
    RequesterRule usual = rule("may-create-keys: true", "may-reshare-keys: true");
    assertThat(mayCreate(usual, 1, two) || mayReshare(usual, 1, two)).isFalse();
    RequesterRule free =
        rule(
            "may-create-keys: true",
            "may-reshare-keys: true",
            "min-threshold: 1",
            "min-parties: 1");
    assertThat(mayCreate(free, 1, two) && mayReshare(free, 1, List.of("alpha"))).isTrue();
  }

  @Test
  void shares_go_to_named_parties_only_if_the_rule_names_some() throws Exception {
    RequesterRule rule =
        rule(
            "may-create-keys: true",
            "may-reshare-keys: true",
            "allowed-parties: [alpha, bravo, carol]");
    List<String> foreign = List.of("alpha", "mallory");
    assertThat(mayCreate(rule) && mayReshare(rule)).isTrue();
    assertThat(mayCreate(rule, 2, foreign) || mayReshare(rule, 2, foreign)).isFalse();
  }

  @Test
  void a_pattern_where_a_name_is_meant_is_refused_and_so_is_one_that_no_key_fits() {
    assertThatThrownBy(() -> rule("allowed-parties: [alpha, \"party-*\"]"))
        .hasMessageContaining("requester wallet: allowed-parties: 'party-*' is no name of a party");
    assertThatThrownBy(() -> rule("keys[0]: treasury-*"))
        .hasMessageContaining("requester wallet: 'treasury-*' is no name or pattern of keys");
  }

  @Test
  void a_floor_that_no_key_can_stand_on_names_the_requester() {
    assertThatThrownBy(() -> rule("min-threshold: 3", "allowed-parties: [alpha, bravo]"))
        .hasMessageContaining("requester wallet")
        .hasMessageContaining("a key needs 3");
  }

  @Test
  void a_rule_needs_approvals_only_if_it_says_so_and_of_one_group() throws Exception {
    assertThat(rule().approvals()).isNull();
    assertThat(rule("approvals: {group: treasurers, needed: 2}").approvals())
        .isEqualTo(new NeededApprovals("groups/treasurers", 2));
    for (String bad : List.of("{group: treasurers}", "{group: treasurers, needed: 33}")) {
      assertThatThrownBy(() -> rule("approvals: " + bad))
          .hasMessageContaining("requester wallet: approvals.needed is not 1 to 32");
    }
    for (String bad : List.of("{needed: 2}", "{group: groups/treasurers, needed: 2}")) {
      assertThatThrownBy(() -> rule("approvals: " + bad))
          .hasMessageContaining("requester wallet: approvals.group is not a name");
    }
  }

  @Test
  void nobody_approves_its_own_requests() throws Exception {
    String approvals = "approvals: {group: treasurers, needed: 2}";
    assertThatThrownBy(() -> rule("may-create-groups: true", approvals))
        .hasMessageContaining("requester wallet: its requests need approvals of groups/treasurers")
        .hasMessageContaining("leave out may-create-groups");
    assertThat(rule("keys[0]: keys/*", "may-create-groups: true", approvals).approvals())
        .isNotNull();
  }
}
