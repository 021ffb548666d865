/** What a coordinator may order: the form of an order, its plan, and why it is refused. */
@NullMarked
package io.coterie.signer.order;

import org.jspecify.annotations.NullMarked;
