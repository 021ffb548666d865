package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.messaging.limit.Source;
import jakarta.websocket.CloseReason.CloseCode;
import jakarta.websocket.RemoteEndpoint;
import jakarta.websocket.SendHandler;
import jakarta.websocket.SendResult;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class OutboundFramesTest implements OutboundFrames.Listener {
  private static final int FRAMES = 20;

  private final FairEndpoint endpoint = new FairEndpoint();
  private final List<Runnable> ofOtherThreads = new ArrayList<>();
  private int sent;
  private int moreToCome;
  private int idle;

  /** As the container does it: each frame that is written is reported through its executor. */
  private RemoteEndpoint.Async container() {
    return (RemoteEndpoint.Async)
        Proxy.newProxyInstance(
            getClass().getClassLoader(),
            new Class<?>[] {RemoteEndpoint.Async.class},
            (_, _, arguments) -> {
              sent++;
              moreToCome += OutboundFrames.isMoreToCome() ? 1 : 0;
              SendHandler handler = (SendHandler) arguments[1];
              endpoint.getExecutor().execute(() -> handler.onResult(new SendResult()));
              return null;
            });
  }

  private OutboundFrames frames() {
    OutboundFrames frames =
        new OutboundFrames(
            1 << 20,
            new ConnectionMemory(1 << 20, Runnable::run)
                .open(Source.ofRemote("192.0.2.1"), () -> {}),
            new PushMemory(1 << 20, 1, Runnable::run, _ -> {}, () -> 0).open(() -> {}, () -> {}),
            Runnable::run,
            this);
    frames.open(container());
    return frames;
  }

  @Test
  void frames_that_work_asks_for_are_written_at_its_end_and_many_before() {
    endpoint.setExecutor(ofOtherThreads::add);
    OutboundFrames one = frames();
    OutboundFrames other = frames();
    OutboundFrames.together(
        () -> {
          for (int i = 0; i < FRAMES; i++) {
            OutboundFrames socket = i % 2 == 0 ? one : other;
            socket.push(new byte[100]);
            socket.write();
          }
          assertThat(sent).isZero();
          for (int i = 0; i < FRAMES; i++) {
            one.push(new byte[100]);
            one.write();
          }
          assertThat(sent).as("many do not wait").isBetween(FRAMES, 2 * FRAMES - 1);
        });
    assertThat(sent).isEqualTo(2 * FRAMES);
    assertThat(moreToCome).as("all but the last of a socket").isGreaterThan(FRAMES);
    assertThat(OutboundFrames.isMoreToCome()).isFalse();
    one.push(new byte[100]);
    one.write();
    assertThat(sent).as("no work goes on").isEqualTo(2 * FRAMES + 1);
  }

  @Test
  void frames_are_written_although_the_work_that_asked_for_them_fails() {
    endpoint.setExecutor(ofOtherThreads::add);
    OutboundFrames frames = frames();
    assertThatThrownBy(
            () ->
                OutboundFrames.together(
                    () -> {
                      frames.push(new byte[100]);
                      frames.write();
                      throw new IllegalStateException("of the work");
                    }))
        .hasMessage("of the work");
    assertThat(sent).isEqualTo(1);
  }

  @Test
  void thread_that_writes_frames_wakes_no_other_for_each() {
    endpoint.setExecutor(ofOtherThreads::add);
    OutboundFrames frames = frames();
    for (int i = 0; i < FRAMES; i++) {
      frames.push(new byte[100]);
    }
    frames.write();
    assertThat(sent).isEqualTo(FRAMES);
    assertThat(ofOtherThreads).isEmpty();
    assertThat(frames.isIdle()).isTrue();
    assertThat(idle).isEqualTo(1);

    endpoint.getExecutor().execute(() -> {});
    assertThat(ofOtherThreads).as("all else goes to the container's threads").hasSize(1);
  }

  @Override
  public void hasRoom() {}

  @Override
  public void isIdle() {
    idle++;
  }

  @Override
  public void failed(CloseCode code, String reason) {
    throw new AssertionError(reason);
  }
}
