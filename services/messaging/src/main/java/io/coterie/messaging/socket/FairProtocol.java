package io.coterie.messaging.socket;

import org.apache.coyote.Processor;
import org.apache.coyote.UpgradeToken;
import org.apache.coyote.http11.Http11NioProtocol;
import org.apache.tomcat.util.net.SocketWrapperBase;

/** HTTP over a {@link FairEndpoint}; the web server makes it by its name. */
public final class FairProtocol extends Http11NioProtocol {
  private final FairEndpoint endpoint;

  public FairProtocol() {
    this(new FairEndpoint());
  }

  private FairProtocol(FairEndpoint endpoint) {
    super(endpoint);
    this.endpoint = endpoint;
  }

  /** Has to be called before the start. */
  public void serve(ConnectionWork work) {
    endpoint.serve(work);
  }

  /**
   * The container goes on to read the new WebSocket within the turn of its request, which would not
   * end while the client sends without a pause: it is read in turns of its own.
   */
  @Override
  protected Processor createUpgradeProcessor(SocketWrapperBase<?> connection, UpgradeToken token) {
    TurnChannel.cutTurn();
    return super.createUpgradeProcessor(connection, token);
  }
}
