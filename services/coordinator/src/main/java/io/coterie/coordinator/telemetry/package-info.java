/** Every name this service measures, logs or audits under. */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.telemetry;
