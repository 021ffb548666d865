/** The registry of signature schemes, with the facts that the services need. */
@org.jspecify.annotations.NullMarked
package io.coterie.platform.scheme;
