/** The payloads that are signed, and the check of their signatures on this machine. */
@org.jspecify.annotations.NullMarked
package io.coterie.cli.payload;
