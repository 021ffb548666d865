/**
 * The services that ship, in a world that follows from a seed: time, threads, disk, network, and
 * members that lie (docs/adr/0038).
 */
@NullMarked
package io.coterie.simulation;

import org.jspecify.annotations.NullMarked;
