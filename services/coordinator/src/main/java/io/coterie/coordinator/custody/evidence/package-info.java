/** Evidence of accusations between parties. */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.custody.evidence;
