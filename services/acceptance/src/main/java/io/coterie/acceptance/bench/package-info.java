/**
 * {@code make bench}, {@code make bench-fairness}, and the start of a service from its image and of
 * the command.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.acceptance.bench;
