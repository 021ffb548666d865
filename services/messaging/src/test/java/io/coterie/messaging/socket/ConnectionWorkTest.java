package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import com.github.benmanes.caffeine.cache.Ticker;
import io.coterie.messaging.ClientCertificates;
import io.coterie.messaging.limit.Limits;
import io.coterie.messaging.limit.RateLimit.Rate;
import io.coterie.messaging.limit.Rates;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.telemetry.MessagingMetrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import jakarta.servlet.ServletConnection;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.channels.SocketChannel;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;

/** Whose turns the connections of the edge, and of others, take. */
class ConnectionWorkTest {
  private static final Source NETWORK = Source.ofRemote("127.0.0.1");
  private static final String CLIENT = "192.0.2.1";

  private final ClientCertificates authority = new ClientCertificates("clients");
  private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
  private ConnectionWork work;
  private Peer peer;

  @BeforeEach
  void begin() throws IOException {
    Binder defaults = new Binder(new MapConfigurationPropertySource());
    Rate rate = new Rate(65_536, 65_536);
    Rates rates = new Rates(rate, rate, rate, rate, rate, rate, rate, rate);
    work =
        new ConnectionWork(
            defaults.bindOrCreate("limits", Limits.class),
            rates,
            new TrustedEdge(Set.of("dns:edge")),
            Ticker.systemTicker(),
            new MessagingMetrics(registry));
    peer = new Peer(SocketChannel.open(), NETWORK);
    work.admission().admit(NETWORK, peer.socket);
  }

  @AfterEach
  void end() throws IOException {
    work.close();
    peer.socket.close();
  }

  private static HttpServletRequest request(String... clients) {
    return requestOn("1", clients);
  }

  private static HttpServletRequest requestOn(String id, String... clients) {
    ServletConnection connection = proxy(ServletConnection.class, (method, argument) -> id);
    return proxy(
        HttpServletRequest.class,
        (method, argument) ->
            switch (method) {
              case "getServletConnection" -> connection;
              case "getRemoteAddr" -> "127.0.0.1";
              case "getHeaders" -> {
                assertThat(argument).isEqualTo("x-coterie-client-address");
                yield Collections.enumeration(List.of(clients));
              }
              default -> throw new AssertionError("nobody should ask for " + method);
            });
  }

  /** A container's object, by the name of the method and its first argument. */
  private static <T> T proxy(Class<T> type, BiFunction<String, Object, Object> answers) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (self, method, arguments) ->
                answers.apply(method.getName(), arguments == null ? null : arguments[0])));
  }

  @Test
  void a_connection_of_the_edge_takes_the_turns_of_the_client_that_it_speaks_for() {
    work.identified("1", peer, new X509Certificate[] {authority.certificate("edge")});
    assertThat(peer.client()).isEqualTo(NETWORK);
    assertThat(work.begun(request(CLIENT))).isEqualTo(Source.ofRemote(CLIENT));
    assertThat(peer.client()).isEqualTo(Source.ofRemote(CLIENT));
    work.ended(request());
    assertThat(peer.client()).as("it carries nothing").isEqualTo(NETWORK);
    assertThat(work.begun(request(CLIENT, CLIENT))).isEqualTo(NETWORK);
    assertThat(work.begun(request())).isEqualTo(NETWORK);
    work.ended("1");
    assertThat(work.begun(request(CLIENT))).as("the connection has ended").isEqualTo(NETWORK);
  }

  @Test
  void a_connection_of_somebody_else_takes_its_own_turns() {
    for (X509Certificate[] shown :
        List.of(
            new X509Certificate[0],
            new X509Certificate[] {authority.certificate("wallet")},
            // The names of its issuers are not its own.
            new X509Certificate[] {
              authority.certificate("wallet"), authority.certificate("edge")
            })) {
      work.identified("1", peer, shown);
      assertThat(work.begun(request(CLIENT))).isEqualTo(NETWORK);
      assertThat(peer.client()).isEqualTo(NETWORK);
    }
  }

  @Test
  void of_many_websockets_that_do_not_answer_their_close_the_oldest_are_ended() {
    List<Integer> ended = new ArrayList<>();
    for (int i = 0; i < ConnectionWork.MAX_CLOSING + 4; i++) {
      int number = i;
      String id = Integer.toString(i);
      work.begun(id, () -> ended.add(number));
      Runnable closing = work.closing(requestOn(id));
      closing.run();
      closing.run();
      if (i == 1) {
        work.ended(id);
        closing.run();
      }
    }
    assertThat(ended).as("1 had answered").containsExactly(0, 2, 3);
  }

  private CompletableFuture<Void> frames(String connection, Source network) {
    CompletableFuture<Void> ran = new CompletableFuture<>();
    work.frames(
        connection,
        network,
        () -> {
          ran.complete(null);
          return false;
        });
    return ran;
  }

  @Test
  void an_address_without_credentials_that_sends_more_than_its_rate_is_read_later() {
    work.authenticated(request(), new Source.OfAccount(UUID.randomUUID()));
    assertThat(work.isAnonymous("1")).isFalse();
    assertThat(work.isAnonymous("2")).isTrue();
    work.anonymousFramesRead(NETWORK, 100);
    frames("2", NETWORK).orTimeout(60, TimeUnit.SECONDS).join();
    assertThat(registry.counter("coterie.messaging.read.later").count()).isZero();

    work.anonymousFramesRead(NETWORK, 100_000_000);
    assertThat(registry.counter("coterie.messaging.read.later").count()).isEqualTo(1);
    CompletableFuture<Void> later = frames("2", NETWORK);
    frames("1", NETWORK).orTimeout(60, TimeUnit.SECONDS).join();
    frames("3", Source.ofRemote(CLIENT)).orTimeout(60, TimeUnit.SECONDS).join();
    assertThat(later).isNotDone();
    work.close();
    later.orTimeout(60, TimeUnit.SECONDS).join();
  }

  @Test
  void calls_over_http_count_for_their_address() {
    work.requestRead(NETWORK, 100);
    assertThat(registry.counter("coterie.messaging.read.later").count()).isZero();
    work.requestRead(NETWORK, 100_000_000);
    assertThat(registry.counter("coterie.messaging.read.later").count()).isEqualTo(1);
    CompletableFuture<Void> later = new CompletableFuture<>();
    work.request(NETWORK, () -> later.complete(null));
    CompletableFuture<Void> other = new CompletableFuture<>();
    work.request(Source.ofRemote(CLIENT), () -> other.complete(null));
    other.orTimeout(60, TimeUnit.SECONDS).join();
    assertThat(later).isNotDone();
    work.close();
    later.orTimeout(60, TimeUnit.SECONDS).join();
  }
}
