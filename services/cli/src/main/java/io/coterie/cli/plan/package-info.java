/** The places of services in regions, and the latency that follows from them. */
@org.jspecify.annotations.NullMarked
package io.coterie.cli.plan;
