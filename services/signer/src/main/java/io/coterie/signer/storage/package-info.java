/** The party's SQLite file behind the ports of {@code claim}, {@code share} and {@code party}. */
@org.jspecify.annotations.NullMarked
package io.coterie.signer.storage;
