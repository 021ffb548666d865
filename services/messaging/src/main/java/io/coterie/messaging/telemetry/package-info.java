/** Names of metrics and log fields. */
@org.jspecify.annotations.NullMarked
package io.coterie.messaging.telemetry;
