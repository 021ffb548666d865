package io.coterie.signer.claim;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.Protocol.Operation;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.claim.ClaimLedger.Binding;
import io.coterie.signer.claim.ClaimLedger.Claim;
import io.coterie.signer.claim.ClaimLedger.Never;
import io.coterie.signer.claim.ClaimLedger.Outcome;
import io.coterie.signer.claim.RequestBindings.Standing;
import io.coterie.signer.claim.RequestBindings.Verdict;
import io.coterie.signer.order.SessionPlan;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.coterie.trust.Trust;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.CompletionStage;
import java.util.function.BiPredicate;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Plays the table of docs/threat-model.md: for each threshold t, number of parties n and number of
 * corrupt parties c, together with the coordinator, every pair of signing sets is ordered, and the
 * corrupt parties say and do whatever helps them. Honest parties have the real bindings and a
 * ledger that the contract of stores holds to the real one.
 */
class EndsTableTest {
  private static final String REQUEST = "01a3185c-5000-7000-8000-000000000001";
  private static final Instant END = Instant.now().plusSeconds(3600);
  private static final Protocol PROTOCOL =
      Protocol.of(Scheme.SCHEME_ECDSA_SECP256K1, Operation.SIGN).orElseThrow();

  /** Shapes of a key, each with every number of corrupt parties below its threshold. */
  private static Stream<Arguments> rows() {
    return Stream.of(List.of(2, 2), List.of(2, 3), List.of(3, 5), List.of(5, 7))
        .flatMap(
            shape ->
                IntStream.range(0, shape.getFirst())
                    .mapToObj(c -> Arguments.of(shape.getFirst(), shape.getLast(), c)));
  }

  /** All sets of a size of the parties 1 to n. */
  private static List<Set<Integer>> sets(int size, int n) {
    return IntStream.range(0, 1 << n)
        .filter(bits -> Integer.bitCount(bits) == size)
        .mapToObj(
            bits ->
                (Set<Integer>)
                    IntStream.rangeClosed(1, n)
                        .filter(party -> (bits >> (party - 1) & 1) == 1)
                        .boxed()
                        .collect(Collectors.toCollection(TreeSet::new)))
        .toList();
  }

  private static Member member(int party) {
    return new Member(
        "p" + party,
        Member.Role.PARTY,
        party,
        "here",
        new UUID(1, party),
        1,
        new byte[33],
        new byte[32]);
  }

  private static ByteString bytes32(int number) {
    return ByteString.copyFrom(ByteBuffer.allocate(32).putInt(number).rewind());
  }

  private static <T> T get(CompletionStage<T> stage) {
    return stage.toCompletableFuture().join();
  }

  private static AuditEvent event() {
    return AuditEvent.of("wallet", "act", "ok", Map.of());
  }

  /** A party that keeps to the rules. */
  private static final class Honest {
    final MemoryLedger ledger = new MemoryLedger();
    final RequestBindings bindings = new RequestBindings();

    /** Contributes to a session if it may; says whether it does. */
    boolean contributes(int session, Set<Integer> set, int intent, boolean strict) {
      SessionPlan plan = plan(session, set, intent);
      if (!(bindings.judge(plan, strict) instanceof Verdict.Free(SessionId instead))) {
        return false;
      }
      Binding binding =
          new Binding(
              "wallet",
              REQUEST,
              plan.id(),
              ByteString.EMPTY,
              ByteString.copyFromUtf8("contribution"),
              END);
      Outcome outcome = get(ledger.claimOnce(claim(plan.id(), intent, binding, instead), event()));
      if (outcome == Outcome.CLAIMED) {
        bindings.bound(binding, set, instead);
        assertThat(bindings.sent(binding.session(), binding.envelope(), true)).isTrue();
      }
      return outcome == Outcome.CLAIMED;
    }

    /** Says that it never signs the request, if that is true. */
    boolean never() {
      Standing standing = bindings.standing("wallet", REQUEST);
      return get(
              ledger.never(
                  "wallet",
                  REQUEST,
                  standing instanceof Standing.Over(SessionId over) ? over : null,
                  ByteString.EMPTY,
                  bytes32(99),
                  event()))
          instanceof Never.Said;
    }
  }

