/** Sender certificates and the keys that sign them. */
@org.jspecify.annotations.NullMarked
package io.coterie.messaging.certificate;
