/** Signatures: asking for them, one by one or at a rate, and verifying them. */
@org.jspecify.annotations.NullMarked
package io.coterie.cli.signing;
