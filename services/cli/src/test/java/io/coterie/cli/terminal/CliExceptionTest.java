package io.coterie.cli.terminal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.coterie.member.AttestedGroups;
import io.coterie.member.MemberException;
import io.coterie.member.Ticket;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.proto.custody.v1.SignedIntent;
import io.grpc.Status;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Map;
import javax.net.ssl.SSLHandshakeException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The advice of the command after a failed call. */
class CliExceptionTest {
  /** Where the reference says how to go on, the command says the same. */
  @ParameterizedTest
  @EnumSource(
      value = ErrorReason.class,
      names = {
        "KEY_CREATION_FAILED",
        "REFRESH_FAILED",
        "RESHARE_FAILED",
        "OPERATION_CANCELLED",
        "REFRESH_RUNNING",
        "PARTY_MISBEHAVED",
        "SESSION_FAILED",
        "OVERLOADED"
      })
  void advice_is_that_of_the_error_reference(ErrorReason reason) {
    CliException said = CliException.of(StatusErrors.of(reason));
    assertThat(said.getMessage())
        .startsWith(reason.name())
        .endsWith(reason.advice())
        .doesNotContain("the same request id");
  }

  @Test
  void a_request_that_has_ended_is_refused_and_not_to_be_repeated() {
    assertThat(CliException.of(StatusErrors.of(ErrorReason.KEY_CREATION_FAILED)).exitCode())
        .isEqualTo(ExitCode.REFUSED);
    assertThat(CliException.of(StatusErrors.of(ErrorReason.SESSION_FAILED)).exitCode())
        .isEqualTo(ExitCode.UNAVAILABLE);
  }

  /** The library of members knows no exit codes; a wrong file there is one here. */
  @Test
  void failures_of_the_library_of_members_keep_their_words() {
    MemberException wrong =
        assertThrows(MemberException.class, () -> Ticket.of(SignedIntent.getDefaultInstance()));
    CliException said = CliException.of(wrong);
    assertThat(said.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(said.getMessage()).isEqualTo(wrong.getMessage()).isNotEmpty();
    assertThat(CliException.of(AttestedGroups.refused("groups/a", "lies")).exitCode())
        .isEqualTo(ExitCode.REFUSED);
  }

  @Test
  void a_refusal_says_which_rule_it_was() {
    String detail = "the purpose is not one of this requester's";
    CliException said =
        CliException.of(
            StatusErrors.of(ErrorReason.FORBIDDEN, Map.of(StatusErrors.DETAIL, detail)));
    assertThat(said.getMessage()).contains(detail);
  }

  @Test
  void a_certificate_that_is_not_accepted_is_not_tried_again() {
    CliException said =
        CliException.of(
            Status.UNAVAILABLE
                .withDescription("io exception")
                .withCause(new SSLHandshakeException("PKIX path building failed"))
                .asRuntimeException());
    assertThat(said.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(said.getMessage()).contains("PKIX", "doctor").doesNotContain("ry again");
  }

  @Test
  void nothing_from_the_network_controls_the_terminal() {
    StringWriter screen = new StringWriter();
    Terminal.printable(new PrintWriter(screen, true))
        .printf("a\u001b]0;title\u0007 b\u202e c\r d\u009b%n%s", "ä€😀\u0000\udb40\udc41");
    assertThat(screen)
        .hasToString("a\\u{1b}]0;title\\u{7} b\\u{202e} c\\u{d} d\\u{9b}\nä€😀\\u{0}\\u{e0041}");
  }

  /** Tags, fillers and variation selectors are seen by whoever copies a text, and by no reader. */
  @Test
  void nothing_from_the_network_is_there_and_not_seen() {
    StringWriter screen = new StringWriter();
    PrintWriter out = Terminal.printable(new PrintWriter(screen, true));
    out.print("to: a\udb40\udc62\udb40\udc20 \u3164\u115f\ufe0f\u2800 \ud83d");
    out.print("\ude00 \ud83d");
    out.flush();
    assertThat(screen)
        .hasToString("to: a\\u{e0062}\\u{e0020} \\u{3164}\\u{115f}\\u{fe0f}\\u{2800} 😀 \\u{d83d}");
  }
}
