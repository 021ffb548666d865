package io.coterie.messaging.compat;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.compat.SignalClient.Received;
import java.security.Security;
import java.util.List;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.whispersystems.signalservice.api.messages.SendMessageResult;
import org.whispersystems.signalservice.api.push.DistributionId;
import org.whispersystems.signalservice.api.push.ServiceIdType;

/** A Signal client library that is not ours uses the service like Signal's own. */
class SignalClientTest {
  private static ServiceProcess service;
  private static SignalClient alice;
  private static SignalClient bob;
  private static SignalClient carol;

  @BeforeAll
  static void start() throws Exception {
    Security.addProvider(new BouncyCastleProvider());
    service = new ServiceProcess(List.of("+15551000001", "+15551000002", "+15551000003"));
    alice = new SignalClient(service, "+15551000001");
    bob = new SignalClient(service, "+15551000002");
    carol = new SignalClient(service, "+15551000003");
  }

  @AfterAll
  static void stop() throws Exception {
    for (AutoCloseable part : new AutoCloseable[] {alice, bob, carol, service}) {
      if (part != null) {
        part.close();
      }
    }
  }

  @Test
  void knows_itself_and_its_keys() throws Exception {
    assertThat(SignalClient.success(alice.accounts().whoAmI()).getAci())
        .isEqualTo(alice.aci().toString());
    assertThat(
            SignalClient.success(alice.keys().getAvailablePreKeyCounts(ServiceIdType.ACI))
                .getEcCount())
        .isPositive();
  }

  @Test
  void sends_to_one_and_is_answered() throws Exception {
    assertThat(alice.send(bob, "by name", false).isSuccess()).isTrue();
    assertThat(bob.receive()).isEqualTo(new Received("by name", alice.aci(), false));
    assertThat(bob.send(alice, "sealed", true).getSuccess().isUnidentified()).isTrue();
    assertThat(alice.receive()).isEqualTo(new Received("sealed", bob.aci(), true));
  }

  @Test
  void sends_to_a_group_with_its_sender_key() throws Exception {
    DistributionId group = DistributionId.create();
    for (String body : List.of("first contact", "again")) {
      List<SendMessageResult> results = carol.sendToGroup(group, List.of(alice, bob), body);
      assertThat(results).hasSize(2).allMatch(SendMessageResult::isSuccess);
      assertThat(alice.receive()).isEqualTo(new Received(body, carol.aci(), true));
      assertThat(bob.receive()).isEqualTo(new Received(body, carol.aci(), true));
    }
  }
}
