/** gRPC adapters: proto in, domain call, proto out. */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.api;
