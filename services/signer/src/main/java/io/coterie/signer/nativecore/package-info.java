/** The native core behind the ports of {@code session}. */
@org.jspecify.annotations.NullMarked
package io.coterie.signer.nativecore;
