package io.coterie.messaging.socket;

import org.apache.coyote.http11.Http11NioProtocol;

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
}
