/** Shares of the opening of an approval, on their way through a coordinator. */
@NullMarked
package io.coterie.platform.opening;

import org.jspecify.annotations.NullMarked;
