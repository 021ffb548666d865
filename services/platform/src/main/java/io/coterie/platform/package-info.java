/** The code that all services share. It knows no service and no framework. */
@org.jspecify.annotations.NullMarked
package io.coterie.platform;
