/** Presignatures, made before there is anything to sign. */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.custody.presignature;