  private static Claim claim(
      SessionId session, int intent, @Nullable Binding binding, @Nullable SessionId instead) {
    return new Claim(
        session,
        "wallet",
        REQUEST,
        bytes32(intent),
        binding,
        instead,
        null,
        ByteString.EMPTY,
        "coordinators/c");
  }

  private static SessionPlan plan(int session, Set<Integer> set, int intent) {
    return new SessionPlan(
        new SessionId(bytes32(session)),
        PROTOCOL,
        "keys/hot",
        1,
        set.size(),
        set.stream().map(EndsTableTest::member).toList(),
        new SessionPlan.Request(
            "wallet",
            REQUEST,
            bytes32(intent),
            ByteString.EMPTY,
            null,
            ByteString.EMPTY,
            List.of()),
        KeyTarget.SELF,
        new SessionPlan.Work.Sign(),
        END);
  }

  /** The parties of one key; 1 to c are corrupt, which is no loss: every set is tried. */
  private static final class World {
    final int corrupt;
    final Map<Integer, Honest> honest = new TreeMap<>();

    World(int n, int corrupt) {
      this.corrupt = corrupt;
      IntStream.rangeClosed(corrupt + 1, n).forEach(party -> honest.put(party, new Honest()));
    }

    /** Orders a session; says whether there is a signature for whoever has all contributions. */
    boolean signs(int session, Set<Integer> set, int intent, boolean strict) {
      boolean all = true;
      for (int party : set) {
        Honest one = honest.get(party);
        all &= one == null || one.contributes(session, set, intent, strict);
      }
      return all;
    }

    /** Each corrupt party of a set says to all that it has contributed to no such session. */
    void decline(int session, Set<Integer> set) {
      for (int liar : set) {
        if (liar <= corrupt) {
          honest.values().forEach(one -> one.bindings.declined(id(session), liar));
        }
      }
    }

    /** Messaging keeps back the contribution of a party until the session lapses. */
    void lapse(int session, int missing) {
      honest.forEach(
          (party, one) -> {
            if (party != missing) {
              one.bindings.lapsed(id(session), List.of(missing));
            }
          });
    }

    private static SessionId id(int session) {
      return new SessionId(bytes32(session));
    }
  }

  /** Whether a game of the corrupt parties succeeds with some pair of signing sets. */
  private static boolean succeeds(int t, int n, BiPredicate<Set<Integer>, Set<Integer>> game) {
    return sets(t, n).stream()
        .anyMatch(first -> sets(t, n).stream().anyMatch(second -> game.test(first, second)));
  }

  /** Whether one pair of signing sets signs two intents of one id. */
  private static boolean twoIntents(int t, int n, int c) {
    return succeeds(
        t,
        n,
        (first, second) -> {
          World world = new World(n, c);
          return world.signs(1, first, 1, false) && world.signs(2, second, 2, false);
        });
  }

  @ParameterizedTest(name = "{0} of {1}, {2} corrupt")
  @MethodSource("rows")
  void one_intent_an_id_holds_when_two_sets_have_an_honest_party_in_common(int t, int n, int c) {
    assertThat(twoIntents(t, n, c)).isEqualTo(2 * t - n <= c);
  }

  /** Whether the corrupt parties get two signatures of one request. */
  private static boolean twoSignatures(int t, int n, int c, boolean strict) {
    return succeeds(
        t,
        n,
        (first, second) -> {
          World world = new World(n, c);
          if (!world.signs(1, first, 1, strict)) {
            return false;
          }
          world.decline(1, first);
          return world.signs(2, second, 1, strict);
        });
  }

  @ParameterizedTest(name = "{0} of {1}, {2} corrupt")
  @MethodSource("rows")
  void one_signature_a_request_holds_while_no_party_lies_about_its_own(int t, int n, int c) {
    assertThat(twoSignatures(t, n, c, false)).isEqualTo(c > 0 || 2 * t <= n);
  }

  @ParameterizedTest(name = "{0} of {1}, {2} corrupt")
  @MethodSource("rows")
  void one_signature_a_request_holds_without_lapse_as_one_intent_does(int t, int n, int c) {
    assertThat(twoSignatures(t, n, c, true)).isEqualTo(2 * t - n <= c);
  }

  /** Whether messaging and the coordinator get two signatures, of honest parties alone. */
  private static boolean twoByLapse(int t, int n, boolean strict) {
    return twoByBoth(t, n, 0, strict);
  }

