/** {@code coterie group}: groups of anonymous approvers. */
@org.jspecify.annotations.NullMarked
package io.coterie.cli.group;
