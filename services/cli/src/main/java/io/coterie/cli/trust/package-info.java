/** The trust file: making, changing, signing and showing it. */
@org.jspecify.annotations.NullMarked
package io.coterie.cli.trust;
