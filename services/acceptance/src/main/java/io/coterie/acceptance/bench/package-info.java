/** {@code make bench}, and the start of a service from its image. */
@org.jspecify.annotations.NullMarked
package io.coterie.acceptance.bench;
