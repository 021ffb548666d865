/** {@code make demo}. */
@org.jspecify.annotations.NullMarked
package io.coterie.acceptance.demo;
