/** Keys: created, renewed and looked up. */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.custody.key;
