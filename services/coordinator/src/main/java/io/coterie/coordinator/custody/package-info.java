/** The domain: keys and signings of requesters, each made exactly once. */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.custody;
