/** {@code make lab}: latency with real delays between the services, beside its floor. */
@org.jspecify.annotations.NullMarked
package io.coterie.acceptance.lab;
