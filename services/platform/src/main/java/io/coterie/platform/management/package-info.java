/** The management port of a service: probes for everybody, metrics and details for some. */
@NullMarked
package io.coterie.platform.management;

import org.jspecify.annotations.NullMarked;
