package io.coterie.coordinator.config;

import io.coterie.coordinator.api.CallRecorder;
import io.coterie.coordinator.api.Client;
import io.coterie.coordinator.api.ClientAuthentication;
import io.coterie.coordinator.api.ClientDirectory;
import io.coterie.coordinator.api.ErrorMapping;
import io.coterie.coordinator.api.GroupApi;
import io.coterie.coordinator.api.KeyApi;
import io.coterie.coordinator.api.SigningApi;
import io.coterie.coordinator.channel.ChannelConnector;
import io.coterie.coordinator.custody.group.ApprovalOpenings;
import io.coterie.coordinator.custody.group.GroupCreations;
import io.coterie.coordinator.custody.group.MemberAdmissions;
import io.coterie.coordinator.custody.key.EpochQuestions;
import io.coterie.coordinator.custody.key.KeyCreations;
import io.coterie.coordinator.custody.key.KeyDirectory;
import io.coterie.coordinator.custody.key.KeyRenewals;
import io.coterie.coordinator.custody.request.IntentCheck;
import io.coterie.coordinator.custody.signing.Signings;
import io.coterie.coordinator.telemetry.CoordinatorAudit;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.Requester;
import io.coterie.platform.intent.RequesterDirectory;
import io.coterie.platform.intent.VerifiedIntent;
import java.security.SecureRandom;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.grpc.server.GlobalServerInterceptor;

/** Wiring of the API: callers, requesters, and how a call ends. */
@Configuration(proxyBeanMethods = false)
class ApiConfiguration {
  @Bean
  RequesterDirectory requesterDirectory(CoordinatorProperties properties) {
    return new RequesterDirectory(
        properties.requesters().stream()
            .map(r -> Requester.of(r.name(), TextFile.read(r.publicKey())))
            .toList());
  }

  @Bean
  IntentCheck intentCheck(RequesterDirectory requesters, ChannelConnector link) {
    return signed -> {
      try {
        VerifiedIntent intent = IntentVerifier.verify(signed, requesters);
        // As long as there is no roster the signers alone can tell.
        if (link.channel()
            .filter(channel -> !channel.roster().installation().equals(intent.installation()))
            .isPresent()) {
          throw new IntentException(IntentProblem.INSTALLATION_OTHER);
        }
        return intent;
      } catch (IntentException e) {
        throw e.toCustodyException();
      }
    };
  }

  @Bean
  KeyApi keyApi(
      KeyCreations creations,
      KeyRenewals renewals,
      KeyDirectory keys,
      EpochQuestions epochs,
      IntentCheck intents) {
    return new KeyApi(creations, renewals, keys, epochs, intents);
  }

  @Bean
  GroupApi groupApi(
      GroupCreations groups,
      MemberAdmissions admissions,
      ApprovalOpenings openings,
      IntentCheck intents) {
    return new GroupApi(groups, admissions, openings, intents);
  }

  @Bean
  SigningApi signingApi(Signings signings, IntentCheck intents) {
    return new SigningApi(signings, intents);
  }

  @Bean
  ClientDirectory clientDirectory(CoordinatorProperties properties) {
    Map<Client, Set<String>> clients = new LinkedHashMap<>();
    for (CoordinatorProperties.Client c : properties.clients()) {
      clients.put(
          Client.of(c.name(), c.submitFor(), c.readKeys(), c.readSignings()), c.certificates());
    }
    return new ClientDirectory(clients, properties.edges());
  }

  @Bean
  @Order(10)
  @GlobalServerInterceptor
  ClientAuthentication clientAuthentication(
      ClientDirectory clients, CoordinatorProperties properties, SecureRandom random) {
    return new ClientAuthentication(clients, properties.limits().longestWait(), random);
  }

  @Bean
  @Order(20)
  @GlobalServerInterceptor
  CallRecorder callRecorder(CoordinatorMetrics metrics, CoordinatorAudit audit) {
    return new CallRecorder(metrics, audit);
  }

  @Bean
  @Order(30)
  @GlobalServerInterceptor
  ErrorMapping errorMapping() {
    return new ErrorMapping();
  }
}
