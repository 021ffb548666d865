package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.session.SessionLifecycle.State;
import io.coterie.signer.session.SessionLifecycle.Transition;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/**
 * Walks the table, and keeps its picture in {@code docs/protocols/session.md}; {@code
 * -Dcoterie.docs.write=true} draws it anew.
 */
class SessionLifecycleTest {
  private static final Path PAGE = Path.of("../../docs/protocols/session.md");
  private static final String BEGIN =
      "<!-- Generated from SessionLifecycle; do not edit below this line. -->\n";
  private static final String END = "<!-- Generated until here. -->\n";

  @Test
  void every_state_can_be_reached_and_left_or_is_final() {
    Set<State> reached = EnumSet.of(State.RECEIVED);
    Deque<State> next = new ArrayDeque<>(reached);
    Set<Transition> walked = new HashSet<>();
    while (!next.isEmpty()) {
      State state = next.poll();
      for (Event event : Event.values()) {
        if (SessionLifecycle.allows(state, event)) {
          State to = SessionLifecycle.next(state, event);
          walked.add(new Transition(state, event, to));
          if (reached.add(to)) {
            next.add(to);
          }
        }
      }
    }
    assertThat(reached).containsExactlyInAnyOrder(State.values());
    assertThat(walked).containsExactlyInAnyOrderElementsOf(SessionLifecycle.TRANSITIONS);
    for (State state : State.values()) {
      assertThat(state.isFinal())
          .as("%s", state)
          .isEqualTo(SessionLifecycle.TRANSITIONS.stream().noneMatch(t -> t.from() == state));
    }
  }

  @Test
  void a_pair_of_state_and_event_has_one_next_state() {
    assertThat(SessionLifecycle.TRANSITIONS.stream().map(t -> t.from() + "/" + t.event()))
        .doesNotHaveDuplicates();
  }

  @Test
  void every_state_that_is_not_final_ends_when_the_process_does() {
    for (State state : State.values()) {
      if (!state.isFinal()) {
        assertThat(SessionLifecycle.next(state, Event.STOP)).isEqualTo(State.STOPPED);
      }
    }
  }

  @Test
  void anything_else_is_illegal_and_says_so() {
    assertThatThrownBy(() -> SessionLifecycle.next(State.COMPLETED, Event.CANCEL))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("a session that is COMPLETED cannot CANCEL");
  }

  @Test
  void the_page_shows_the_table() throws IOException {
    String page = Files.readString(PAGE);
    int begin = page.indexOf(BEGIN) + BEGIN.length();
    int end = page.indexOf(END);
    assertThat(begin).isGreaterThanOrEqualTo(BEGIN.length());
    assertThat(end).isGreaterThanOrEqualTo(begin);
    String wanted = page.substring(0, begin) + render() + page.substring(end);
    if (Boolean.getBoolean("coterie.docs.write")) {
      Files.writeString(PAGE, wanted);
    }
    assertThat(PAGE)
        .as("write it with: mvn -pl services/signer -am test -Dcoterie.docs.write=true")
        .hasContent(wanted);
  }

  private static String render() {
    StringBuilder out = new StringBuilder("\n```mermaid\nstateDiagram-v2\n  [*] --> RECEIVED\n");
    // One arrow between two states, with all its events.
    Map<String, String> arrows =
        SessionLifecycle.TRANSITIONS.stream()
            .collect(
                Collectors.groupingBy(
                    t -> t.from() + " --> " + t.to(),
                    LinkedHashMap::new,
                    Collectors.mapping(t -> t.event().name(), Collectors.joining(", "))));
    arrows.forEach((arrow, events) -> out.append("  " + arrow + ": " + events + "\n"));
    for (State state : State.values()) {
      if (state.isFinal()) {
        out.append("  " + state + " --> [*]\n");
      }
    }
    out.append("```\n\n| state | meaning | events that may happen |\n|---|---|---|\n");
    for (State state : State.values()) {
      String events =
          SessionLifecycle.TRANSITIONS.stream()
              .filter(t -> t.from() == state)
              .map(t -> "`" + t.event() + "` → `" + t.to() + "`")
              .collect(Collectors.joining(", "));
      out.append("| `" + state + "` | " + state.text() + " | ");
      out.append((events.isEmpty() ? "(final)" : events) + " |\n");
    }
    out.append("\n| event | meaning |\n|---|---|\n");
    for (Event event : Event.values()) {
      out.append("| `" + event + "` | " + event.text() + " |\n");
    }
    return out.append("\n").toString();
  }
}
