/** The {@code coterie} command: keys, signatures, offline intents, and a doctor. */
@org.jspecify.annotations.NullMarked
package io.coterie.cli;
