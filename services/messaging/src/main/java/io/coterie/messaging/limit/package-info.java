/** Rate limits. */
@org.jspecify.annotations.NullMarked
package io.coterie.messaging.limit;
