package io.coterie.platform.management;

import static org.assertj.core.api.Assertions.assertThat;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Principal;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Probes are for everybody, all else for whoever has the password. */
class ManagementAccessTest {
  private static final String PASSWORD = "a-password-of-some-length";
  private static final List<String> OPEN =
      List.of("/actuator/health", "/actuator/health/liveness", "/actuator/health/readiness");

  @TempDir Path folder;
  private Path file;

  @BeforeEach
  void password() throws Exception {
    file = Files.writeString(folder.resolve("password"), PASSWORD + "\n");
  }

  /** An answer: whether the request went on, as whom, or with which status it ended. */
  private record Answer(boolean wentOn, @Nullable String user, Map<String, Object> ended) {}

  private static Answer ask(ManagementAccess access, String path, @Nullable String authorization)
      throws Exception {
    HttpServletRequest request =
        stub(
            HttpServletRequest.class,
            (method, arguments) ->
                switch (method) {
                  case "getRequestURI" -> path;
                  case "getHeader" -> arguments[0].equals("Authorization") ? authorization : null;
                  default -> null;
                });
    Map<String, Object> ended = new HashMap<>();
    HttpServletResponse response =
        stub(
            HttpServletResponse.class,
            (method, arguments) -> {
              switch (method) {
                case "setStatus" -> ended.put("status", arguments[0]);
                case "setHeader" -> ended.put((String) arguments[0], arguments[1]);
                default -> throw new IllegalStateException(method);
              }
              return null;
            });
    List<HttpServletRequest> passed = new ArrayList<>();
    access.doFilter(request, response, (r, a) -> passed.add((HttpServletRequest) r));
    Principal user = passed.isEmpty() ? null : passed.getFirst().getUserPrincipal();
    return new Answer(!passed.isEmpty(), user == null ? null : user.getName(), ended);
  }

  private interface Calls {
    @Nullable Object call(String method, Object[] arguments);
  }

  private static <T> T stub(Class<T> type, Calls calls) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (proxy, method, arguments) -> calls.call(method.getName(), arguments)));
  }

  private static String basic(String text) {
    return "Basic " + Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void probes_are_for_everybody_and_tell_nobody_more() throws Exception {
    ManagementAccess access = new ManagementAccess(file);
    for (String path : OPEN) {
      assertThat(ask(access, path, null)).isEqualTo(new Answer(true, null, Map.of()));
      assertThat(ask(access, path, basic("metrics:wrong"))).isEqualTo(ask(access, path, null));
    }
  }

  @Test
  void all_else_needs_the_password() throws Exception {
    ManagementAccess access = new ManagementAccess(file);
    for (String path :
        List.of(
            "/actuator/prometheus",
            "/actuator/health/",
            "/actuator/health/readiness/db",
            "/actuator/health;x=/../prometheus",
            "/actuator/health/../prometheus",
            "//actuator/health",
            "/")) {
      for (String wrong :
          new String[] {
            null,
            "",
            "Basic",
            "Basic *",
            "Bearer " + PASSWORD,
            basic(PASSWORD),
            basic("metrics:"),
            basic("metrics:" + PASSWORD + "x"),
            basic("metrics:" + PASSWORD.substring(1)),
            basic("root:" + PASSWORD)
          }) {
        Answer answer = ask(access, path, wrong);
        assertThat(answer.wentOn()).as("%s with %s", path, wrong).isFalse();
        assertThat(answer.ended()).containsEntry("status", 401).containsKey("WWW-Authenticate");
      }
    }
  }

  @Test
  void the_user_sees_everything() throws Exception {
    ManagementAccess access = new ManagementAccess(file);
    String right = basic("metrics:" + PASSWORD);
    assertThat(ask(access, "/actuator/prometheus", right))
        .isEqualTo(new Answer(true, "metrics", Map.of()));
    assertThat(ask(access, OPEN.getFirst(), right).user()).isEqualTo("metrics");
  }

  @Test
  void a_new_password_counts_at_once() throws Exception {
    ManagementAccess access = new ManagementAccess(file);
    Files.writeString(file, "another-password-of-length");
    assertThat(ask(access, "/actuator/prometheus", basic("metrics:" + PASSWORD)).wentOn())
        .isFalse();
    assertThat(
            ask(access, "/actuator/prometheus", basic("metrics:another-password-of-length"))
                .wentOn())
        .isTrue();
  }

  @Test
  void without_a_password_of_some_length_nobody_is_let_in() throws Exception {
    for (String none : List.of("", "\n", "0123456789abcde")) {
      Files.writeString(file, none);
      assertThat(
              ask(
                      new ManagementAccess(file),
                      "/actuator/prometheus",
                      basic("metrics:" + none.strip()))
                  .wentOn())
          .isFalse();
    }
    for (ManagementAccess access :
        List.of(new ManagementAccess(null), new ManagementAccess(folder.resolve("missing")))) {
      assertThat(ask(access, "/actuator/prometheus", basic("metrics:")).wentOn()).isFalse();
      assertThat(ask(access, OPEN.getFirst(), null).wentOn()).isTrue();
    }
  }
}
