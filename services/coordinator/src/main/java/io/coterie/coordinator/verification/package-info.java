/** Results checked with an implementation that did not make them. */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.verification;
