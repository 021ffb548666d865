/** Keys, as far as the parties attest them. */
@org.jspecify.annotations.NullMarked
package io.coterie.cli.key;
