/** This replica's account and its link to the parties. */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.channel;
