package io.coterie.platform.error;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.Descriptors.EnumDescriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.RejectReason;
import io.coterie.proto.party.v1.RefusalReason;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * {@code docs/reference/errors.md} is written from the lists in the code and in proto. The test
 * fails when they differ; {@code -Dcoterie.docs.write=true} writes the page.
 */
class ErrorReferenceTest {
  private static final Path PAGE = Path.of("../../docs/reference/errors.md");
  private static final Path PROTO = Path.of("../../proto");

  @Test
  void the_page_is_the_lists() throws IOException {
    String page = render();
    if (Boolean.getBoolean("coterie.docs.write")) {
      Files.createDirectories(PAGE.getParent());
      Files.writeString(PAGE, page);
    }
    assertThat(PAGE)
        .as("write it with: mvn -pl services/platform -am test -Dcoterie.docs.write=true")
        .hasContent(page);
  }

  private static String render() throws IOException {
    StringBuilder out = new StringBuilder();
    out.append("# Errors\n\n");
    out.append("Generated from `ErrorReason`, `IntentProblem` and `proto/`; do not edit.\n\n");
    out.append(
        """
        Every failed call carries a `google.rpc.ErrorInfo` with domain `%s`, one of these reasons, and metadata:
        `party` (name in the roster), `round`, `cause` (see the abort causes and refusals below), `problem` (see the
        problems of intents), `part` (of the payload, that has the problem), `detail` (the rule by which a party refused, in
        its words, for people alone), `resource`.
        Names and numbers are stable: new ones are added, none changes its meaning.

        An answer with `RESOURCE_EXHAUSTED` also carries a `google.rpc.RetryInfo`: how long to wait at least. The error of a
        signing may carry `coterie.custody.v1.Refusals`: the [receipts](../protocols/session.md#receipts) of parties that
        refused it.

        ## Reasons

        """
            .formatted(ErrorReason.DOMAIN));
    table(out, "reason", "gRPC status", "meaning", "what to do");
    for (ErrorReason reason : ErrorReason.values()) {
      row(out, code(reason.name()), reason.code().name(), reason.text(), reason.advice());
    }
    out.append("\n## Problems of intents\n\n");
    table(out, "problem", "reason", "meaning");
    for (IntentProblem problem : IntentProblem.values()) {
      row(out, code(problem.name()), code(problem.reason().name()), problem.text());
    }
    out.append("\n## Refusals of signers\n\nWhy a signer did not start. The last column is what ");
    out.append("the caller gets when too few signers are left.\n\n");
    table(out, "number", "refusal", "meaning", "reason");
    for (EnumValueDescriptor value : values(RefusalReason.getDescriptor())) {
      row(
          out,
          Integer.toString(value.getNumber()),
          code(value.getName()),
          meaning(value),
          code(SessionFailures.reason(RefusalReason.forNumber(value.getNumber())).name()));
    }
    out.append("\n## Abort causes\n\nWhy a protocol ended without a result. With a culprit the ");
    out.append("caller gets `");
    out.append(ErrorReason.PARTY_MISBEHAVED)
        .append("`, without `")
        .append(ErrorReason.SESSION_FAILED);
    out.append("`.\n\n");
    numbered(out, "cause", AbortCause.getDescriptor());
    out.append("\n## Advice\n\nThe advice of the core about the next session.\n\n");
    numbered(out, "advice", Advice.getDescriptor());
    out.append("\n## Rejected messages\n\nA message was ignored and the run went on.\n\n");
    numbered(out, "reject", RejectReason.getDescriptor());
    return out.toString();
  }

  private static void numbered(StringBuilder out, String what, EnumDescriptor type)
      throws IOException {
    table(out, "number", what, "meaning");
    for (EnumValueDescriptor value : values(type)) {
      row(out, Integer.toString(value.getNumber()), code(value.getName()), meaning(value));
    }
  }

  private static List<EnumValueDescriptor> values(EnumDescriptor type) {
    return type.getValues().stream().filter(value -> value.getNumber() != 0).toList();
  }

  /** The comment above a value in its proto file, which each value needs. */
  private static String meaning(EnumValueDescriptor value) throws IOException {
    List<String> comment = new ArrayList<>();
    for (String line : Files.readAllLines(PROTO.resolve(value.getType().getFile().getFullName()))) {
      String text = line.strip();
      if (text.startsWith("//")) {
        comment.add(text.substring(2).strip());
      } else if (text.startsWith(value.getName() + " = ")) {
        break;
      } else {
        comment.clear();
      }
    }
    assertThat(comment).as("comment above %s", value.getName()).isNotEmpty();
    return String.join(" ", comment);
  }

  private static String code(String text) {
    return "`" + text + "`";
  }

  private static void table(StringBuilder out, String... titles) {
    row(out, titles);
    out.append("|").repeat("---|", titles.length).append("\n");
  }

  private static void row(StringBuilder out, String... cells) {
    out.append("| ").append(String.join(" | ", cells)).append(" |\n");
  }
}
