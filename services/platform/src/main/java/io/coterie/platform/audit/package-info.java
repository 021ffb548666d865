/** The hash-chained record of what a service decided. */
@org.jspecify.annotations.NullMarked
package io.coterie.platform.audit;
