/** Names that certificates give their owners. */
@NullMarked
package io.coterie.platform.certificate;

import org.jspecify.annotations.NullMarked;