  @ParameterizedTest(name = "{0} of {1}, {2} corrupt")
  @MethodSource("rows")
  void a_lapse_gives_messaging_a_second_signature_unless_all_sign_or_it_is_strict(
      int t, int n, int c) {
    assertThat(twoByLapse(t, n, false)).isEqualTo(t < n);
    assertThat(twoByLapse(t, n, true)).isEqualTo(2 * t <= n);
  }

  /** Whether liars and a lapse together get two signatures, beside what either gets alone. */
  private static boolean twoByBoth(int t, int n, int c, boolean strict) {
    return succeeds(
        t,
        n,
        (first, second) ->
            first.stream()
                .anyMatch(
                    missing -> {
                      World world = new World(n, c);
                      if (!world.signs(1, first, 1, strict)) {
                        return false;
                      }
                      world.lapse(1, missing);
                      world.decline(1, first);
                      return world.signs(2, second, 1, strict);
                    }));
  }

  @ParameterizedTest(name = "{0} of {1}, {2} corrupt")
  @MethodSource("rows")
  void without_lapse_a_liar_and_messaging_together_get_no_more_than_the_liar(int t, int n, int c) {
    assertThat(twoByBoth(t, n, c, true)).isEqualTo(2 * t - n <= c);
    assertThat(twoByBoth(t, n, c, false)).isEqualTo(c > 0 || t < n);
  }

  /** A row of the page says what the rows here do. */
  @Test
  void the_page_says_what_is_played_here() throws Exception {
    Map<String, String> played = new TreeMap<>();
    rows()
        .map(Arguments::get)
        .forEach(
            row -> {
              int t = (Integer) row[0];
              int n = (Integer) row[1];
              int c = (Integer) row[2];
              boolean one = !twoSignatures(t, n, c, false);
              boolean lapse = twoByLapse(t, n, false);
              boolean strict = !twoSignatures(t, n, c, true) && !twoByBoth(t, n, c, true);
              played.put(
                  t + " of " + n + ", " + c,
                  String.join(
                      " | ",
                      one ? lapse ? "yes, without messaging" : "yes" : "no",
                      strict ? "yes" : "no",
                      twoIntents(t, n, c) ? "no" : "yes",
                      "" + (n - t + 1 + c)));
            });
    String page = Files.readString(Path.of("../../docs/threat-model.md"));
    Map<String, String> written = new TreeMap<>();
    Pattern.compile("(?m)^\\| (\\d of \\d) \\| ([\\d, ]+) \\| (.*) \\| ([\\d, ]+) \\|$")
        .matcher(page)
        .results()
        .forEach(
            row -> {
              String[] corrupt = row.group(2).split(", ");
              String[] receipts = row.group(4).split(", ");
              for (int i = 0; i < corrupt.length; i++) {
                written.put(row.group(1) + ", " + corrupt[i], row.group(3) + " | " + receipts[i]);
              }
            });
    assertThat(written).isEqualTo(played);
  }

  /**
   * Whether some set signs although as many parties have given receipts as the trust file asks for:
   * the corrupt ones give theirs first, and sign all the same.
   */
  private static boolean signedAndNotSigned(int t, int n, int lying, int needed) {
    for (Set<Integer> set : sets(t, n)) {
      for (Set<Integer> givers : sets(needed, n)) {
        for (boolean early : new boolean[] {true, false}) {
          World world = new World(n, lying);
          boolean signed = early && world.signs(1, set, 1, false);
          if (early) {
            world.decline(1, set);
          }
          boolean certified = true;
          for (int giver : givers) {
            Honest one = world.honest.get(giver);
            certified &= one == null || one.never();
          }
          signed |= !early && world.signs(1, set, 1, false);
          if (signed && certified) {
            return true;
          }
        }
      }
    }
    return false;
  }

  @ParameterizedTest(name = "{0} of {1}, {2} corrupt")
  @MethodSource("rows")
  void not_signed_is_true_while_no_more_lie_than_the_trust_file_says(int t, int n, int c) {
    Trust trust = new Trust(new Roster("test", 1, List.of(member(1))), new ArrayList<>(), c);
    int needed = trust.receiptsNeeded(n, t);
    assertThat(needed).isLessThanOrEqualTo(n);
    assertThat(signedAndNotSigned(t, n, c, needed)).isFalse();
    assertThat(signedAndNotSigned(t, n, c + 1, needed)).as("one more lies").isTrue();
  }
}
