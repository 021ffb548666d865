/** What the services must know of a signature scheme: the registry of schemes. */
@org.jspecify.annotations.NullMarked
package io.coterie.platform.scheme;
