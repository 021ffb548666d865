/** Asking a service, from outside, how it is. */
@org.jspecify.annotations.NullMarked
package io.coterie.platform.health;
