/** What the services share. Knows no service and no framework. */
@org.jspecify.annotations.NullMarked
package io.coterie.platform;
