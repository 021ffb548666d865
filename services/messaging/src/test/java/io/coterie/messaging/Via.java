package io.coterie.messaging;

import io.coterie.messaging.TestClient.Transport;

/** The two ways to make a call. Every call is tested over both. */
enum Via {
  REST {
    @Override
    Transport open(TestClient client, String authorization) {
      return client.rest(authorization);
    }
  },
  SOCKET {
    @Override
    Transport open(TestClient client, String authorization) {
      return client.connect(authorization);
    }
  };

  /**
   * @param authorization null for none
   */
  abstract Transport open(TestClient client, String authorization);

  Transport open(TestClient client, TestClient.Party party) {
    return open(client, party.authorization());
  }
}
