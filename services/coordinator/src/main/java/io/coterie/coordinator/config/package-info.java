/** Typed configuration and wiring. */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.config;
