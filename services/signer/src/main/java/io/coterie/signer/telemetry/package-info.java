/** Every metric name of the signer. */
@org.jspecify.annotations.NullMarked
package io.coterie.signer.telemetry;
