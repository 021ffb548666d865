/** Names and shapes of what the services measure and log. */
@org.jspecify.annotations.NullMarked
package io.coterie.platform.telemetry;
