/** Every metric of the channel. */
@org.jspecify.annotations.NullMarked
package io.coterie.channel.telemetry;
