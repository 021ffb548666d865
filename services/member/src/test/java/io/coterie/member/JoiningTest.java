package io.coterie.member;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.mpc.MpcSession;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.Waiting;
import io.coterie.proto.custody.v1.JoinGroupResponse;
import io.coterie.proto.custody.v1.JoinStart;
import io.coterie.proto.custody.v1.MemberEnvelope;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** The run of a join beside a coordinator that sends whatever it may. */
class JoiningTest {
  private static final int MOST = 1_000;
  private static final int TAKEN = 100;

  private int delivered;
  private int handled;

  /** Delivers a response for each that is asked for, at once. */
  private final class Flood extends Channel {
    @Override
    public <Q, R> ClientCall<Q, R> newCall(MethodDescriptor<Q, R> method, CallOptions options) {
      return new ClientCall<>() {
        private @Nullable Listener<R> listener;

        @Override
        public void start(Listener<R> to, Metadata headers) {
          listener = to;
        }

        @Override
        public void request(int messages) {
          for (int i = 0; i < messages && delivered < MOST; i++) {
            delivered++;
            listener.onMessage(
                method
                    .getResponseMarshaller()
                    .parse(
                        JoinGroupResponse.newBuilder()
                            .setEnvelope(MemberEnvelope.newBuilder().setIssuer(1))
                            .build()
                            .toByteString()
                            .newInput()));
          }
        }

        @Override
        public void cancel(@Nullable String why, @Nullable Throwable cause) {}

        @Override
        public void halfClose() {}

        @Override
        public void sendMessage(Q message) {}
      };
    }

    @Override
    public String authority() {
      return "flood";
    }
  }

  /** A session that ends after so many envelopes. */
  private final class Core implements MpcSession {
    @Override
    public Step firstStep() {
      return Step.newBuilder().setWaiting(Waiting.getDefaultInstance()).build();
    }

    @Override
    public Step handle(int authenticatedSender, byte[] envelope) {
      handled++;
      assertThat(delivered).as("sent before it was taken").isLessThanOrEqualTo(handled + 1);
      return handled < TAKEN
          ? firstStep()
          : Step.newBuilder()
              .setDone(Done.newBuilder().setSealedShare(ByteString.copyFromUtf8("key")))
              .build();
    }

    @Override
    public void close() {}
  }

  @Test
  void coordinator_keeps_what_the_member_has_not_taken() throws Exception {
    assertThat(
            new Joining.Stream(new Flood(), Duration.ofSeconds(60))
                .run(JoinStart.getDefaultInstance(), new Core()))
        .isEqualTo(ByteString.copyFromUtf8("key"));
    assertThat(handled).isEqualTo(TAKEN);
    assertThat(delivered).as("its last words are let go").isEqualTo(MOST);
  }
}
