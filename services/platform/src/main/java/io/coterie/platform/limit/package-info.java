/** Bounds on how often others may have something done. */
@NullMarked
package io.coterie.platform.limit;

import org.jspecify.annotations.NullMarked;
