/** The party's SQLite file behind the ports of {@code session}. */
@org.jspecify.annotations.NullMarked
package io.coterie.signer.storage;
