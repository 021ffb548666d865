package io.coterie.platform.management;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.Principal;
import java.util.Base64;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Access to the management port. Everybody learns whether the service is alive and ready, because
 * the kubelet cannot prove who it is. All else, metrics and the details of health too, is for the
 * user {@link #USER} with the password of a file (HTTP Basic, RFC 7617). Without a password there
 * is no such user.
 */
public final class ManagementAccess implements Filter {
  /** The only user. */
  public static final String USER = "metrics";

  /** Characters of a password at least. A shorter one counts as none. */
  static final int SHORTEST_PASSWORD = 16;

  private static final Logger log = LoggerFactory.getLogger(ManagementAccess.class);

  /** The paths, letter by letter, that everybody may see. */
  private static final Set<String> OPEN =
      Set.of("/actuator/health", "/actuator/health/liveness", "/actuator/health/readiness");

  private static final String BASIC = "Basic ";

  /** Whether the log says already that there is no password. */
  private final AtomicBoolean missed = new AtomicBoolean();

  private final @Nullable Path passwordFile;

  /**
   * @param passwordFile read when somebody shows a password, so that it can be replaced while the
   *     service runs; null: there is no password
   */
  public ManagementAccess(@Nullable Path passwordFile) {
    this.passwordFile = passwordFile;
    if (passwordFile == null) {
      log.warn("no password for the management port is configured: nobody can read the metrics");
    } else {
      password(); // The log says at the start if there is none.
    }
  }

  @Override
  public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    HttpServletRequest asked = (HttpServletRequest) request;
    if (isUser(asked.getHeader("Authorization"))) {
      chain.doFilter(new ByUser(asked), response);
    } else if (OPEN.contains(asked.getRequestURI())) {
      chain.doFilter(request, response);
    } else {
      HttpServletResponse answer = (HttpServletResponse) response;
      answer.setHeader("WWW-Authenticate", "Basic realm=\"management\"");
      answer.setStatus(HttpServletResponse.SC_UNAUTHORIZED);
    }
  }

  private boolean isUser(@Nullable String authorization) {
    if (authorization == null || !authorization.startsWith(BASIC)) {
      return false;
    }
    String password = password();
    if (password.isEmpty()) {
      return false;
    }
    byte[] shown;
    try {
      shown = Base64.getDecoder().decode(authorization.substring(BASIC.length()).strip());
    } catch (IllegalArgumentException e) {
      return false;
    }
    return MessageDigest.isEqual(shown, (USER + ":" + password).getBytes(StandardCharsets.UTF_8));
  }

  /** Empty if there is none that counts. */
  private String password() {
    Path file = passwordFile;
    if (file == null) {
      return "";
    }
    try {
      String password = Files.readString(file).strip();
      if (password.length() >= SHORTEST_PASSWORD) {
        missed.set(false);
        return password;
      }
      missed("has less than " + SHORTEST_PASSWORD + " characters, so it is not used");
    } catch (IOException e) {
      missed("cannot be read: " + e);
    }
    return "";
  }

  /** Once until there is a password again: requests without one do not fill the log. */
  private void missed(String why) {
    if (missed.compareAndSet(false, true)) {
      log.warn("the password of the management port {}", why);
    }
  }

  /** A request of the user: for Spring's {@code show-details: when-authorized}. */
  private static final class ByUser extends HttpServletRequestWrapper {
    ByUser(HttpServletRequest request) {
      super(request);
    }

    @Override
    public Principal getUserPrincipal() {
      return () -> USER;
    }
  }
}
