/** Signings: attempts with one signing set after another. */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.custody.signing;
