/** An installation on this machine as a DSL: its services, the edge and the wallet backend. */
@org.jspecify.annotations.NullMarked
package io.coterie.acceptance.cluster;
